"""Ambari's REST API: what this project reads there."""

from typing import Any

from hadoop_dl.hosts.managers.cloudera_manager import listed, path
from hadoop_dl.hosts.managers.server import ManagerError, Server

Json = dict[str, Any]
PAGE = 100  # hosts of one answer; without page_size Ambari sends all at once
HOST_FIELDS = ",".join(
    [
        f"Hosts/{name}"
        for name in ("host_name", "public_host_name", "ip", "rack_info", "host_status", "maintenance_state")
    ]
    + ["host_components/HostRoles/component_name"]
)
ROOT = "/api/v1"


class Ambari:
    """One Ambari server; `page` is the number of items that one answer has."""

    def __init__(self, server: Server, page: int = PAGE) -> None:
        self.server, self.page = server, page

    def clusters(self) -> list[Json]:
        """name and version (HDP-3.1) of every cluster."""
        items = listed(self.server, self.server.get(ROOT + "/clusters", fields="Clusters/version"), "/clusters")
        return [self.part(item, "Clusters") for item in items]

    def cluster(self, name: str) -> Json:
        """The cluster of this name, or the only one."""
        clusters = self.clusters()
        names = [str(cluster.get("cluster_name")) for cluster in clusters]
        if name in names:
            return clusters[names.index(name)]
        if name or len(clusters) != 1:
            requirement = f"the cluster {name}" if name else "one cluster, or the inventory its name,"
            raise ManagerError(f"{self.server} must have {requirement} but has {', '.join(names) or 'none'}.")
        return clusters[0]

    def hosts(self, cluster: str) -> list[Json]:
        """All hosts of a cluster with their components, page by page."""
        hosts_path = ROOT + path("clusters", cluster, "hosts")
        hosts: dict[str, Json] = {}
        while True:
            query = {"fields": HOST_FIELDS, "page_size": str(self.page), "from": str(len(hosts)) if hosts else "start"}
            items = listed(self.server, self.server.get(hosts_path, **query, sortBy="Hosts/host_name.asc"), hosts_path)
            count = len(hosts)
            hosts.update({str(self.part(item, "Hosts").get("host_name")): item for item in items})
            if len(items) < self.page:
                return list(hosts.values())
            if len(hosts) == count:
                raise ManagerError(
                    f"{self.server.named(self.server.url + hosts_path)} sends the same page again and again."
                )

    def maintenance(self, host: Json) -> bool:
        """Whether the host itself is in maintenance; one of its services alone does not count."""
        return host.get("maintenance_state") == "ON"

    def part(self, item: Any, name: str) -> Json:
        part = item.get(name) if isinstance(item, dict) else None
        if not isinstance(part, dict):
            raise ManagerError(f"{self.server} must answer with {name}, but does not.")
        return part
