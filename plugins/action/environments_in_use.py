"""List the environments that hosts of the inventory name after the switch: run once.

The work is in lib/hadoop_dl/hosts/active_environments.py.
"""

from typing import Any

from hadoop_dl.hosts import active_environments
from hadoop_dl.hosts.actions import OnceAction


class ActionModule(OnceAction):
    """environments_in_use: returns `names`, and `unknown`: hosts that were lost or never read, so their environment is not known."""

    def act(self) -> dict[str, Any]:
        variables, groups = self.variables, self.variables["groups"]
        hosts = {name: variables["hostvars"].raw_get(name) for name in groups["all"]}
        # Whether or not this run addresses them.
        cluster = [*groups.get("data_nodes", []), *groups.get("edge_nodes", [])]
        required_hosts = [*variables["ansible_play_hosts_all"], *cluster]
        answer = active_environments.in_use(hosts, required_hosts, variables["ansible_play_hosts"])
        return {"names": answer["names"], "unknown": answer["unknown"]}
