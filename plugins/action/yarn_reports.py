"""Ask a ResourceManager which NodeManagers report to it, and find the hosts of the inventory whose NodeManagers do not.

The work is in the module yarn_reports.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.data import yarn_nodes
from hadoop_dl.hosts.actions import HostAction


class ActionModule(HostAction):
    """yarn_reports: `nodes` are waited for, at most `patience` seconds. Returns `reporting` (names in YARN), `silent` (those of `nodes` that do not
    report) and `hosts`: their hosts, as far as the inventory has the command that restarts the NodeManager."""

    REQUIRED = ("conf_dir",)
    OPTIONAL = ("nodes", "patience")

    def act(self) -> dict[str, Any]:
        answer = self.module("yarn_reports", **self.args)
        try:
            names = {name: answer.get(name) for name in ("reporting", "silent")}
            reports = yarn_nodes.read_as(yarn_nodes.Reports, names)
        except yarn_nodes.Refused as problem:
            raise AnsibleActionFail(str(problem)) from None
        hosts = [host for host in self.variables["groups"]["all"] if reports.silent and self.restarts(host, reports)]
        return {"reporting": list(reports.reporting), "silent": list(reports.silent), "hosts": hosts}

    def restarts(self, host: str, reports: yarn_nodes.Reports) -> bool:
        values = self.variables["hostvars"][host]
        names = yarn_nodes.names_of(host, values)
        is_silent = any(yarn_nodes.is_named(name, names) for name in reports.silent)
        return is_silent and bool(values.get("yarn_gpu_nodemanager_command"))
