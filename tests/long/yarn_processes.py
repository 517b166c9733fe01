"""A real ResourceManager and two real NodeManagers of one of the demo's Hadoops (its jars) as processes of this machine, and jobs on them."""

import json
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import other_processes
import yaml
from resource_manager import write_settings
from waiting import until

from hadoop_dl_dev.demo import artifacts, images

SERVER = "org.apache.hadoop.yarn.server"
SHELL = "org.apache.hadoop.fs.FsShell"
ADMIN = "org.apache.hadoop.yarn.client.cli.RMAdminCLI"
OPTIONS = ["-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dhadoop.root.logger=INFO,console"]
OPENED = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in ("lang", "util")]
NODES = {"data1": "127.0.0.2", "data2": "127.0.0.3"}  # YARN knows them by their addresses, which need no name server
NAMES = {address: name for name, address in NODES.items()}
JOB = Path(__file__).parent / "YarnJob.java"


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as sock:
        sock.bind((address, 0))
        return int(sock.getsockname()[1])


def add(path: Path, values: dict[str, str]) -> None:
    """Properties to a file of Hadoop's configuration."""
    text = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items())
    content = path.read_text(encoding="utf-8")
    path.write_text(content.replace("</configuration>", f"{text}</configuration>"), encoding="utf-8")


class Cluster:
    """`directory` has a configuration, a log and the process's number for each daemon."""

    def __init__(self, directory: Path, image: str = "el9", lock: Path | None = None, **queues: str) -> None:
        """image: of whose Hadoop. lock: of another one's jars. queues: those of the site, with their shares; without any, default alone."""
        self.directory, self.home = directory, directory / "hadoop"
        self.queues = queues or {"default": "100"}
        self.web = f"127.0.0.1:{free_port()}"
        self.excluded = directory / "yarn.exclude"
        self.excluded.write_text("# Hosts of the site\nretired1\n", encoding="utf-8")
        self.racks = directory / "racks"
        self.racks.write_text("".join(f"{address} /{name}\n" for name, address in NODES.items()), encoding="utf-8")
        images.add_jars(self.home / "share/hadoop/common", lock or images.locks(image)["hadoop"])
        images.add_webapps(self.home)
        jars = artifacts.read_lock(images.locks("el7-hadoop2")["hadoop"])
        extras = [jar for jar in jars if jar.name.startswith("activation-")]  # a part of Java 8, so 3.1.1 has none
        self.activation = artifacts.fetch_all(extras, images.CACHE / "jars")[0]
        names = ("address", "scheduler.address", "resource-tracker.address", "admin.address")
        self.common = {f"yarn.resourcemanager.{name}": f"127.0.0.1:{free_port()}" for name in names}
        self.common |= {
            "yarn.resourcemanager.webapp.address": self.web,
            "yarn.resourcemanager.nodes.exclude-path": str(self.excluded),
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
            "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs": "1",
            "yarn.scheduler.minimum-allocation-mb": "128",
            "yarn.nodemanager.resource.memory-mb": "1024",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "99",
        }
        self.configure("rm", {})
        for name, address in NODES.items():
            settings = {"hostname": address, "bind-host": address, "address": f"{address}:{free_port(address)}"}
            settings |= {f"{service}.address": f"{address}:{free_port(address)}" for service in ("localizer", "webapp")}
            settings |= {f"{kind}-dirs": str(directory / name / kind) for kind in ("local", "log")}
            self.configure(name, {f"yarn.nodemanager.{key}": value for key, value in settings.items()})
        self.program("yarn", f'[ "$1" = rmadmin ] && shift\nexec {self.java("$HADOOP_CONF_DIR", ADMIN)} "$@"\n')
        self.program("hdfs", f'[ "$1" = dfs ] && shift\nexec {self.java("$HADOOP_CONF_DIR", SHELL)} "$@"\n')
        for name in ("rm", *NODES):  # as systemctl restart
            number = directory / name / "pid"
            is_running = f"grep -qs {self.conf(name)} /proc/$(cat {number})/cmdline"
            stop = f"[ ! -e {number} ] || while {is_running}; do kill $(cat {number}); sleep 0.2; done\n"
            start = f"{self.daemon(name)} > {directory}/{name}/out 2>&1 < /dev/null & echo $! > {number}\n"
            self.program(f"start-{name}", stop + start)
        # NodeManagers of Hadoop 2.10 and 3.1 may stop reporting to a ResourceManager that restarted (docs/reference/hadoop.md).
        self.program("restart", "".join(f"{directory}/start-{name}\n" for name in ("rm", *NODES)))

    def configure(self, name: str, values: dict[str, str]) -> None:
        scheduler = {"root.queues": ",".join(self.queues), "maximum-am-resource-percent": "1.0"}
        scheduler |= {f"root.{queue}.capacity": share for queue, share in self.queues.items()}
        core = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self.directory / name / "tmp")}
        racks = "net.topology.node.switch.mapping.impl", "net.topology.table.file.name"
        core |= zip(racks, ("org.apache.hadoop.net.TableMapping", str(self.racks)), strict=True)
        files = {
            "core-site": core,
            "yarn-site": self.common | values,
            "capacity-scheduler": {f"yarn.scheduler.capacity.{key}": value for key, value in scheduler.items()},
        }
        (self.conf(name)).mkdir(parents=True)
        shutil.copy(images.DATA / "rootfs/etc/hadoop/conf/log4j.properties", self.conf(name))
        for file, properties in files.items():
            write_settings(self.conf(name) / f"{file}.xml", properties)

    def conf(self, name: str) -> Path:
        return self.directory / name / "conf"

    def java(self, conf: Path | str, *arguments: str) -> str:
        path = f"{conf}:{self.home}:{self.home}/share/hadoop/common/*:{self.activation}"
        return " ".join([str(shutil.which("java")), *OPTIONS, *OPENED, "-cp", f'"{path}"', *arguments])

    def daemon(self, name: str) -> str:
        kind = "resourcemanager.ResourceManager" if name == "rm" else "nodemanager.NodeManager"
        home = Path(str(shutil.which("java"))).resolve().parents[1]
        return f"JAVA_HOME={home} exec {self.java(self.conf(name), f'{SERVER}.{kind}')}".replace("exec ", "setsid ")

    def program(self, name: str, text: str) -> None:
        path = self.directory / name
        path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
        path.chmod(0o755)

    @contextmanager
    def running(self) -> Iterator["Cluster"]:
        """The cluster from its start to its end."""
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def start(self) -> None:
        self.run("rm", *NODES)
        until(lambda: set(self.states().values()) == {"RUNNING"} and len(self.states()) == 2, 240, "YARN must start")

    def run(self, *names: str) -> None:
        for name in names:
            subprocess.run([str(self.directory / f"start-{name}")], check=True)

    def stop(self) -> None:
        """Daemons, and the masters of jobs, which outlive their NodeManager."""
        other_processes.kill(f"{self.directory}/")

    def ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.web}/ws/v1/cluster{path}", data, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as stream:  # noqa: S310 (the address is its own)
                text = stream.read()
        except OSError:
            return {}
        return json.loads(text) if text else {}

    def states(self) -> dict[str, str]:
        nodes = (self.ask("/nodes").get("nodes") or {}).get("node", [])
        return {NAMES[node["nodeHostName"]]: node["state"] for node in nodes if node["nodeHostName"] in NAMES}

    def submit(
        self, name: str, containers: Sequence[tuple[int, int]] = (), command: str | None = None, **where: Any
    ) -> "Job":
        """containers: MB and cores of each that its master asks for. command: another master. where: as YARN's REST API names it, such as queue."""
        application = self.ask("/apps/new-application", {})["application-id"]
        job = Job(self, application, self.directory / f"end-{application}")
        sizes = [str(number) for container in containers for number in container]
        command = command or self.java(self.conf("rm"), str(JOB), str(job.end), *sizes)
        body = {
            "application-id": application,
            "application-name": name,
            "application-type": "YARN",
            "max-app-attempts": 1,
            "am-container-spec": {"commands": {"command": command}},
            "resource": {"memory": 384, "vCores": 1},
            **where,
        }
        self.ask("/apps", body)
        until(lambda: job.state == "RUNNING", 180, f"{name} must run")
        return job

    def inventory(self, **variables: Any) -> Path:
        """The site: roles as an operator's inventory has them."""
        host_variables = {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": "/usr/bin/python3",
            "node_maintenance_resourcemanagers": ["master1"],
            "node_maintenance_conf_dir": str(self.conf("rm")),
            "node_maintenance_admin": "root",
            "node_maintenance_yarn": str(self.directory / "yarn"),
            "node_maintenance_start_command": f"{self.directory}/start-{{{{ inventory_hostname }}}}",
            **variables,
        }
        groups = {
            "data_nodes": {"hosts": {name: {"ansible_host": address} for name, address in NODES.items()}},
            "masters": {"hosts": {"master1": {}}},
        }
        path = self.directory / "hosts.yml"
        path.write_text(yaml.safe_dump({"all": {"vars": host_variables, "children": groups}}), encoding="utf-8")
        return path


class Job:
    """It runs until its file appears."""

    def __init__(self, cluster: Cluster, application: str, end: Path) -> None:
        self.cluster, self.application, self.end = cluster, application, end

    def told(self) -> Any:
        return self.cluster.ask(f"/apps/{self.application}").get("app", {})

    @property
    def state(self) -> str:
        app = self.told()
        return str(app.get("finalStatus") if app.get("state") in ("FINISHED", "FAILED", "KILLED") else app.get("state"))

    @property
    def host(self) -> str:
        return NAMES[self.told()["amHostHttpAddress"].partition(":")[0]]

    def finish(self) -> None:
        self.end.touch()
        until(lambda: self.state == "SUCCEEDED", 60, f"{self.application} must end as it should, but is {self.state}")
