"""Ambari's REST API: what this project reads and changes there."""

from __future__ import annotations

import time
from typing import Any

from hadoop_dl.hosts.managers.cloudera_manager import POLL, listed, only_host, path
from hadoop_dl.hosts.managers.server import ManagerError, Server, Unavailable

Json = dict[str, Any]
PAGE = 100  # hosts of one answer; without page_size Ambari sends all at once
HEADERS = {"X-Requested-By": "hadoop-deeplearning"}  # without it Ambari refuses every change
HOST_FIELDS = ",".join(
    [
        f"Hosts/{name}"
        for name in ("host_name", "public_host_name", "ip", "rack_info", "host_status", "maintenance_state")
    ]
    + ["host_components/HostRoles/component_name"]
)
ROOT = "/api/v1"
ENDED = ("FAILED", "ABORTED", "TIMEDOUT", "COMPLETED")  # HostRoleStatus.java


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

    def config(self, cluster: str, kind: str) -> dict[str, str]:
        """The properties of the configuration that is active, such as yarn-site."""
        cluster_path = ROOT + path("clusters", cluster)
        desired_configs = self.part(self.server.get(cluster_path, fields="Clusters/desired_configs"), "Clusters").get(
            "desired_configs", {}
        )
        if kind not in desired_configs:
            raise ManagerError(f"{self.server.named(self.server.url + cluster_path)} has no configuration {kind}.")
        items = listed(
            self.server,
            self.server.get(cluster_path + "/configurations", type=kind, tag=str(desired_configs[kind]["tag"])),
            cluster_path,
        )
        return {str(key): str(value) for item in items for key, value in item.get("properties", {}).items()}

    def host(self, cluster: str, names: set[str]) -> Json:
        """The host with one of these names or addresses, with its cluster."""
        name = str(self.cluster(cluster)["cluster_name"])
        matches = [
            {**host, "cluster_name": name}
            for host in (self.part(item, "Hosts") for item in self.hosts(name))
            if names & {host.get(key) for key in ("host_name", "public_host_name", "ip")}
        ]
        return only_host(self.server, matches, names)

    def maintenance(self, host: Json) -> bool:
        """Whether the host itself is in maintenance; one of its services alone does not count."""
        return host.get("maintenance_state") == "ON"

    def set_maintenance(self, host: Json, on: bool) -> None:
        state = "ON" if on else "OFF"
        body = {
            "RequestInfo": {"context": f"Maintenance mode {state} by hadoop-deeplearning"},
            "Body": {"Hosts": {"maintenance_state": state}},
        }
        self.server.json("PUT", ROOT + path("clusters", host["cluster_name"], "hosts", host["host_name"]), body)

    def set_nodemanager(self, host: Json, cluster: str, on: bool, seconds: float) -> None:
        """Decommission the host's NodeManager, or recommission and start it; no DataNode is named.

        Form: ambari-server/docs/api/v1/requests.md; names: AmbariCustomCommandExecutionHelper.java (github.com/apache/ambari).
        """
        name, cluster_path = str(host["host_name"]), path("clusters", host["cluster_name"])
        level = {
            "level": "HOST_COMPONENT",
            "cluster_name": host["cluster_name"],
            "host_name": name,
            "service_name": "YARN",
        }
        body = {
            "RequestInfo": {
                "context": f"{'Recommission' if on else 'Decommission'} the NodeManager by hadoop-deeplearning",
                "command": "DECOMMISSION",
                "parameters": {"slave_type": "NODEMANAGER", "included_hosts" if on else "excluded_hosts": name},
                "operation_level": level,
            },
            "Requests/resource_filters": [{"service_name": "YARN", "component_name": "RESOURCEMANAGER"}],
        }
        self.ended(cluster_path, self.server.json("POST", ROOT + cluster_path + "/requests", body), seconds)
        if on:
            start = {
                "RequestInfo": {"context": "Start the NodeManager by hadoop-deeplearning"},
                "Body": {"HostRoles": {"state": "STARTED"}},
            }
            component = path("hosts", name, "host_components", "NODEMANAGER")
            answer = self.server.json("PUT", ROOT + cluster_path + component, start)
            if answer is not None:  # it does not run yet
                self.ended(cluster_path, answer, seconds)

    def ended(self, cluster: str, answer: Any, seconds: float) -> None:
        """Wait until a request has ended, within this time."""
        number, end, status = str(self.part(answer, "Requests").get("id")), time.monotonic() + seconds, ""
        while status not in ENDED:
            if time.monotonic() >= end:
                raise Unavailable(
                    f"{self.server} must end the request {number} within {seconds:g} s, but it is {status}. Look at its "
                    "background operations."
                )
            time.sleep(min(POLL, max(0.0, end - time.monotonic())) if status else 0)
            request = self.server.get(ROOT + cluster + path("requests", number), fields="Requests/request_status")
            status = str(self.part(request, "Requests").get("request_status"))
        if status != "COMPLETED":
            raise ManagerError(
                f"{self.server} ended the request {number} as {status}. Look at its background operations."
            )

    def part(self, item: Any, name: str) -> Json:
        part = item.get(name) if isinstance(item, dict) else None
        if not isinstance(part, dict):
            raise ManagerError(f"{self.server} must answer with {name}, but does not.")
        return part
