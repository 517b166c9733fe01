"""Cloudera Manager's REST API: what this project reads there."""

import re
from functools import cached_property
from typing import Any
from urllib.parse import quote

from hadoop_dl.hosts.managers.server import ManagerError, Server

Json = dict[str, Any]
OLDEST, NEWEST = 10, 57  # versions of the API; for a newer server the newest known one is used


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
        text = self.server.text("/api/version").strip()
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

    def config(self, *owner: str) -> dict[str, str | None]:
        """The values that are set for an owner: ("clusters", C, "services", S), or a role config group below it, or ("cm", "allHosts")."""
        return {item["name"]: item.get("value") for item in self.items(*owner, "config")}

    def maintenance(self, host: Json) -> bool:
        return bool(host.get("maintenanceMode"))


def listed(server: Server, answer: Any, where: str) -> list[Json]:
    """The items of an answer."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ManagerError(f"{server.named(server.url + where)} must answer with a list of items, but does not.")
    return items
