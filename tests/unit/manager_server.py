"""Cloudera Manager and Ambari on loopback, over HTTP or HTTPS, with answers of the real ones' shape; or faults, as told.

Sources of the shapes: Cloudera's API of 5.11 to 6.3 as recorded in public lab notes (`/api/v14/hosts`, `/cm/deployment`: github.com/…/SEBC,
challenges/labs/3_cm.md, enterprise/labs/2_cluster_deployment.md) and cm-client 45.0.4; Ambari: ambari-server/docs/api/v1 (clusters.md, hosts.md,
host-components.md, requests.md, index.md for pages), AmbariCsrfProtectionFilter.java, BaseRequest.java, AmbariCustomCommandExecutionHelper.java.
Roles are decommissioned as in cloudera.github.io/cm_api/apidocs/v10 (ApiRoleNameList, ApiBulkCommandList). Names and addresses are invented.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopback import Quiet, served

USER, PASSWORD = "reader", "s3cret/pass word"  # of this server only
LOGIN_PAGE = "<!DOCTYPE html><html><body>Please log in</body></html>"


class Manager:
    """What both servers share. `faults` maps a path to what happens to the next requests for it, `*` to any."""

    def __init__(self) -> None:
        self.faults: dict[str, list[str]] = {}
        self.requests: list[tuple[str, str]] = []  # method and path with query
        self.authorizations: list[str] = []
        self.bodies: list[Any] = []
        self.url = ""
        self.elsewhere = ""  # where the fault "redirect" points to
        self.meanwhile: Callable[[str], object] = lambda path: None

    def changes(self) -> list[tuple[str, str]]:
        return [(method, path) for method, path in self.requests if method != "GET"]

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, headers: Any) -> tuple[int, Any]:
        raise NotImplementedError


def manager_inputs(manager: Manager) -> dict[str, str]:
    """What a site sets to use this server."""
    return {
        "cluster_manager": "ambari" if isinstance(manager, AmbariServer) else "cloudera_manager",
        "cluster_manager_url": manager.url,
        "cluster_manager_user": USER,
        "cluster_manager_password": PASSWORD,
    }


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


ROLE_COMMANDS = (["commands", "decommission"], ["commands", "recommission"], ["roleCommands", "start"])


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
        self.config: dict[str, dict[str, str]] = {"cdsw": {"cdsw.domain.config": "cdsw.example.com"}}
        # Role config groups by the names of their service and role: only Docker's has its block devices.
        self.group_config: dict[str, dict[str, str]] = {"cdsw-CDSW_DOCKER-BASE": {}}
        self.known = {"cdsw.enable.gpu.config": "false", "cdsw.nvidia.lib.path.config": "", "cdsw.domain.config": ""}
        self.stale = False
        self.commands: dict[int, list[dict[str, Any]]] = {}  # the answers still to come, one for each look
        self.restart_fails = False
        self.out: set[str] = set()  # decommissioned roles
        self.stopped: set[str] = set()

    def host(self, host_id: str) -> dict[str, Any]:
        return next(host for host in self.hosts if host["hostId"] == host_id)

    def service(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "type": self.services[name],
            "clusterRef": {"clusterName": "cluster"},
            "serviceState": "STARTED",
            "healthSummary": "GOOD",
            "configStalenessStatus": "STALE" if self.stale and name == "cdsw" else "FRESH",
            "clientConfigStalenessStatus": "FRESH",
            "maintenanceMode": False,
            "maintenanceOwners": [],
            "displayName": name.title(),
            "entityStatus": "GOOD_HEALTH",
        }

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, headers: Any) -> tuple[int, Any]:
        if path == "/api/version":
            return 200, self.api_version
        version, *parts = path.removeprefix("/api/").split("/")
        parts = [urllib.parse.unquote(part) for part in parts]
        if int(version[1:]) > int(self.api_version[1:]):
            return 404, {"message": "HTTP 404 Not Found"}
        if method == "GET":
            return self.get(parts, query)
        return self.change(method, parts, body)

    def get(self, rest: list[str], query: dict[str, str]) -> tuple[int, Any]:
        match rest:
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
            case ["commands", number] if int(number) in self.commands:
                answers = self.commands[int(number)]
                return 200, answers.pop(0) if len(answers) > 1 else answers[0]
            case ["clusters", "cluster", "parcels"]:
                keys = ("product", "version", "stage")
                rows = [
                    dict(zip(keys, parcel, strict=True)) | {"clusterRef": {"clusterName": "cluster"}}
                    for parcel in self.parcels
                ]
                return 200, {"items": rows}
            case ["clusters", "cluster", "services"]:
                return 200, {"items": [self.service(name) for name in self.services]}
            case ["clusters", "cluster", "services", name] if name in self.services:
                return 200, self.service(name)
            case ["clusters", "cluster", "services", name, "roles"] if name in self.services:
                return 200, {"items": [self.role(name, kind, number) for kind, number in self.roles[name]]}
            case ["clusters", "cluster", "services", name, "config"] if name in self.services:
                return 200, {"items": self.config_items(name, query.get("view") == "full")}
            case ["clusters", "cluster", "services", "cdsw", "roleConfigGroups", name, "config"]:
                if name not in self.group_config:
                    return 404, {"message": f"Role config group '{name}' not found."}
                full = query.get("view") == "full"
                return 200, {"items": setting_items(self.group_config[name], {DEVICES: ""} if full else None)}
            case ["clusters", other, *_] if other != "cluster":
                return 404, {"message": f"Cluster '{other}' not found."}
        return 404, {"message": "HTTP 404 Not Found"}

    def role(self, service: str, kind: str, number: int) -> dict[str, Any]:
        name = self.named(service, kind, number)
        return {
            "name": name,
            "type": kind,
            "serviceRef": {"clusterName": "cluster", "serviceName": service},
            "hostRef": {"hostId": self.hosts[number - 1]["hostId"]},
            "roleConfigGroupRef": {"roleConfigGroupName": f"{service}-{kind}-BASE"},
            "roleState": "NA" if kind == "GATEWAY" else "STOPPED" if name in self.stopped else "STARTED",
            "commissionState": "DECOMMISSIONED" if name in self.out else "COMMISSIONED",
        }

    @staticmethod
    def named(service: str, kind: str, number: int) -> str:
        return f"{service}-{kind}-{number:032x}"

    def command(self, name: str, success: bool, **result: str) -> dict[str, Any]:
        """A command that runs when it is looked at once, and has ended then."""
        number = 356 + len(self.commands)
        record = {"id": number, "name": name, "startTime": "2020-10-01T01:48:25.347Z", "active": True}
        self.commands[number] = [record, {**record, "active": False, "success": success, **result}]
        return record

    def change_roles(self, service: str, command: str, body: Any) -> tuple[int, Any]:
        """A service's roles, by their names alone. A decommissioned one is stopped; a start of it fails."""
        kinds = {self.named(service, kind, at): kind for kind, at in self.roles[service]}
        names = body.get("items") if isinstance(body, dict) and set(body) == {"items"} else None
        if (
            not isinstance(names, list)
            or not names
            or not {kinds.get(str(name)) for name in names} <= {"NODEMANAGER", "DATANODE"}
        ):
            return 400, {"message": "Unrecognized field, or a role that cannot be decommissioned."}
        good = command != "start" or not self.out & set(names)
        record = self.command(command.title(), good)
        if command == "decommission":
            self.out |= set(names)
            self.stopped |= set(names)
        elif command == "recommission":
            self.out -= set(names)
        elif good:
            self.stopped -= set(names)
        return 200, {"items": [record], "errors": []} if command == "start" else record

    def config_items(self, name: str, full: bool) -> list[dict[str, Any]]:
        known_settings = self.known if name == "cdsw" else {}
        return setting_items(self.config.get(name, {}), known_settings if full else None)

    def change(self, method: str, rest: list[str], body: Any) -> tuple[int, Any]:
        match method, rest:
            case "PUT", ["clusters", "cluster", "services", name, "config"] if name in self.services:
                unknown_names = [item["name"] for item in body["items"] if item["name"] not in self.known]
                if unknown_names:
                    return 400, {
                        "message": f"Unknown configuration attribute '{unknown_names[0]}' for service (type: 'CDSW')."
                    }
                store(self.config[name], body["items"])
                self.stale = True
                return 200, {"items": self.config_items(name, False)}
            case "PUT", ["clusters", "cluster", "services", "cdsw", "roleConfigGroups", name, "config"]:
                store(self.group_config[name], body["items"])
                self.stale = True
                return 200, {"items": setting_items(self.group_config[name], None)}
            case "POST", ["clusters", "cluster", "services", name, "commands", "restart"]:
                self.stale = self.restart_fails
                result = {"resultMessage": "At least one service failed to start."} if self.restart_fails else {}
                return 200, self.command("Restart", not self.restart_fails, **result)
            case "POST", ["clusters", "cluster", "services", name, *way] if way in ROLE_COMMANDS:
                return self.change_roles(name, way[-1], body)
            case "POST", ["hosts", host_id, "commands", ("enterMaintenanceMode" | "exitMaintenanceMode") as command]:
                self.host(host_id)["maintenanceMode"] = command.startswith("enter")
                name = "EnterMaintenanceMode" if command.startswith("enter") else "ExitMaintenanceMode"
                return 200, {"id": -1, "name": name, "active": False, "success": True, "resultMessage": "Done."}
        return 404, {"message": "HTTP 404 Not Found"}


DEVICES = "cdsw.docker.devices.config"


def setting_items(values: dict[str, str], known: dict[str, str] | None) -> list[dict[str, Any]]:
    """The settings that have a value, or with `known` (names and defaults) every setting."""
    if known is None:
        return [{"name": key, "value": value, "sensitive": False} for key, value in values.items()]
    return [
        {"name": key, "required": False, "default": default, "displayName": key, "sensitive": False}
        | ({"value": values[key]} if key in values else {})
        for key, default in known.items()
    ]


def store(values: dict[str, str], items: list[dict[str, Any]]) -> None:
    for item in items:
        if item["value"] is None:
            values.pop(item["name"], None)
        else:
            values[item["name"]] = item["value"]


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
        self.maintenance = dict.fromkeys(self.components, "OFF")
        self.clusters = {"demo": "HDP-3.1"}
        self.out: set[str] = set()  # hosts whose NodeManager is decommissioned
        self.stopped: set[str] = set()
        self.started: dict[str, list[str]] = {}  # the states that a request still goes through
        self.ends = "COMPLETED"
        self.configs = {"yarn-site": ("version1", {"yarn.nodemanager.local-dirs": "/hadoop/yarn/local"})}

    def answer(self, method: str, path: str, query: dict[str, str], body: Any, headers: Any) -> tuple[int, Any]:
        if method != "GET" and not headers.get("X-Requested-By"):
            message = "CSRF protection is turned on. X-Requested-By HTTP header is required."
            return 400, {"status": 400, "message": message}
        match method, path.removeprefix("/api/v1/").split("/"):
            case "GET", ["clusters"]:
                items = [{"Clusters": {"cluster_name": name, "version": v}} for name, v in self.clusters.items()]
                return 200, {"href": self.url + path, "items": items}
            case "GET", ["clusters", "demo"]:
                desired_configs = {kind: {"tag": tag, "version": 1} for kind, (tag, _) in self.configs.items()}
                return 200, {"Clusters": {"cluster_name": "demo", "desired_configs": desired_configs}}
            case "GET", ["clusters", "demo", "configurations"]:
                tag, properties = self.configs[query["type"]]
                return 200, {"items": [{"type": query["type"], "tag": tag, "properties": properties}]}
            case "GET", ["clusters", "demo", "hosts"]:
                names = sorted(self.components)
                if "page_size" in query or "from" in query:
                    begin = 0 if query.get("from", "start") == "start" else int(query["from"])
                    names = names[begin : begin + int(query.get("page_size", 20))]
                return 200, {"href": self.url + path, "items": [self.host(name) for name in names]}
            case "POST", ["clusters", "demo", "requests"]:
                return self.decommission(body)
            case "GET", ["clusters", "demo", "requests", number] if number in self.started:
                states = self.started[number]
                status = states.pop(0) if len(states) > 1 else states[0]
                return 200, {"href": self.url + path, "Requests": {"id": int(number), "request_status": status}}
            case "PUT", ["clusters", "demo", "hosts", name, "host_components", "NODEMANAGER"]:
                if body["Body"] != {"HostRoles": {"state": "STARTED"}} or name in self.out:
                    return 400, {"status": 400, "message": "java.lang.IllegalArgumentException: Invalid state"}
                if name not in self.stopped:
                    return 200, ""
                self.stopped.remove(name)
                return self.request()
            case "PUT", ["clusters", "demo", "hosts", name] if name in self.components:
                self.maintenance[name] = body["Body"]["Hosts"]["maintenance_state"]
                return 200, ""
        name = path.rpartition("/")[2]
        return 404, {
            "status": 404,
            "message": f"The requested resource doesn't exist: Cluster not found, clusterName={name}",
        }

    def request(self) -> tuple[int, Any]:
        number = str(len(self.started) + 7)
        self.started[number] = ["IN_PROGRESS", self.ends]
        return 202, {
            "href": f"{self.url}/api/v1/clusters/demo/requests/{number}",
            "Requests": {"id": int(number), "status": "Accepted"},
        }

    def decommission(self, body: Any) -> tuple[int, Any]:
        """Validated as AmbariCustomCommandExecutionHelper.java does: the slave component must be the master's, and the host must have it."""
        info, (resource_filter,) = body["RequestInfo"], body["Requests/resource_filters"]
        parameters = info["parameters"]
        hosts = {parameters.get("excluded_hosts"), parameters.get("included_hosts")} - {None}
        right = (
            set(body) == {"RequestInfo", "Requests/resource_filters"}
            and info["command"] == "DECOMMISSION"
            and resource_filter == {"service_name": "YARN", "component_name": "RESOURCEMANAGER"}
            and parameters["slave_type"] == "NODEMANAGER"
            and len(hosts) == 1
            and all("NODEMANAGER" in self.components.get(str(host), ()) for host in hosts)
        )
        if not right:
            return 400, {
                "status": 400,
                "message": "org.apache.ambari.server.AmbariException: Component cannot be decommissioned",
            }
        if self.ends == "COMPLETED":
            self.out = self.out | hosts if "excluded_hosts" in parameters else self.out - hosts
            self.stopped |= self.out
        return self.request()

    def host(self, name: str) -> dict[str, Any]:
        number = sorted(self.components).index(name) + 1
        fields = {
            "cluster_name": "demo",
            "host_name": name,
            "public_host_name": name,
            "ip": f"172.31.17.{number}",
            "rack_info": "/default-rack",
            "host_status": "HEALTHY",
            "maintenance_state": self.maintenance[name],
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
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(text) if text else None
        manager.bodies.append(body)
        manager.meanwhile(self.path)
        faults = manager.faults.get(parts.path) or manager.faults.get("*") or []
        fault = faults.pop(0) if faults else ""
        if fault:
            self.fail(fault)
            return
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if authorization not in (expected, "Bearer t0ken"):
            self.send(401, "<html><title>Error 401 Bad credentials</title></html>", Content_Type="text/html")
            return
        query = dict(urllib.parse.parse_qsl(parts.query))
        code, answer = manager.answer(self.command, parts.path, query, body, self.headers)
        if isinstance(answer, str):
            self.send(code, answer, Content_Type="text/plain")
        else:
            self.send(code, json.dumps(answer))

    do_GET = do_PUT = do_POST = respond

    def fail(self, fault: str) -> None:
        name, _, more = fault.partition(" ")
        if name.isdigit():
            headers = {"Retry_After": more} if more else {}
            self.send(int(name), json.dumps({"message": f"refused for {self.headers.get('Authorization')}"}), **headers)
        elif name == "page":
            self.send(200, LOGIN_PAGE, Content_Type="text/html")
        elif name == "words":
            self.send(200, "all is well")
        elif name == "redirect":
            self.send(302, "", Location=more or self.manager.elsewhere + self.path)
        elif name == "truncate":
            self.send(200, '{"items": [', Content_Length="5000")
            self.close_connection = True
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
