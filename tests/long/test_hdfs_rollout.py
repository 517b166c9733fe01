"""A rollout that reboots DataNodes of a real HDFS, beside a writer. A reboot kills the host's DataNode; what the role nvidia_driver does is read from its tasks."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import ansible_programs
import pytest
import yaml
from hdfs_processes import NODES, Hdfs
from waiting import until

REPOSITORY = ansible_programs.REPOSITORY
SHELL = "org.apache.hadoop.fs.FsShell"
CHECK = "org.apache.hadoop.hdfs.tools.DFSck"
CONNECTION = """
DOCUMENTATION = "{name: node, short_description: a host that is this machine, options: {}}"
from ansible.plugins.connection.local import Connection as Local
class Connection(Local):
    transport = "node"  # Ansible reboots no host with the connection local
"""
# The host is away for 18 s: HDFS calls a DataNode stale after 10. What it says at that moment is kept.
REBOOT = """#!/bin/sh
curl --silent http://{web}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo > {host}/state
kill -9 $(cat {host}/pid)
echo rebooted >> {host}/boots
(sleep 18; setsid {start} >> {host}/out 2>&1 < /dev/null & echo $! > {host}/pid) > /dev/null 2>&1 &
"""


@pytest.fixture(scope="module", params=["el9", "el7-hadoop2"])
def hdfs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with Hdfs(tmp_path_factory.mktemp("hdfs"), request.param).running() as hdfs:
        yield hdfs


class Rollout:
    """The reboot of the role, host by host. Every daemon is a process of one machine, so each host has a NameNode and must be named."""

    def __init__(self, hdfs: Hdfs) -> None:
        self.hdfs, self.place = hdfs, hdfs.directory
        (self.place / "connections").mkdir(exist_ok=True)
        (self.place / "connections" / "node.py").write_text(CONNECTION, encoding="utf-8")
        for name in NODES:
            start = " ".join(f"'{word}'" for word in hdfs.java(name, "org.apache.hadoop.hdfs.server.datanode.DataNode"))
            script = self.place / f"reboot-{name}"
            script.write_text(REBOOT.format(host=self.place / name, start=start, web=hdfs.web), encoding="utf-8")
            script.chmod(0o755)
            (self.place / name / "boots").touch()
        role = REPOSITORY / "roles" / "nvidia_driver"
        reboot = yaml.safe_load((role / "tasks" / "boot.yml").read_text(encoding="utf-8"))[0]
        host = f"{self.place}/{{{{ inventory_hostname }}}}"
        command = f"{self.place}/reboot-{{{{ inventory_hostname }}}}"
        reboot["guarded_reboot"]["reboot"] |= {
            "boot_time_command": f"cat {host}/boots /dev/null; echo",
            "reboot_command": command,
        }
        defaults = yaml.safe_load((role / "defaults" / "main.yml").read_text(encoding="utf-8"))
        values = {
            "nvidia_driver_reboot_conf_dir": f"{host}/conf",
            "nvidia_driver_reboot_reason": "a test",
            "nvidia_driver_reboot_masters": [*NODES],
        }
        play = {
            "hosts": "all",
            "gather_facts": False,
            "any_errors_fatal": True,
            "vars": defaults | values,
            "tasks": [reboot],
        }
        (self.place / "play.yml").write_text(yaml.safe_dump([play]), encoding="utf-8")
        variables = {
            "ansible_connection": "node",
            "ansible_python_interpreter": "/usr/bin/python3",
            "ansible_become": False,
        }
        inventory = {"all": {"vars": variables, "hosts": dict.fromkeys(NODES, {})}}
        (self.place / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")

    def run(self, *options: str) -> tuple[int, str]:
        settings = {
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_CONNECTION_PLUGINS": str(self.place / "connections"),
        }
        process = ansible_programs.start("-i", self.place / "hosts.yml", self.place / "play.yml", *options, **settings)
        output = " ".join(process.communicate(timeout=900)[0].split())
        return process.returncode, output

    def boots(self) -> list[int]:
        return [len((self.place / name / "boots").read_text(encoding="utf-8").split()) for name in NODES]


class Writer(threading.Thread):
    """Puts one file after the other, and looks for missing blocks meanwhile."""

    def __init__(self, hdfs: Hdfs) -> None:
        super().__init__()
        self.hdfs, self.ends, self.written, self.missing, self.failures = hdfs, threading.Event(), 0, set[Any](), ""

    def run(self) -> None:
        while not self.ends.is_set():
            command = self.hdfs.java("namenode", SHELL, "-put", "/etc/services", f"/written-{self.written}")
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
                while process.poll() is None:
                    self.missing.add(self.hdfs.bean("FSNamesystem").get("MissingBlocks"))
                    self.ends.wait(0.2)
                if process.returncode:
                    self.failures += str(process.stdout and process.stdout.read())
            self.written += 1


def test_every_datanode_reboots_beside_a_writer_and_no_block_is_ever_missing(hdfs: Hdfs) -> None:
    rollout, writer = Rollout(hdfs), Writer(hdfs)
    writer.start()
    try:
        status, output = rollout.run()
    finally:
        writer.ends.set()
        writer.join()
    assert status == 0, output
    assert rollout.boots() == [1, 1, 1]
    for name in NODES:  # one after the other: each found those before it back
        (info,) = json.loads((hdfs.directory / name / "state").read_text(encoding="utf-8"))["beans"]
        assert max(node["lastContact"] for node in json.loads(info["LiveNodes"]).values()) < 10
    assert (writer.missing, writer.failures) == ({0}, "")
    assert writer.written > 2
    assert "is HEALTHY" in hdfs.run(CHECK, "/")


def test_under_replicated_blocks_stop_the_rollout_and_the_same_command_goes_on_when_they_are_whole(hdfs: Hdfs) -> None:
    rollout = Rollout(hdfs)
    hdfs.run(SHELL, "-touchz", "/empty")
    hdfs.run(SHELL, "-put", "/etc/services", "/three-replicas")
    before = rollout.boots()
    hdfs.run(SHELL, "-setrep", "4", "/three-replicas")
    until(lambda: hdfs.state().get("UnderReplicatedBlocks", 0) > 0, 120, "the NameNode must miss a replica")
    status, output = rollout.run("--limit", "data1", "-e", "nvidia_driver_reboot_hdfs_wait=8")
    assert status != 0
    assert "HDFS must be whole before data1 reboots, but after 8 s 0 blocks are missing, 0 corrupt and" in output
    assert rollout.boots() == before
    hdfs.run(SHELL, "-setrep", "3", "/three-replicas")
    status, output = rollout.run("--limit", "data1", "-e", "nvidia_driver_reboot_hdfs_wait=120")
    assert status == 0, output
    assert rollout.boots() == [before[0] + 1, *before[1:]]


def test_a_datanode_that_does_not_come_back_stops_the_rollout(hdfs: Hdfs) -> None:
    """The NameNode still counts it among the live ones, and none as stale."""
    rollout = Rollout(hdfs)
    script = rollout.place / "reboot-data1"
    script.write_text(script.read_text(encoding="utf-8").replace("(sleep 18; ", "(exit; "), encoding="utf-8")
    before = rollout.boots()
    status, output = rollout.run("-e", "nvidia_driver_reboot_hdfs_wait=8")
    assert status != 0
    assert "HDFS must be whole after the reboot of data1, but after 8 s its DataNode does not report" in output
    assert hdfs.state()["NumLiveDataNodes"] == 3
    hdfs.start("data1")
    until(lambda: all(node["lastContact"] < 5 for node in hdfs.nodes()), 60, "its DataNode must be back")
    assert rollout.boots()[0] == before[0] + 1


def test_a_master_is_not_rebooted_unless_it_is_named(hdfs: Hdfs) -> None:
    rollout = Rollout(hdfs)
    before = rollout.boots()
    status, output = rollout.run("--limit", "data2", "-e", '{"nvidia_driver_reboot_masters": ["data1"]}')
    assert status != 0
    assert re.search("data2 has a NameNode.*, so its reboot concerns the whole cluster. It was not rebooted.", output)
    assert rollout.boots() == before
