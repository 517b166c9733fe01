#!/usr/bin/python
"""Add one NodeManager to the ResourceManager's file of excluded nodes, and take away only what was added here."""

from __future__ import absolute_import, division, print_function

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
    description: "excluded: with line and record; included: without the line; forgotten: without the record, once the node runs"
    type: str
    choices: [excluded, included, forgotten]
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


def settle(module, params):
    node, state, nodes = params["node"], params["state"], yarn_exclude.recorded(params["record"])
    lines = state in ("excluded", "included")
    path = yarn_exclude.place(params["conf_dir"]) if lines else params["record"]
    old_data = yarn_exclude.read(path) if lines else b""
    is_recorded, new_data, new_nodes = node in nodes, old_data, dict(nodes)
    if state == "excluded" and not is_recorded:
        new_nodes[node] = {"gpus": params["gpus"], "since": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())}
    if state == "excluded":
        if not is_recorded and node in yarn_exclude.names(old_data):
            module.fail_json(
                msg="%s has %s, which the site excluded itself, so it is left alone. Remove it there, or leave this host out."
                % (path, node)
            )
        if node not in yarn_exclude.names(old_data):
            new_data = yarn_exclude.with_name(old_data, node)
    elif state == "included" and is_recorded:
        new_data = yarn_exclude.without_name(old_data, node)
        if node in yarn_exclude.names(new_data):
            module.fail_json(
                msg="%s must have %s in the line that this project added and in no other, but the site changed it. Remove it there, and run again."
                % (path, node)
            )
    elif state == "forgotten":
        new_nodes.pop(node, None)
    if not module.check_mode:
        if new_nodes != nodes:
            yarn_exclude.write_record(params["record"], new_nodes)
        if new_data != old_data:
            yarn_exclude.write(path, new_data)
    sides = [node + "\n" if node in yarn_exclude.names(data) else "" for data in (old_data, new_data)]  # no other line
    diff = {"before_header": path, "after_header": path, "before": sides[0], "after": sides[1]}
    module.exit_json(changed=new_nodes != nodes or new_data != old_data, path=path, diff=diff)


def main():
    module = AnsibleModule(
        argument_spec={
            "conf_dir": {"type": "path", "required": True},
            "node": {"type": "str", "required": True},
            "state": {"type": "str", "choices": ["excluded", "included", "forgotten"], "required": True},
            "gpus": {"type": "int", "default": 0},
            "record": {"type": "path", "default": yarn_exclude.RECORD},
            "wait": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    params = module.params
    try:
        lock = HostLock("yarn_exclude", params["wait"], os.path.dirname(os.path.dirname(params["record"])))
        with unless_checking(module, lock):
            settle(module, params)
    except (HostLocked, yarn_exclude.Unusable) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="The file of excluded nodes and its record must be writable, but: %s. Solve that, and run again."
            % error
        )


if __name__ == "__main__":
    main()
