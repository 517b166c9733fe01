"""Switch a host's maintenance mode in Cloudera Manager or Ambari, or take its NodeManager out of YARN and back.

The work is in lib/hadoop_dl/hosts/managers.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ansible.errors import AnsibleActionFail

from hadoop_dl.hosts.actions import HostAction
from hadoop_dl.hosts.managers import connection
from hadoop_dl.hosts.managers.server import ManagerError

STATES = ("checked", "entered", "left", "decommissioned", "recommissioned")
OF_THE_NODEMANAGER = STATES[3:]


class ActionModule(HostAction):
    """manager_maintenance: `state` checked (the host is found there), entered or left; `marker`, a file on the host. Or `state` decommissioned
    or recommissioned, of the host's NodeManager alone, and `seconds` to wait for it.

    The site's manager is that of cluster_manager and cluster_manager_*. The marker says that this project entered: a host that was in
    maintenance mode before stays so. Returns `stays`, a sentence for the case that something fails while the host is in it.
    """

    REQUIRED = ("state",)
    OPTIONAL = ("marker", "seconds")

    def act(self) -> dict[str, Any]:
        state = str(self.args["state"])
        if state not in STATES:
            self.misused(f"a state of {', '.join(STATES)}")
        values = {name: self._templar.template(self.variables.get(name)) for name in connection.VARIABLES}
        try:
            return self.settle(state, values)
        except ManagerError as error:
            unchanged = "" if state in ("left", *OF_THE_NODEMANAGER) else f" {self.host} was not changed."
            raise AnsibleActionFail(f"{error}{unchanged}") from None

    def settle(self, state: str, values: dict[str, Any]) -> dict[str, Any]:
        seconds = float(self.args.get("seconds") or 0)
        manager = connection.connect(values, seconds)
        cluster = str(values["cluster_manager_cluster"] or "")
        names = {
            self.host,
            *(
                str(self.variables[key])
                for key in ("ansible_host", "cloudera_manager_host_id")
                if key in self.variables
            ),
        }
        host = manager.host(cluster, names)
        if state in OF_THE_NODEMANAGER:
            self.changed = True
            if not self.checking:
                manager.set_nodemanager(host, cluster, state == "recommissioned", seconds)
            return {}
        product, in_maintenance = manager.server.product, manager.maintenance(host)  # type: ignore[arg-type]
        if state == "checked":
            return {"in_maintenance": in_maintenance}
        marked = bool(self.module("ansible.legacy.stat", path=self.args["marker"]).get("stat", {}).get("exists"))
        if state == "entered":
            if in_maintenance:
                phrase = "is" if marked else "was before, and stays,"
                return {"stays": f"{self.host} {phrase} in maintenance mode in {product}."}
            self.module("ansible.legacy.file", path=os.path.dirname(str(self.args["marker"])), state="directory")
            self.copy(str(self.args["marker"]), content=json.dumps({"manager": product}) + "\n", mode="0644")
            self.switch(manager, host, cluster, True)
            return {"stays": f"{self.host} stays in maintenance mode in {product} until the same command succeeds."}
        if marked:
            if in_maintenance:
                self.switch(manager, host, cluster, False)
            self.absent(str(self.args["marker"]))
        return {}

    def switch(self, manager: Any, host: dict[str, Any], cluster: str, on: bool) -> None:
        self.changed = True
        if not self.checking:
            connection.settle_maintenance(manager, host, cluster, on)
