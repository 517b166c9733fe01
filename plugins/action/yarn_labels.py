"""Give the hosts of a batch their node label in YARN, on a ResourceManager's host (delegate_to, run_once).

The work is in the module yarn_manager.
"""

from typing import Any

from hadoop_dl.data import yarn_nodes, yarn_work
from hadoop_dl.hosts.actions import HostAction

PATIENCE = 120  # seconds for NodeManagers to register


class ActionModule(HostAction):
    """yarn_labels: `state` present (what the plan has for each host), absent, none, or stored (the directory `store`); the others as the module's."""

    REQUIRED = ("state", "conf_dir", "account", "program")
    OPTIONAL = ("store", "record")

    def act(self) -> dict[str, Any]:
        nodes = [self.node(host) for host in self.variables["ansible_play_batch"]]
        arguments = self.args | {"state": f"labels_{self.args['state']}", "patience": PATIENCE}
        self.module("yarn_manager", **arguments, hosts=[node for node in nodes if node])
        return {}

    def node(self, host: str) -> dict[str, Any]:
        """Nothing for a host that has no NodeManager by its plan."""
        values = self.variables["hostvars"][host]
        part = values["plan"]["yarn_gpu"] if self.args["state"] == "present" else {}
        if part and yarn_work.NODE_MANAGER not in part["services"]:
            return {}
        return {"host": host, "names": list(yarn_nodes.names_of(host, values)), "label": part.get("label", "")}
