"""Tell which environments hosts of the inventory name, after the switch: run once. The work is in lib/hadoop_dl/hosts/active_environments.py."""

from __future__ import annotations

from typing import Any

from hadoop_dl.hosts import active_environments
from hadoop_dl.hosts.actions import OnceAction


class ActionModule(OnceAction):
    """environments_in_use: returns `names`, and `unknown`, hosts that were lost or never read, and that name nobody knows what."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        hosts = {name: variables["hostvars"].raw_get(name) for name in variables["groups"]["all"]}
        groups = variables["groups"]
        cluster = [
            *groups.get("data_nodes", []),
            *groups.get("edge_nodes", []),
        ]  # whether or not this run addresses them
        asked = [*variables["ansible_play_hosts_all"], *cluster]
        found = active_environments.in_use(hosts, asked, variables["ansible_play_hosts"])
        return {**result, "changed": False, "names": found["names"], "unknown": found["unknown"]}
