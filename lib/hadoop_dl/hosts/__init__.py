"""What plugins and roles do on hosts: scripts, packages, the suite."""
