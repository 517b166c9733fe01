#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Remove directories that are empty; what somebody put into one stays, and so does the directory."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: prune_directories
short_description: Remove directories that nobody uses any more
description:
  - Removes each directory if it is empty, in the order given, so that a parent can follow its children.
  - One that has content, is missing, is a link or is a mount point is left unchanged; any other failure is reported.
options:
  paths: {description: Directories, type: list, elements: path, required: true}
"""

RETURN = r"""
removed: {description: "Directories that were removed (in check mode, would be)", type: list, returned: always}
"""

import errno
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import host_lock

STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY)


def removable(path, removed_paths):
    """Whether nothing is in it but what goes as well. The host's lock goes with its directory."""
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    return all(os.path.join(path, name) in removed_paths for name in os.listdir(path) if name != host_lock.NAME)


def remove_one(path):
    if not os.path.lexists(os.path.join(path, host_lock.NAME)):
        os.rmdir(path)
        return
    with host_lock.HostLock("removing %s" % path, 0, path) as lock:  # who has it still needs the directory
        lock.remove_if_alone()


def remove(paths, dry):
    """Remove what is empty; answers with the paths."""
    removed_paths = []
    for path in [os.path.abspath(path) for path in paths]:
        if removable(path, removed_paths):
            try:
                if not dry:
                    remove_one(path)
            except host_lock.HostLocked:
                continue
            except OSError as error:
                if error.errno not in STAYS:
                    raise
            else:
                removed_paths += [path] if dry or not os.path.isdir(path) else []
    return removed_paths


def main():
    module = AnsibleModule(
        argument_spec={"paths": {"type": "list", "elements": "path", "required": True}}, supports_check_mode=True
    )
    try:
        removed = remove(module.params["paths"], module.check_mode)
    except (IOError, OSError) as error:
        module.fail_json(msg="An empty directory cannot be removed: %s. Solve that, and run this again." % error)
    module.exit_json(changed=bool(removed), removed=removed)


if __name__ == "__main__":
    main()
