#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Add one NodeManager to the ResourceManager's file of excluded nodes, and take away only what was added here."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: yarn_exclude
short_description: Exclude a NodeManager, by a line that is recorded
description:
  - The record is written before the line, and removed by C(state=forgotten) alone, so that a run after a killed one knows that the host must come back.
  - A node that the site excluded itself is refused. Every other line keeps its bytes.
options:
  conf_dir: {description: Directory of the ResourceManager's configuration, type: path, required: true}
  node: {description: The node's name in YARN, type: str, required: true}
  state:
    description: "excluded: with line and record; recorded: the record alone, if a manager has the file; included: without the line; forgotten: without the record, once the node runs"
    type: str
    choices: [excluded, recorded, included, forgotten]
    required: true
  gpus: {description: What the node offers, type: int, default: 0}
  record: {description: Which lines are this project's, type: path, default: /opt/deeplearning/etc/node_maintenance.json}
  wait: {description: Seconds for another run to end, type: int, default: 600}
"""

RETURN = r"""
path: {description: The file, type: str, returned: always}
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import yarn_exclude
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking


def settle(module, wanted):
    node, state, nodes = wanted["node"], wanted["state"], yarn_exclude.recorded(wanted["record"])
    lines = state in ("excluded", "included")
    path = yarn_exclude.place(wanted["conf_dir"]) if lines else wanted["record"]
    before = yarn_exclude.read(path) if lines else b""
    known, after, kept = node in nodes, before, dict(nodes)
    if state in ("excluded", "recorded") and not known:
        kept[node] = {"gpus": wanted["gpus"], "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}
    if state == "excluded":
        if not known and node in yarn_exclude.names(before):
            module.fail_json(
                msg="%s has %s, which the site excluded itself, so it is left alone. Remove it there, or leave this host out."
                % (path, node)
            )
        if node not in yarn_exclude.names(before):
            after = yarn_exclude.with_name(before, node)
    elif state == "included" and known:
        after = yarn_exclude.without_name(before, node)
        if node in yarn_exclude.names(after):
            module.fail_json(
                msg="%s must have %s in the line that this project added and in no other, but the site changed it. Remove it there, and run again."
                % (path, node)
            )
    elif state == "forgotten":
        kept.pop(node, None)
    if not module.check_mode:
        if kept != nodes:
            yarn_exclude.write_record(wanted["record"], kept)
        if after != before:
            yarn_exclude.write(path, after)
    sides = [data.decode("utf-8", "replace") for data in (before, after)]
    diff = {"before_header": path, "after_header": path, "before": sides[0], "after": sides[1]}
    module.exit_json(changed=kept != nodes or after != before, path=path, diff=diff)


def main():
    module = AnsibleModule(
        argument_spec={
            "conf_dir": {"type": "path", "required": True},
            "node": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["excluded", "recorded", "included", "forgotten"], "required": True},
            "gpus": {"type": "int", "default": 0},
            "record": {"type": "path", "default": yarn_exclude.RECORD},
            "wait": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    wanted = module.params
    try:
        lock = HostLock("yarn_exclude", wanted["wait"], os.path.dirname(os.path.dirname(wanted["record"])))
        with unless_checking(module, lock):
            settle(module, wanted)
    except (HostLocked, yarn_exclude.Unusable) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="The file of excluded nodes and its record must be writable, but: %s. Solve that, and run again."
            % error
        )


if __name__ == "__main__":
    main()
