"""Cloudera Manager's REST API: what this project reads and changes there."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

from hadoop_dl.hosts.managers.server import ManagerError, Server, Unavailable

Json = dict[str, Any]
OLDEST, NEWEST = 10, 57  # versions of the API; for a newer server the newest known one is used
POLL = 2.0  # seconds between two requests for a command's state


def path(*names: str) -> str:
    """A path of names as they are in the server; each may have any character."""
    return "".join("/" + quote(name, safe="") for name in names)


class ClouderaManager:
    """One Cloudera Manager. Lists are complete: this API has no pages for what is read here."""

    def __init__(self, server: Server) -> None:
        self.server = server

    @cached_property
    def api(self) -> str:
        """/api/vN: the server's own version, at most the newest known one."""
        text = self.server.text("GET", "/api/version").strip()
        match = re.fullmatch(r"v(\d{1,4})", text)
        if not match:
            self.server.fail_on_text("/api/version", text)
        if int(match[1]) < OLDEST:
            raise ManagerError(f"{self.server} must know version v{OLDEST} of its API or later, but has {text}.")
        return f"/api/v{min(int(match[1]), NEWEST)}"

    def items(self, *names: str, **query: str) -> list[Json]:
        return listed(self.server, self.server.get(self.api + path(*names), **query), path(*names))

    def clusters(self) -> list[Json]:
        return self.items("clusters", clusterType="any")

    def hosts(self) -> list[Json]:
        return self.items("hosts", view="full")

    def services(self, cluster: str) -> list[Json]:
        return self.items("clusters", cluster, "services")

    def roles(self, cluster: str, service: str) -> list[Json]:
        return self.items("clusters", cluster, "services", service, "roles")

    def parcels(self, cluster: str) -> list[Json]:
        return self.items("clusters", cluster, "parcels")

    def host(self, cluster: str, names: set[str]) -> Json:
        """The host with one of these names, addresses or ids, of any cluster."""
        matches = [
            host for host in self.items("hosts") if names & {host.get(k) for k in ("hostId", "hostname", "ipAddress")}
        ]
        return only_host(self.server, matches, names)

    def cluster_name(self, name: str) -> str:
        """The name of a cluster in references, found by that name or by the one in the user interface; empty for empty."""
        if not name:
            return ""
        names = [
            str(cluster["name"])
            for cluster in self.clusters()
            if name in (cluster.get("name"), cluster.get("displayName"))
        ]
        if not names:
            raise ManagerError(f"{self.server} has no cluster {name}. Correct its name.")
        return names[0]

    def service(self, cluster: str, name: str = "", kind: str = "") -> Json:
        """The service of this name or type, in this cluster or, if none is named, in the one that has it."""
        clusters = [cluster] if cluster else [item["name"] for item in self.clusters()]
        matches = [
            {**service, "cluster": cluster_name}
            for cluster_name in clusters
            for service in self.services(cluster_name)
            if (name and service.get("name") == name) or (not name and service.get("type") == kind)
        ]
        if len(matches) != 1:
            description = f"the service {name}" if name else f"a service of type {kind}"
            count = "none" if not matches else f"{len(matches)} of them"
            raise ManagerError(
                f"{self.server} must have {description} in {', '.join(clusters) or 'a cluster'} once, but has {count}. "
                "Name cluster and service."
            )
        return matches[0]

    def config(self, *owner: str) -> dict[str, str | None]:
        """The values that are set for an owner: ("clusters", C, "services", S), or a role config group below it, or ("cm", "allHosts")."""
        return {item["name"]: item.get("value") for item in self.items(*owner, "config")}

    def config_details(self, *owner: str) -> dict[str, Json]:
        """Every value that an owner can have, set or not."""
        return {item["name"]: item for item in self.items(*owner, "config", view="full")}

    def set_config(self, owner: tuple[str, ...], values: Mapping[str, str | None], message: str) -> None:
        """Set these values and leave all others; None resets one to its default."""
        body = {"items": [{"name": name, "value": value} for name, value in sorted(values.items())]}
        self.server.json("PUT", self.api + path(*owner, "config"), body, {"message": message})

    def maintenance(self, host: Json) -> bool:
        return bool(host.get("maintenanceMode"))

    def set_maintenance(self, host: Json, on: bool) -> None:
        command = "enterMaintenanceMode" if on else "exitMaintenanceMode"
        answer = self.server.json("POST", self.api + path("hosts", host["hostId"], "commands", command))
        self.finished(answer, command, 60.0)

    def set_nodemanager(self, host: Json, cluster: str, on: bool, seconds: float) -> None:
        """Decommission the host's NodeManager, or recommission and start it: roles of a service, so the host's DataNode stays as it is.

        https://cloudera.github.io/cm_api/apidocs/v10/path__clusters_-clusterName-_services_-serviceName-_commands_decommission.html: "Decommission
        roles of a service"; that this is also the NodeManager's:
        https://docs.cloudera.com/cdp-private-cloud-base/7.1.9/managing-clusters/topics/cm-role-instance-decommission.html
        """
        service = self.service(self.cluster_name(cluster), kind="YARN")
        names = (str(service["cluster"]), str(service["name"]))
        roles = [
            item
            for item in self.roles(*names)
            if item.get("type") == "NODEMANAGER" and item.get("hostRef", {}).get("hostId") == host["hostId"]
        ]
        if len(roles) != 1:
            raise ManagerError(
                f"{self.server} must have one NodeManager of {names[1]} on {host.get('hostname')}, but has {len(roles)}."
            )
        role, owner = roles[0], ("clusters", names[0], "services", names[1])
        body, commissioned = {"items": [str(role["name"])]}, role.get("commissionState", "COMMISSIONED")
        if on is not (commissioned == "COMMISSIONED"):
            self.run(owner, "recommission" if on else "decommission", seconds, body)
        if on and role.get("roleState") != "STARTED":
            answer = self.server.json("POST", self.api + path(*owner, "roleCommands", "start"), body)
            for command in listed(self.server, answer, "roleCommands/start"):
                self.finished(command, "start", seconds)

    def run(self, owner: tuple[str, ...], command: str, seconds: float, body: Any = None) -> Json:
        """Start a command and wait for its end, within this time."""
        answer = self.server.json("POST", self.api + path(*owner, "commands", command), body)
        return self.finished(answer, command, seconds)

    def finished(self, command: Any, name: str, seconds: float) -> Json:
        """The ended command. A server that does not answer a request is asked again, within this time."""
        server, end, silent = self.server, time.monotonic() + seconds, ""
        if not isinstance(command, dict) or "active" not in command:
            raise ManagerError(
                f"{server} must answer {name} with a command, but did not. Look at its page of recent commands."
            )
        while command["active"]:
            if time.monotonic() >= end:
                last = f" The last answer was: {silent}" if silent else ""
                raise Unavailable(
                    f"{server} must end the command {name} ({command.get('id')}) within {seconds:g} s, but it still runs. "
                    f"Look at its page of recent commands.{last}"
                )
            time.sleep(min(POLL, max(0.0, end - time.monotonic())))
            try:
                command = self.server.get(self.api + path("commands", str(command["id"])))
                silent = ""
            except Unavailable as error:
                silent = str(error)
        if not command.get("success"):
            reason = " ".join(str(command.get("resultMessage") or "no reason").split())
            raise ManagerError(
                f"{server} ended the command {name} ({command.get('id')}) without success: {reason[:300]}"
            )
        return dict(command)


def only_host(server: Server, hosts: list[Json], names: set[str]) -> Json:
    """The host that was found by these names."""
    if len(hosts) != 1:
        description = "no host" if not hosts else "several hosts"
        raise ManagerError(f"{server} has {description} of the name {' or '.join(sorted(names))}.")
    return hosts[0]


def listed(server: Server, answer: Any, where: str) -> list[Json]:
    """The items of an answer."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ManagerError(f"{server.named(server.url + where)} must answer with a list of items, but does not.")
    return items
