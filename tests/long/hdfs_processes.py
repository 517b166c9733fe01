"""A real NameNode and three real DataNodes of one of the demo's Hadoops (its jars) as processes of this machine, which HDFS knows by their addresses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from resource_manager import write_settings
from waiting import until
from yarn_processes import OPENED, OPTIONS, free_port

from hadoop_dl_dev.demo import images

SERVER = "org.apache.hadoop.hdfs.server"
NODES = {"data1": "127.0.0.2", "data2": "127.0.0.3", "data3": "127.0.0.4"}


class Hdfs:
    """`directory` has a configuration, a log and the process's number for each daemon. A DataNode that is silent for 10 s is stale, for 10 minutes dead: as usual, the NameNode looks every five."""

    def __init__(self, directory: Path, image: str = "el9") -> None:
        self.directory, self.home = directory, directory / "hadoop"
        images.add_jars(self.home / "share/hadoop/common", images.locks(image)["hadoop"])
        images.add_webapps(self.home)
        self.web = f"127.0.0.1:{free_port()}"
        common = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{free_port()}",
            "dfs.namenode.http-address": self.web,
            "dfs.replication": "3",
            "dfs.heartbeat.interval": "1",
            "dfs.namenode.stale.datanode.interval": "10000",
            "dfs.namenode.stale.datanode.minimum.interval": "1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.client.use.datanode.hostname": "true",  # the NameNode sees each one come from 127.0.0.1
            "dfs.datanode.use.datanode.hostname": "true",
            "dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER",
        }
        self.configure("namenode", common)
        for name, address in NODES.items():
            ports = {key: f"{address}:{free_port(address)}" for key in ("address", "http.address", "ipc.address")}
            own = {f"dfs.datanode.{key}": value for key, value in ports.items()} | {"dfs.datanode.hostname": address}
            self.configure(name, common | own)

    def configure(self, name: str, values: dict[str, str]) -> None:
        (self.conf(name)).mkdir(parents=True)
        shutil.copy(images.DATA / "rootfs/etc/hadoop/conf/log4j.properties", self.conf(name))
        values = {**values, "hadoop.tmp.dir": str(self.directory / name / "tmp")}
        for file in ("core-site.xml", "hdfs-site.xml"):
            write_settings(self.conf(name) / file, values)

    def conf(self, name: str) -> Path:
        return self.directory / name / "conf"

    def java(self, name: str, *arguments: str) -> list[str]:
        path = f"{self.conf(name)}:{self.home}:{self.home}/share/hadoop/common/*"
        return [str(shutil.which("java")), *OPTIONS, *OPENED, "-cp", path, *arguments]

    def run(self, *arguments: str) -> str:
        """A command of HDFS, such as `fs -put`, by its class."""
        return subprocess.run(self.java("namenode", *arguments), check=True, capture_output=True, text=True).stdout

    def start(self, name: str) -> None:
        kind = "namenode.NameNode" if name == "namenode" else "datanode.DataNode"
        with (self.directory / name / "out").open("ab") as log:
            process = subprocess.Popen(
                self.java(name, f"{SERVER}.{kind}"),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        (self.directory / name / "pid").write_text(str(process.pid), encoding="utf-8")

    def kill(self, name: str) -> None:
        with suppress(OSError):  # it has ended
            os.kill(int((self.directory / name / "pid").read_text(encoding="utf-8")), signal.SIGKILL)

    @contextmanager
    def running(self) -> Iterator[Hdfs]:
        """The cluster from its start to its end."""
        try:
            self.run(f"{SERVER}.namenode.NameNode", "-format", "-nonInteractive")
            for name in ("namenode", *NODES):
                self.start(name)
            until(lambda: self.state().get("NumLiveDataNodes") == len(NODES), 240, "HDFS must start")
            yield self
        finally:
            for name in ("namenode", *NODES):
                self.kill(name)

    def bean(self, name: str) -> dict[str, Any]:
        url = f"http://{self.web}/jmx?qry=Hadoop:service=NameNode,name={name}"
        try:
            with urllib.request.urlopen(url, timeout=10) as stream:
                beans: list[dict[str, Any]] = json.load(stream)["beans"]
        except OSError:
            return {}
        return beans[0] if beans else {}

    def state(self) -> dict[str, Any]:
        return self.bean("FSNamesystemState")

    def nodes(self) -> list[dict[str, Any]]:
        return list(json.loads(self.bean("NameNodeInfo")["LiveNodes"]).values())
