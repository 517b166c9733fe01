"""Ask a ResourceManager which NodeManagers report to it, and find the hosts of the inventory whose NodeManagers do not.

The work is in the module yarn_manager.
"""

from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.data import yarn_nodes
from hadoop_dl.hosts.actions import HostAction

LOCKED = ("needs_yarn_gpu", "remove_yarn_gpu")  # the groups that layers/run_lock.yml locks for yarn_gpu


class ActionModule(HostAction):
    """yarn_reports: `nodes` are waited for, at most `patience` seconds. Returns `reporting` (names in YARN), `silent` (those of `nodes` that do not
    report) and `hosts`: their hosts (host, node), as far as this run changes and so has locked them, and the inventory has the command that restarts
    the NodeManager."""

    REQUIRED = ("conf_dir",)
    OPTIONAL = ("nodes", "patience")

    def act(self) -> dict[str, Any]:
        answer = self.module("yarn_manager", state="reports", **self.args)
        try:
            names = {name: answer.get(name) for name in ("reporting", "silent")}
            reports = yarn_nodes.read_as(yarn_nodes.Reports, names)
        except yarn_nodes.Refused as problem:
            raise AnsibleActionFail(str(problem)) from None
        groups = self.variables["groups"]
        locked_hosts = [host for name in LOCKED for host in groups.get(name, [])]
        hosts = [{"host": host, "node": node} for host in locked_hosts for node in self.silent_nodes(host, reports)]
        return {"reporting": list(reports.reporting), "silent": list(reports.silent), "hosts": hosts}

    def silent_nodes(self, host: str, reports: yarn_nodes.Reports) -> list[str]:
        values = self.variables["hostvars"][host]
        names = yarn_nodes.names_of(host, values) if values.get("yarn_gpu_nodemanager_command") else []
        return [name for name in reports.silent if yarn_nodes.is_named(name, names)]
