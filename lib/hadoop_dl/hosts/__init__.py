"""The controller's part of what plugins and roles do on hosts: scripts, packages, the suite, the report."""
