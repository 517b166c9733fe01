#!/usr/bin/python
"""Record what the role tensorflow_build is about to create on a host, or remove that and nothing else."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: tensorflow_build_place
short_description: Record what builds of TensorFlow create, or remove it by the record
description:
  - C(recorded) writes which directory and which account the role creates here, before it does. A directory with entries that are not of this role, and an
    account of the system (uid below 1000) that it did not create, are refused.
  - C(absent) removes what the record names, never what the inventory names, and keeps what was there before. A build that runs keeps all.
options:
  state: {description: What to do, type: str, choices: [recorded, absent], required: true}
  root: {description: Directory of the builds, type: path}
  user: {description: Account that builds, type: str}
  record: {description: The record, type: path, default: /opt/deeplearning/etc/tensorflow_build.json}
"""

RETURN = r"""
creates_user: {description: Whether the account is of this role, type: bool, returned: when recorded}
removed: {description: "Paths and accounts that were removed (in check mode, would be)", type: list, returned: when absent}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, build_place, environment_tree
from ansible.module_utils.hadoop_dl_host import tensorflow_builder as builder
from ansible.module_utils.hadoop_dl_host.host_lock import HostLocked


def main():
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["recorded", "absent"], "required": True},
            "root": {"type": "path"},
            "user": {"type": "str"},
            "record": {"type": "path", "default": "/opt/deeplearning/etc/tensorflow_build.json"},
        },
        required_if=[("state", "recorded", ["root", "user"])],
        supports_check_mode=True,
    )
    params, path = module.params, module.params["record"]
    old_record = environment_tree.read_json(path) or {}
    try:
        if params["state"] == "absent":
            removed = build_place.remove(old_record, module.check_mode)
            if os.path.exists(path):
                removed.append(path)
                if not module.check_mode:
                    os.unlink(path)
            module.exit_json(changed=bool(removed), removed=removed)
        new_record = build_place.recorded(old_record, params["root"].rstrip("/"), params["user"])
        if new_record != old_record and not module.check_mode:
            os.umask(0o022)
            atomic_files.make_directory(os.path.dirname(path))
            atomic_files.write_json(path, new_record)
    except (build_place.Refused, builder.Failed, HostLocked) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(msg="%s must be written and its paths removed, but the system answers: %s" % (path, error))
    diff = {"before": json.dumps(old_record, indent=1), "after": json.dumps(new_record, indent=1)}
    module.exit_json(changed=new_record != old_record, creates_user=not new_record["users"][params["user"]], diff=diff)


if __name__ == "__main__":
    main()
