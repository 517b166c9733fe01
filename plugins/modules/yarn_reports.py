#!/usr/bin/python
"""Wait until NodeManagers report to a ResourceManager that was restarted, on its host."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: yarn_reports
short_description: Read which NodeManagers report to YARN, and wait for some of them
description:
  - In some releases of Hadoop a NodeManager that registers with a restarted ResourceManager may never report again. YARN lists it as RUNNING but
    starts no container there, and marks it LOST after 10 minutes.
  - A ResourceManager that does not answer is waited for as well. It is no failure.
options:
  conf_dir: {description: Directory of the ResourceManager's configuration, type: path, required: true}
  nodes: {description: Names of the nodes in YARN that are waited for, type: list, elements: str, default: []}
  patience: {description: Seconds to wait for them, type: int, default: 0}
"""

RETURN = r"""
reporting: {description: Names of the nodes that report, type: list, elements: str, returned: always}
silent: {description: "Those of `nodes` that do not", type: list, elements: str, returned: always}
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import processes, yarn_admin, yarn_nodes
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin


def wait(module, addresses):
    nodes, end = module.params["nodes"], processes.clock() + module.params["patience"]
    while True:
        try:
            reporting, reason = yarn_nodes.reporting(yarn_nodes.cluster(addresses)[2]), None
        except yarn_nodes.Silent as problem:
            reporting, reason = [], "The ResourceManager did not report its nodes (%s)." % problem
        silent = sorted(set(nodes) - set(reporting))
        if not silent or processes.clock() >= end:
            break
        time.sleep(2)
    if reason:
        module.warn(reason)
    module.exit_json(changed=False, reporting=reporting, silent=silent)


def main():
    module = AnsibleModule(
        argument_spec={
            "conf_dir": {"type": "path", "required": True},
            "nodes": {"type": "list", "elements": "str", "default": []},
            "patience": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    try:
        with yarn_admin.Admin(module.params["conf_dir"], None, None) as admin:
            wait(module, admin.addresses())
    except NoLogin as problem:
        module.warn("To ask the ResourceManager, %s." % problem)
        module.exit_json(changed=False, reporting=[], silent=module.params["nodes"])


if __name__ == "__main__":
    main()
