"""Set configuration of a service in Cloudera Manager, and restart it if that is needed.

The work is in lib/hadoop_dl/hosts/managers.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.hosts.actions import HostAction
from hadoop_dl.hosts.managers import connection
from hadoop_dl.hosts.managers.cloudera_manager import ClouderaManager
from hadoop_dl.hosts.managers.server import ManagerError

RESTARTS = ("never", "stale")


class ActionModule(HostAction):
    """cloudera_manager_config: `values` of a `service` (its name) or of the only one of a `service_type`; null resets one to its default.

    `role_group`: of this role config group in place of the service. `message`: for Cloudera Manager's history. `restart`: never (default) or
    stale, if processes have an older configuration, waiting `restart_seconds` (1800). It runs on the controller; the manager is that of
    cluster_manager and cluster_manager_*. Returns `before`, `after`, `way_back` (values for this action), `restart_required`, `restarted`.
    """

    REQUIRED = ("values",)
    OPTIONAL = ("service", "service_type", "role_group", "message", "restart", "restart_seconds")
    _requires_connection = False

    def act(self) -> dict[str, Any]:
        if bool(self.args.get("service")) == bool(self.args.get("service_type")):
            self.misused("service or service_type, one of them")
        if self.args.get("restart", "never") not in RESTARTS:
            self.misused(f"restart: {' or '.join(RESTARTS)}")
        values = {name: self._templar.template(self.variables.get(name)) for name in connection.VARIABLES}
        result: dict[str, Any] = {}
        try:
            self.settle(values, float(self.args.get("restart_seconds", 1800)), result)
        except ManagerError as error:
            back = f" The way back: {result['way_back']}." if result.get("way_back") else ""
            raise AnsibleActionFail(f"{error}{back}", result=result) from None
        return result

    def settle(self, values: dict[str, Any], seconds: float, result: dict[str, Any]) -> None:
        """Fills the result as far as it comes, so that a failure has the way back too."""
        manager = connection.connect(values, seconds)
        if not isinstance(manager, ClouderaManager):
            raise ManagerError("cluster_manager must be cloudera_manager for this, but is ambari.")
        cluster = manager.cluster_name(str(values["cluster_manager_cluster"] or ""))
        service = manager.service(
            cluster, str(self.args.get("service") or ""), str(self.args.get("service_type") or "")
        )
        owner = ("clusters", service["cluster"], "services", service["name"])
        if self.args.get("role_group"):
            owner = (*owner, "roleConfigGroups", str(self.args["role_group"]))
        message = str(self.args.get("message") or "Set by hadoop-deeplearning")
        texts = connection.text_values(self.args["values"])
        result.update(service=service["name"], cluster=service["cluster"])
        connection.change_config(manager, owner, texts, "" if self.checking else message, result)
        self.changed = result["before"] != result["after"]
        if self.changed:
            self.diff = [{"before_header": service["name"], "after_header": service["name"], **self.shown(result)}]
        stale = connection.stale(manager, service)
        result.update(restart_required=stale or (self.checking and self.changed), restarted=False)
        if self.args.get("restart") == "stale" and stale and not self.checking:
            connection.restart(manager, service, seconds)
            result.update(restart_required=False, restarted=True)
            self.changed = True

    def shown(self, result: dict[str, Any]) -> dict[str, str]:
        """Both sides of the diff, one setting a line."""
        return {
            side: "".join(
                f"{name}: {'(default)' if value is None else value}\n" for name, value in sorted(result[side].items())
            )
            for side in ("before", "after")
        }
