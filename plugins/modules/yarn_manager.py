#!/usr/bin/python
"""Ask or change YARN on a host that has a ResourceManager: nodes, what leaves, node labels."""

DOCUMENTATION = r"""{
"module": "yarn_manager",
"short_description": "Ask a ResourceManager about its nodes, exclude them, or set their labels",
"description": [
  "On a cluster with Kerberos the login is the ResourceManager's own, if yarn-site.xml names it here; else a ticket that the account has.",
  "Lines of the file of excluded nodes and labels are changed by a record. What the site excluded or labelled itself is refused, and stays.",
  "In some releases of Hadoop a NodeManager that registers with a restarted ResourceManager may never report again. YARN lists it as RUNNING but starts no container there, and marks it LOST after 10 minutes."],
"options": {
  "state": {"description": ["C(nodes): which NodeManagers leave, and who excluded them. C(reports): which report, also if the ResourceManager does not answer.", "C(excluded): with line and record; C(included): without the line; C(forgotten): without the record, once the node runs.", "C(refreshed): YARN has read its file of excluded nodes again, and gives the nodes C(patience) seconds.", "C(labels_present): hosts have these labels; C(labels_absent): they have none of this project's; C(labels_none): no host has; C(labels_stored): the directory of labels is ready."], "type": "str", "choices": ["nodes", "reports", "excluded", "included", "forgotten", "refreshed", "labels_present", "labels_absent", "labels_none", "labels_stored"], "required": true},
  "conf_dir": {"description": "Directory of the ResourceManager's configuration", "type": "path", "required": true},
  "account": {"description": "An account that may administer YARN, such as that of the ResourceManager", "type": "str", "default": "yarn"},
  "program": {"description": "The program yarn, by name or path; hdfs is beside it", "type": "str", "default": "yarn"},
  "names": {"description": "Names of the host whose node is wanted", "type": "list", "elements": "str"},
  "together": {"description": "Names of hosts that leave at the same time", "type": "list", "elements": "str", "default": []},
  "applications": {"description": "Ask the node as well for what runs there", "type": "bool", "default": false},
  "drains": {"description": "false: only what YARN has is asked, not its file of excluded nodes", "type": "bool", "default": true},
  "node": {"description": "The node's name in YARN", "type": "str"},
  "nodes": {"description": "Names of the nodes in YARN that are waited for", "type": "list", "elements": "str", "default": []},
  "gpus": {"description": "What the node offers", "type": "int", "default": 0},
  "hosts": {"description": "Hosts: host, the names of its node, label (empty for none)", "type": "list", "elements": "dict", "default": []},
  "store": {"description": "The directory in which the ResourceManager keeps labels", "type": "str", "default": ""},
  "patience": {"description": "Seconds for NodeManagers to report or to register or to end their containers", "type": "int", "default": 0},
  "record": {"description": "Which lines, or labels, are this project's", "type": "path"}
}}"""

RETURN = r"""
yarn: {description: "version, nodes, running (label -> nodes), racks, applications, manager", type: dict, returned: for nodes}
reporting: {description: Names of the nodes that report, type: list, elements: str, returned: for reports}
silent: {description: "Those of `nodes` that do not", type: list, elements: str, returned: for reports}
"""

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    documented,
    host_yarn,
    mapr,
    node_labels,
    processes,
    yarn_admin,
    yarn_exclude,
    yarn_nodes,
)
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked, unless_checking
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin

WAIT = 600  # seconds for another run to end
LINES = ("excluded", "included", "forgotten")
LABELS = ("labels_present", "labels_absent", "labels_none", "labels_stored")


def nodes(params, addresses):
    """Nodes of these names, those that are being decommissioned and those that the file of excluded nodes has; of others their number."""
    if os.path.exists(mapr.CLUSTERS) and params["drains"]:
        raise yarn_exclude.Unusable(
            "A drain requires Hadoop's own file of excluded nodes, but MapR's Warden runs the services here. Drain the host by MapR's means."
        )
    manager = next((name for name, path in host_yarn.MANAGERS if os.path.exists(path)), None)
    recorded = yarn_exclude.recorded(params["record"] or yarn_exclude.RECORD)
    excluded = set()
    if params["drains"] and not manager:
        excluded = yarn_exclude.names(yarn_exclude.read(yarn_exclude.place(params["conf_dir"])))
    address, version, every_node = yarn_nodes.cluster(addresses)
    matters = []
    own_nodes, batch_nodes = (yarn_nodes.of_host(every_node, params[key]) for key in ("names", "together"))
    for node in every_node:
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
        "running": yarn_nodes.running(every_node),
        "racks": len(set(node.get("rack") for node in every_node if node.get("state") == "RUNNING")),
        "applications": yarn_nodes.applications(address, own_nodes[0]) if asks_node else [],
        "manager": manager,
    }


def reports(module, addresses):
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
    return {"reporting": reporting, "silent": silent}


def answer(module, admin):
    params = module.params
    if params["state"] == "refreshed":
        # -server: the ResourceManager keeps the time limit, also if this run is killed. In HA, yarn finds the active one.
        admin.rmadmin("-refreshNodes", "-g", str(params["patience"]), "-server")
        return {"changed": True}
    if params["state"] == "labels_stored":
        return node_labels.store(module, admin)
    if params["state"] in LABELS:
        return node_labels.settle(module, admin)
    if params["state"] == "reports":
        return reports(module, admin.addresses())
    return {"yarn": nodes(params, admin.addresses())}


def locked(module):
    """The answer; what changes lines or labels is alone on this host."""
    params, state = module.params, module.params["state"]
    if state in LABELS and node_labels.idle(params):
        return {"changed": False}
    if state == "refreshed" and module.check_mode:
        return {"changed": True}
    account, program = (params["account"], params["program"]) if state in LABELS + ("refreshed",) else (None, None)
    admin = yarn_admin.Admin(params["conf_dir"], account, program)
    if state not in LINES + LABELS:
        with admin:
            return answer(module, admin)
    record = params["record"] or yarn_exclude.RECORD
    with unless_checking(module, HostLock("yarn_manager", WAIT, os.path.dirname(os.path.dirname(record)))):
        if state in LINES:
            return yarn_exclude.settle(params, module.check_mode)
        with admin:
            return answer(module, admin)


def main():
    module = AnsibleModule(
        argument_spec=documented.options(DOCUMENTATION),
        required_if=[("state", "nodes", ["names"])] + [("state", state, ["node"]) for state in LINES],
        supports_check_mode=True,
    )
    state = module.params["state"]
    try:
        module.exit_json(**dict({"changed": False}, **locked(module)))
    except NoLogin as problem:
        if state == "reports":
            module.warn("To ask the ResourceManager, %s." % problem)
            module.exit_json(changed=False, reporting=[], silent=module.params["nodes"])
        module.fail_json(msg="To ask the ResourceManager, %s. Nothing was changed." % problem)
    except (HostLocked, node_labels.Refused, yarn_exclude.Unusable) as problem:
        module.fail_json(msg=str(problem))
    except yarn_admin.Failed as problem:
        module.fail_json(msg="%s. Run this again; it goes on from there." % problem)
    except yarn_nodes.Silent as problem:
        module.fail_json(
            msg="The ResourceManager must answer at its web address, but did not (%s). Start it; if it requires a ticket that its own keytab does not "
            "give, do this by your own means (docs/operate/operations.md)." % problem
        )
    except (IOError, OSError) as error:
        module.fail_json(
            msg="The file of excluded nodes and the records of this project must be readable and writable, but: %s. Solve that, and run again."
            % error
        )


if __name__ == "__main__":
    main()
