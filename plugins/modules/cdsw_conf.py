#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Set single keys of cdsw.conf, and put back what was there before."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: cdsw_conf
short_description: Set keys of the configuration of Cloudera Data Science Workbench, one line each
description:
  - Every other line stays as it is. Before the first change the earlier lines of the keys are recorded, and before every change a copy of the file is kept.
  - Nothing of the file but the lines that change is printed, without user and password of an address, because it may hold secrets.
options:
  settings: {description: Keys and values; required with C(state=present), type: dict, default: {}}
  state:
    description:
      - C(present) sets the keys. C(previous) gives the recorded keys the lines with which CDSW last ran; other lines stay.
      - C(absent) gives the keys the lines that they had before the first change. The record stays, and C(keys) names its keys, until C(forgotten)
        removes it when CDSW runs with these lines, so that a run after a killed one restarts CDSW as well.
      - Before the file changes the record says that a restart is pending. Until C(restarted) removes that, C(present) names all its keys.
    type: str
    choices: [present, previous, absent, restarted, forgotten]
    default: present
  path: {description: The configuration, type: path, default: /etc/cdsw/config/cdsw.conf}
  record: {description: What was there before, type: path, default: /opt/deeplearning/etc/cdsw.json}
  wait: {description: Seconds for another run to end, type: int, default: 600}
"""

RETURN = r"""
keys: {description: Keys with which CDSW must be restarted; with C(state=absent) all that are recorded, type: list, returned: always}
"""

import json
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import cdsw_settings, whole_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking

VALUE = re.compile(r"^[\w./:-]*$")


def read(path):
    with open(path, "rb") as handle:
        return handle.read().decode("utf-8")


def write(path, text, **access):
    whole_files.make_directory(os.path.dirname(path))
    whole_files.write_whole(path, text.encode("utf-8"), **access)


def recorded(path):
    """The lines that the keys had before this project changed them, and whether a restart is pending; a torn record is none."""
    try:
        record = json.loads(read(path))
        return (record["before"] if isinstance(record["before"], dict) else {}), record.get("restart_pending") is True
    except (IOError, OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}, False


def write_record(path, before, pending):
    content = {"before": before, "restart_pending": True} if pending else {"before": before}
    whole_files.write_record(path, content)


def wanted_text(params, text, backup):
    """The file as it must be, and the record of earlier lines."""
    earlier_lines, _ = recorded(params["record"])
    if params["state"] in ("previous", "absent"):
        old = read(backup) if params["state"] == "previous" else None
        for key, line in sorted(earlier_lines.items()):
            text = cdsw_settings.with_line(text, key, line if old is None else cdsw_settings.line_of(old, key))
        return text, earlier_lines
    for key, value in sorted(params["settings"].items()):
        earlier_lines.setdefault(key, cdsw_settings.line_of(text, key))
        if not cdsw_settings.holds(text, key, value):
            text = cdsw_settings.with_line(text, key, cdsw_settings.assignment(key, value))
    return text, earlier_lines


def change(module, params):
    """Compare, keep a copy, write, and answer."""
    path, backup, state = params["path"], params["record"] + ".previous", params["state"]
    pending = recorded(params["record"])[1]
    if state == "absent" and not os.path.exists(path):
        module.exit_json(changed=False, keys=[])
    text = read(path)
    new_text, earlier_lines = wanted_text(params, text, backup)
    keys = sorted(set(params["settings"]) | set(earlier_lines))
    lines = [[cdsw_settings.line_of(content, key) for key in keys] for content in (text, new_text)]
    changed = new_text != text
    recording = state == "present" and not os.path.exists(params["record"])
    if not module.check_mode:
        if changed and state != "previous" and not pending:  # CDSW never ran with a file that waits for a restart
            write(backup, text, mode=0o600)
        if changed or recording:  # before the file: whatever kills this run, the next one restarts CDSW
            write_record(params["record"], earlier_lines, pending or changed)
        if changed:
            write(path, new_text, **whole_files.access_of(path))
    changes = [pair for pair in zip(*lines) if pair[0] != pair[1]]
    sides = ["".join(cdsw_settings.shown(pair[side]) for pair in changes) for side in (0, 1)]
    module.exit_json(
        changed=changed or recording,
        keys=[
            key
            for key, old, new in zip(keys, *lines)
            if old != new or state == "absent" or (pending and state == "present")
        ],
        diff={"before": sides[0], "after": sides[1], "before_header": path, "after_header": path},
    )


def restarted(module, record):
    """CDSW runs with this file: nothing is pending."""
    earlier_lines, pending = recorded(record)
    if pending and not module.check_mode:
        write_record(record, earlier_lines, False)
    module.exit_json(changed=pending, keys=[])


def forget(module, record):
    """Remove the record, and the copy beside it first."""
    paths = [path for path in (record + ".previous", record) if os.path.exists(path)]
    for path in [] if module.check_mode else paths:
        os.unlink(path)
    module.exit_json(changed=bool(paths), keys=[])


def apply(module, params):
    if params["state"] == "restarted":
        restarted(module, params["record"])
    if params["state"] == "forgotten":
        forget(module, params["record"])
    change(module, params)


def main():
    module = AnsibleModule(
        argument_spec={
            "settings": {"type": "dict", "default": {}},
            "state": {
                "type": "str",
                "choices": ["present", "previous", "absent", "restarted", "forgotten"],
                "default": "present",
            },
            "path": {"type": "path", "default": "/etc/cdsw/config/cdsw.conf"},
            "record": {"type": "path", "default": "/opt/deeplearning/etc/cdsw.json"},
            "wait": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    params = module.params
    params["settings"] = dict((key, str(value)) for key, value in params["settings"].items())
    bad_keys = [
        key for key, value in params["settings"].items() if not VALUE.match(value) or not re.match(r"^[A-Z_]+$", key)
    ]
    if bad_keys:
        module.fail_json(
            msg="%s must be a key in capitals with a plain value. %s was not changed." % (bad_keys[0], params["path"])
        )
    try:
        lock = HostLock("cdsw.conf", params["wait"], os.path.dirname(os.path.dirname(params["record"])))
        with unless_checking(module, lock):
            apply(module, params)
    except HostLocked as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError, ValueError) as error:
        module.fail_json(
            msg="%s must be readable text that root may write, but: %s. Solve that, and run this again."
            % (params["path"], error)
        )


if __name__ == "__main__":
    main()
