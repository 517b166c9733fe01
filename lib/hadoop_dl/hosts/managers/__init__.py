"""Cloudera Manager and Ambari over their REST APIs: what the inventory plugins ask there."""
