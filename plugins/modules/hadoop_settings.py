#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Set single properties of Hadoop's configuration files, and put back what was there before."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: hadoop_settings
short_description: Set properties of Hadoop's XML files and keys of container-executor.cfg, one by one
description:
  - Everything else in a file keeps its bytes, comments included. A recorded setting that is no longer in C(files) gets what was there before.
  - A value that is neither missing nor recorded as set by this module is the site's; if it differs, nothing changes and the module fails.
    A setting that the site already has is accepted and not recorded. To a list of words the word is added (C(hadoop_files.LISTS)).
  - The value of Hadoop's own file is nobody's choice (C(hadoop_files.DEFAULTS)); it comes back with the removal.
  - A recorded setting that somebody changed since is left alone when it is removed; of a list of words only the recorded word goes.
  - Before a file changes the record says that a restart is pending. That stays until C(state=restarted), so that a run after a killed one restarts as well.
options:
  files: {description: "Path -> setting -> value. A key of container-executor.cfg is KEY or [SECTION] KEY", type: dict, default: {}}
  services: {description: What must be restarted; kept in the record for a removal, type: list, elements: str, default: []}
  state: {description: "Set them, or note that the services run with them", type: str, choices: [present, restarted], default: present}
  record: {description: What was there before, type: path, default: /opt/deeplearning/etc/yarn_gpu.json}
  wait: {description: Seconds for another run to end, type: int, default: 600}
"""

RETURN = r"""
restart: {description: Whether services run with other settings than the files have, type: bool, returned: always}
previous: {description: What was set before this call in the form of C(files), type: dict, returned: always}
"""

import json
import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import hadoop_files, whole_files
from ansible.module_utils.hadoop_dl_host.hadoop_changes import Change, Differs
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking


def read(path):
    """The file's bytes; None if it does not exist."""
    whole_files.check_place(path)
    if not os.path.exists(path):
        return None
    with open(path, "rb") as handle:
        return handle.read()


def recorded(path):
    """The record; an empty one if there is none. What was there before is in no other place, so one that cannot be read is refused."""
    try:
        record = json.loads((read(path) or b"{}").decode("utf-8"))
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise hadoop_files.Unusable(
            "%s must be the JSON object that this module wrote; restore it from a backup" % path
        )
    return record


def write_record(path, files, services):
    whole_files.write_record(path, {"files": files, "restart_pending": True, "services": services})


def write(path, data):
    """A link, as /etc/alternatives has them, stays one."""
    place = os.path.realpath(path)
    if data is None:
        os.unlink(place)
    else:
        access = whole_files.access_of(place) if os.path.exists(place) else {}
        whole_files.write_whole(place, data, **access)


def change(module, params):
    record = recorded(params["record"])
    recorded_files, pending = record.get("files", {}), record.get("restart_pending") is True
    changes = [
        Change(path, read(path), recorded_files.get(path, {}), params["files"].get(path, {}))
        for path in sorted(set(params["files"]) | set(recorded_files))
    ]
    differing = [edit for edit in changes if edit.after != edit.before]
    new_files = dict((edit.path, edit.entry) for edit in changes if edit.entry["settings"])
    services = params["services"] or record.get("services", [])
    changed = bool(differing) or new_files != recorded_files
    if changed and not module.check_mode:
        # Before the files, with what was recorded: whatever kills this run, nothing of what was there before is forgotten.
        write_record(params["record"], dict((edit.path, edit.both()) for edit in changes), services)
        for edit in differing:
            write(edit.path, edit.after)
        write_record(params["record"], new_files, services)
    module.exit_json(
        changed=changed,
        restart=bool(differing) or pending,
        previous=dict(
            (path, dict((key, setting["wanted"]) for key, setting in entry["settings"].items()))
            for path, entry in recorded_files.items()
        ),
        diff=[edit.diff() for edit in differing],
    )


def restarted(module, path):
    """The services run with these files: nothing is pending, and without settings there is nothing to remember."""
    record = recorded(path)
    pending = record.get("restart_pending") is True
    if pending and not module.check_mode:
        del record["restart_pending"]
        whole_files.write_record(path, record if record.get("files") else None)
    module.exit_json(changed=pending, restart=False, previous={})


def apply(module, params):
    if params["state"] == "restarted":
        restarted(module, params["record"])
    change(module, params)


def main():
    module = AnsibleModule(
        argument_spec={
            "files": {"type": "dict", "default": {}},
            "services": {"type": "list", "elements": "str", "default": []},
            "state": {"type": "str", "choices": ["present", "restarted"], "default": "present"},
            "record": {"type": "path", "default": "/opt/deeplearning/etc/yarn_gpu.json"},
            "wait": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        lock = HostLock("hadoop_settings", params["wait"], os.path.dirname(os.path.dirname(params["record"])))
        with unless_checking(module, lock):
            apply(module, params)
    except Differs as problem:
        module.fail_json(msg="%s Nothing was changed." % problem)
    except HostLocked as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError, hadoop_files.Unusable, UnicodeDecodeError) as error:
        module.fail_json(
            msg="Hadoop's files must be readable and root may write them, but: %s. Solve that, and run this again."
            % error
        )


if __name__ == "__main__":
    main()
