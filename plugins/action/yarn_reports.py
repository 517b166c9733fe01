"""Ask a ResourceManager which NodeManagers report to it, and find the hosts of the inventory whose NodeManagers do not.

The work is in the module yarn_reports.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from hadoop_dl.data import typed, yarn_nodes
from hadoop_dl.hosts.actions import HostAction


@dataclass(frozen=True)
class Reports:
    reporting: tuple[Annotated[str, yarn_nodes.NAME], ...]
    silent: tuple[Annotated[str, yarn_nodes.NAME], ...]


class ActionModule(HostAction):
    """yarn_reports: `nodes` are waited for, at most `patience` seconds. Returns `reporting` (names in YARN), `silent` (those of `nodes` that do not
    report) and `hosts`: their hosts, as far as the inventory has the command that restarts the NodeManager."""

    REQUIRED = ("conf_dir",)
    OPTIONAL = ("nodes", "patience")

    def act(self) -> dict[str, Any]:
        answer = self.module("yarn_reports", **self.args)
        reports = typed.read(Reports, {name: answer[name] for name in ("reporting", "silent")})
        hosts = [host for host in self.variables["groups"]["all"] if reports.silent and self.restarts(host, reports)]
        return {"reporting": list(reports.reporting), "silent": list(reports.silent), "hosts": hosts}

    def restarts(self, host: str, reports: Reports) -> bool:
        values = self.variables["hostvars"][host]
        names = yarn_nodes.names_of(host, values)
        is_silent = any(yarn_nodes.is_named(name, names) for name in reports.silent)
        return is_silent and bool(values.get("yarn_gpu_nodemanager_command"))
