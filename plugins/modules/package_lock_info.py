#!/usr/bin/python
"""Name the process that holds the package manager's lock."""

DOCUMENTATION = r"""
module: package_lock_info
short_description: Name the process that holds the package manager's lock
description:
  - It reads /proc/locks and the lock files of dnf and yum, and changes nothing.
"""

RETURN = r"""
holder: {description: "The process and the file that it holds, empty if the lock is free", type: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import package_locks


def main():
    module = AnsibleModule(argument_spec={}, supports_check_mode=True)
    module.exit_json(changed=False, holder=package_locks.holder())


if __name__ == "__main__":
    main()
