"""The demo cluster: containers that stand for a small Hadoop cluster, made from this repository and public packages."""
