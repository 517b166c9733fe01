"""Code for hosts: Python 2.7 and 3; outside modules the standard library only.

Imports inside are relative, because an Ansible collection gives the package another name.
"""
