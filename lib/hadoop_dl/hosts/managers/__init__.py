"""Cloudera Manager and Ambari over their REST APIs: what inventory plugins and action plugins on the controller ask and change there."""
