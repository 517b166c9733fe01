#!/usr/bin/python
"""Ask the ResourceManager about one NodeManager and about those that leave, on a host that has a ResourceManager."""

from __future__ import absolute_import, division, print_function

DOCUMENTATION = r"""
module: yarn_nodes_info
short_description: Read which NodeManagers leave YARN, and who excluded them
description:
  - Returns the nodes of all these names, those that are being decommissioned and those that the file of excluded nodes has; of others their number.
options:
  conf_dir: {description: Directory of the ResourceManager's configuration, type: path, required: true}
  names: {description: Names of the host whose node is wanted, type: list, elements: str, required: true}
  together: {description: Names of hosts that leave at the same time, type: list, elements: str, default: []}
  applications: {description: Ask the node as well for what runs there, type: bool, default: false}
  drains: {description: 'false: only what YARN has is asked, not its file of excluded nodes', type: bool, default: true}
  record: {description: Which lines are this project's, type: path, default: /opt/deeplearning/etc/node_maintenance.json}
"""

RETURN = r"""
yarn: {description: "version, nodes, running (label -> nodes), racks, applications, manager", type: dict, returned: always}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import host_yarn, mapr, yarn_admin, yarn_exclude, yarn_nodes
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin


def answer(params, addresses):
    if os.path.exists(mapr.CLUSTERS) and params["drains"]:
        raise yarn_exclude.Unusable(
            "A drain requires Hadoop's own file of excluded nodes, but MapR's Warden runs the services here. Drain the host by MapR's means."
        )
    manager = next((name for name, path in host_yarn.MANAGERS if os.path.exists(path)), None)
    recorded = yarn_exclude.recorded(params["record"])
    excluded = set()
    if params["drains"] and not manager:
        excluded = yarn_exclude.names(yarn_exclude.read(yarn_exclude.place(params["conf_dir"])))
    address, version, nodes = yarn_nodes.cluster(addresses)
    matters = []
    own_nodes, batch_nodes = (yarn_nodes.of_host(nodes, params[key]) for key in ("names", "together"))
    for node in nodes:
        mine, name = node in own_nodes, node.get("nodeHostName")
        beside = not mine and node in batch_nodes
        if mine or beside or name in excluded or node.get("state") == "DECOMMISSIONING":
            record = recorded.get(name) or {}
            details = {
                "mine": mine,
                "beside": beside,
                "excluded": name in excluded,
                "recorded": name in recorded,
                "had_gpus": record.get("gpus", 0),
            }
            matters.append(dict(yarn_nodes.summary(node), **details))
    asks_node = params["applications"] and len(own_nodes) == 1 and own_nodes[0].get("nodeHTTPAddress")
    return {
        "version": version,
        "nodes": matters,
        "running": yarn_nodes.running(nodes),
        "racks": len(set(node.get("rack") for node in nodes if node.get("state") == "RUNNING")),
        "applications": yarn_nodes.applications(address, own_nodes[0]) if asks_node else [],
        "manager": manager,
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "conf_dir": {"type": "path", "required": True},
            "names": {"type": "list", "elements": "str", "required": True},
            "together": {"type": "list", "elements": "str", "default": []},
            "applications": {"type": "bool", "default": False},
            "drains": {"type": "bool", "default": True},
            "record": {"type": "path", "default": yarn_exclude.RECORD},
        },
        supports_check_mode=True,
    )
    try:
        with yarn_admin.Admin(module.params["conf_dir"], None, None) as admin:
            info = answer(module.params, admin.addresses())
        module.exit_json(changed=False, yarn=info)
    except NoLogin as problem:
        module.fail_json(msg="To ask the ResourceManager, %s." % problem)
    except yarn_nodes.Silent as problem:
        module.fail_json(
            msg="The ResourceManager must answer at its web address, but did not (%s). Start it; if it requires a ticket that its own keytab does not "
            "give, drain the host by your own means (docs/operate/operations.md)." % problem
        )
    except yarn_exclude.Unusable as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(msg="The file of excluded nodes must be readable, but: %s. Solve that, and run again." % error)


if __name__ == "__main__":
    main()
