"""Cloudera Manager and Ambari on loopback, over HTTP or HTTPS, with answers of the real ones' shape; or faults, as told.

Sources of the shapes: Cloudera's API of 5.11 to 6.3 as recorded in public lab notes (`/api/v14/hosts`, `/cm/deployment`: github.com/…/SEBC,
challenges/labs/3_cm.md, enterprise/labs/2_cluster_deployment.md) and cm-client 45.0.4; Ambari: ambari-server/docs/api/v1 (clusters.md, hosts.md,
index.md for pages), BaseRequest.java. Names and addresses are invented.
"""

import base64
import json
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopback import Quiet, served

USER, PASSWORD = "reader", "s3cret/pass word"  # of this server only
LOGIN_PAGE = "<!DOCTYPE html><html><body>Please log in</body></html>"


class Manager:
    """What both servers share. `faults` maps a path to what happens to the next requests for it."""

    def __init__(self) -> None:
        self.faults: dict[str, list[str]] = {}
        self.requests: list[tuple[str, str]] = []  # method and path with query
        self.authorizations: list[str] = []
        self.url = ""
        self.elsewhere = ""  # where the fault "redirect" points to

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        raise NotImplementedError


def cm_host(number: int, name: str, **more: Any) -> dict[str, Any]:
    return {
        "hostId": f"c4bc8f77-0000-4000-8000-{number:012d}",
        "ipAddress": f"172.31.16.{number}",
        "hostname": name,
        "rackId": "/default",
        "hostUrl": f"http://cm01.example.com:7180/cmf/hostRedirect/{number}",
        "maintenanceMode": False,
        "maintenanceOwners": [],
        "commissionState": "COMMISSIONED",
        "healthSummary": "GOOD",
        "numCores": 4,
        "numPhysicalCores": 2,
        "totalPhysMemBytes": 15664758784,
        **more,
    }


class Cloudera(Manager):
    """One cluster `cluster` (shown as "Demo Cluster") with HDFS, YARN, Spark and CDSW on parcels."""

    def __init__(self) -> None:
        super().__init__()
        self.api_version = "v19"
        names = ("master01", "data01", "data02", "edge01", "cdsw01", "spare01")
        self.hosts = [cm_host(number, f"{name}.example.com") for number, name in enumerate(names, 1)]
        self.parcels = [
            ("CDH", "5.16.2-1.cdh5.16.2.p0.8", "DISTRIBUTED"),
            ("CDH", "5.16.2-1.cdh5.16.2.p0.8", "ACTIVATED"),
        ]
        self.all_hosts: dict[str, str] = {}
        self.services = {"hdfs": "HDFS", "yarn": "YARN", "spark_on_yarn": "SPARK_ON_YARN", "cdsw": "CDSW"}
        self.roles = {
            "hdfs": [("NAMENODE", 1), ("DATANODE", 2), ("DATANODE", 3), ("GATEWAY", 4)],
            "yarn": [("RESOURCEMANAGER", 1), ("NODEMANAGER", 2), ("NODEMANAGER", 3), ("GATEWAY", 4), ("GATEWAY", 5)],
            "spark_on_yarn": [("GATEWAY", 2), ("GATEWAY", 4), ("GATEWAY", 5)],
            "cdsw": [("CDSW_MASTER", 5), ("CDSW_DOCKER", 5), ("CDSW_APPLICATION", 5)],
        }

    def service(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": self.services[name],
            "clusterRef": {"clusterName": "cluster"},
            "serviceState": "STARTED",
            "healthSummary": "GOOD",
            "configStalenessStatus": "FRESH",
            "clientConfigStalenessStatus": "FRESH",
            "maintenanceMode": False,
            "maintenanceOwners": [],
            "displayName": name.title(),
            "entityStatus": "GOOD_HEALTH",
        }

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if path == "/api/version":
            return 200, self.api_version
        version, *parts = path.removeprefix("/api/").split("/")
        if int(version[1:]) > int(self.api_version[1:]):
            return 404, {"message": "HTTP 404 Not Found"}
        match [urllib.parse.unquote(part) for part in parts]:
            case ["clusters"]:
                cluster = {"name": "cluster", "displayName": "Demo Cluster", "version": "CDH5", "fullVersion": "5.16.2"}
                return 200, {"items": [{**cluster, "maintenanceMode": False, "entityStatus": "GOOD_HEALTH"}]}
            case ["hosts"]:
                summary = query.get("view") != "full"
                return 200, {
                    "items": [
                        {k: v for k, v in host.items() if not summary or k != "healthSummary"} for host in self.hosts
                    ]
                }
            case ["cm", "allHosts", "config"]:
                return 200, {"items": [{"name": name, "value": value} for name, value in self.all_hosts.items()]}
            case ["clusters", "cluster", "parcels"]:
                keys = ("product", "version", "stage")
                rows = [
                    dict(zip(keys, parcel, strict=True)) | {"clusterRef": {"clusterName": "cluster"}}
                    for parcel in self.parcels
                ]
                return 200, {"items": rows}
            case ["clusters", "cluster", "services"]:
                return 200, {"items": [self.service(name) for name in self.services]}
            case ["clusters", "cluster", "services", name, "roles"] if name in self.services:
                return 200, {"items": [self.role(name, kind, number) for kind, number in self.roles[name]]}
            case ["clusters", "cluster"]:
                return 200, {"name": "cluster"}
            case ["clusters", other, *_] if other != "cluster":
                return 404, {"message": f"Cluster '{other}' not found."}
        return 404, {"message": "HTTP 404 Not Found"}

    def role(self, service: str, kind: str, number: int) -> dict[str, Any]:
        return {
            "name": f"{service}-{kind}-{number:032x}",
            "type": kind,
            "serviceRef": {"clusterName": "cluster", "serviceName": service},
            "hostRef": {"hostId": self.hosts[number - 1]["hostId"]},
            "roleConfigGroupRef": {"roleConfigGroupName": f"{service}-{kind}-BASE"},
            "roleState": "NA" if kind == "GATEWAY" else "STARTED",
            "commissionState": "COMMISSIONED",
        }


class AmbariServer(Manager):
    """One HDP cluster; pages as BaseRequest.java makes them: 20 hosts if no size is asked for but a place is."""

    def __init__(self) -> None:
        super().__init__()
        components = {
            "master01": ["NAMENODE", "RESOURCEMANAGER", "YARN_CLIENT", "SPARK2_CLIENT"],
            "data01": ["DATANODE", "NODEMANAGER", "SPARK2_CLIENT"],
            "data02": ["DATANODE", "NODEMANAGER"],
            "edge01": ["HDFS_CLIENT", "YARN_CLIENT", "SPARK2_CLIENT"],
        }
        self.components = {f"{name}.example.com": parts for name, parts in components.items()}
        self.clusters = {"demo": "HDP-3.1"}

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        match path.removeprefix("/api/v1/").split("/"):
            case ["clusters"]:
                items = [{"Clusters": {"cluster_name": name, "version": v}} for name, v in self.clusters.items()]
                return 200, {"href": self.url + path, "items": items}
            case ["clusters", "demo", "hosts"]:
                names = sorted(self.components)
                if "page_size" in query or "from" in query:
                    begin = 0 if query.get("from", "start") == "start" else int(query["from"])
                    names = names[begin : begin + int(query.get("page_size", 20))]
                return 200, {"href": self.url + path, "items": [self.host(name) for name in names]}
        name = path.rpartition("/")[2]
        return 404, {
            "status": 404,
            "message": f"The requested resource doesn't exist: Cluster not found, clusterName={name}",
        }

    def host(self, name: str) -> dict[str, Any]:
        number = sorted(self.components).index(name) + 1
        fields = {
            "cluster_name": "demo",
            "host_name": name,
            "public_host_name": name,
            "ip": f"172.31.17.{number}",
            "rack_info": "/default-rack",
            "host_status": "HEALTHY",
            "maintenance_state": "OFF",
        }
        parts = [
            {"HostRoles": {"cluster_name": "demo", "component_name": part, "host_name": name}}
            for part in self.components[name]
        ]
        return {"href": f"{self.url}/api/v1/clusters/demo/hosts/{name}", "Hosts": fields, "host_components": parts}


class Handler(Quiet):
    manager: Manager
    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        manager, parts = self.manager, urllib.parse.urlsplit(self.path)
        manager.requests.append((self.command, self.path))
        authorization = self.headers.get("Authorization") or ""
        manager.authorizations.append(authorization)
        if faults := manager.faults.get(parts.path):
            self.fail(faults.pop(0))
            return
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if authorization not in (expected, "Bearer t0ken"):
            self.send(401, "<html><title>Error 401 Bad credentials</title></html>", Content_Type="text/html")
            return
        query = dict(urllib.parse.parse_qsl(parts.query))
        code, answer = manager.answer(parts.path, query)
        if isinstance(answer, str):
            self.send(code, answer, Content_Type="text/plain")
        else:
            self.send(code, json.dumps(answer))

    do_GET = respond

    def fail(self, fault: str) -> None:
        name, _, more = fault.partition(" ")
        if name.isdigit():
            self.send(int(name), json.dumps({"message": f"refused for {self.headers.get('Authorization')}"}))
        elif name == "page":
            self.send(200, LOGIN_PAGE, Content_Type="text/html")
        elif name == "words":
            self.send(200, "all is well")
        elif name == "redirect":
            self.send(302, "", Location=more or self.manager.elsewhere + self.path)
        elif name == "truncate":
            self.send(200, '{"items": [', Content_Length="5000")
            self.close_connection = True
        elif name == "nested":
            self.send(200, "[" * 100_000)
        elif name == "half":
            self.send(200, '{"items": [')
        elif name == "slow":
            time.sleep(float(more))
            self.close_connection = True
        elif name == "trickle":
            self.send_response(200)
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                for _ in range(200):
                    self.wfile.write(b" ")
                    time.sleep(0.05)
            except OSError:
                self.close_connection = True
        else:
            raise AssertionError(fault)

    def send(self, code: int, text: str, **headers: str) -> None:
        cookie = "CLOUDERA_MANAGER_SESSIONID=node01;Path=/;HttpOnly"
        self.answer(code, text.encode(), **{"Content_Type": "application/json", "Set_Cookie": cookie, **headers})


@contextmanager
def serving(manager: Manager, *certificate: Path) -> Iterator[Manager]:
    handler = type("BoundHandler", (Handler,), {"manager": manager})
    with served(handler, *certificate) as manager.url:
        yield manager
