"""Hadoop 2.7.7, the line of CDH 5 and HDP 2: tfos-submit --per-node, the plan's reading of nodes, a refused drain, labels by hand.

The ResourceManager and two NodeManagers are real.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import yarn_nodes
from drain_operator import NOTHING, Operator
from tfos_host import executable, start
from tfos_host import host as host
from tfos_host import program as program
from waiting import until
from yarn_processes import NODES, Cluster, Job, add

# By Maven, as demo/README.md has it: what hadoop-common, -yarn-client, -yarn-server-resourcemanager and -nodemanager need, in the versions of
# hadoop-project 2.7.7 (scope import), which Apache's release has. Without them httpclient is one that the ResourceManager cannot use.
LOCK = Path(__file__).with_name("hadoop-2.7.7.sha256")
APPLICATIONS = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
QUEUE = "yarn.scheduler.capacity.root"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("yarn"), lock=LOCK)
    labels = {"enabled": "true", "fs-store.root-dir": f"file://{cluster.directory}/labels"}
    add(cluster.conf("rm") / "yarn-site.xml", {f"yarn.node-labels.{name}": value for name, value in labels.items()})
    shares = {f"{queue}.accessible-node-labels.gpu.capacity": "100" for queue in (QUEUE, f"{QUEUE}.default")}
    add(cluster.conf("rm") / "capacity-scheduler.xml", shares)
    with cluster.running():
        yield cluster


class Edge:
    """tfos-submit on a host of this cluster. Its spark-submit waits; a job of Hadoop's own client asks YARN for what the settings have."""

    def __init__(self, host: SimpleNamespace, cluster: Cluster) -> None:
        self.host, self.cluster, self.end, self.settings = host, cluster, host.tmp / "end", host.tmp / "settings"
        shutil.copy(cluster.conf("rm") / "yarn-site.xml", host.tmp / "conf")
        yarn = cluster.java(cluster.conf("rm"), APPLICATIONS)
        executable(host.tmp / "hadoop/bin/yarn", f'#!/bin/sh\nexec {yarn} "$@"\n')
        copy_command = f'cp "$2" {self.settings}.new && mv {self.settings}.new {self.settings}\n'
        host.spark_submit(f"{copy_command}while [ ! -e {self.end} ]; do sleep 0.2; done\n")

    def starts(self, *arguments: str) -> tuple[subprocess.Popen[str], Job]:
        process = start(self.host, *arguments)
        until(lambda: self.settings.exists() or process.poll() is not None, 60, "Spark must start")
        lines = self.settings.read_text(encoding="utf-8").splitlines()
        settings = dict(line.split(" ", 1) for line in lines)
        self.settings.unlink()
        memory = sum(int(settings[f"spark.executor.{name}"].removesuffix("m")) for name in ("memory", "memoryOverhead"))
        executors = [(memory, int(settings["spark.executor.cores"]))] * int(settings["spark.executor.instances"])
        tags = {"tag": settings["spark.yarn.tags"].split(",")}
        return process, self.cluster.submit(settings["spark.app.name"], executors, **{"application-tags": tags})


@pytest.fixture
def edge(host: SimpleNamespace, cluster: Cluster) -> Iterator[Edge]:
    edge = Edge(host, cluster)
    yield edge
    edge.end.touch()


def used(cluster: Cluster) -> list[tuple[int, int]]:
    """Containers and MB of each node."""
    nodes = cluster.ask("/nodes")["nodes"]["node"]
    return sorted((row["numContainers"], row["usedMemoryMB"]) for row in nodes if row["nodeHostName"] in NODES.values())


def test_executors_of_per_node_are_alone_on_their_nodes_and_keep_those_of_others_away(edge, cluster):
    options = ("--memory", "256m", "--per-node", "1")
    process, job = edge.starts("--executors", "2", *options)
    # Of 1024 MB: 513 for an executor, which YARN rounds to 640, and 384 for the master.
    until(lambda: used(cluster) == [(1, 640), (2, 1024)], 60, "each node must have one executor")
    second, _ = edge.starts("--executors", "1", "--wait", "10", *options)
    output = second.communicate(timeout=120)[1]
    assert second.returncode == 4, output
    assert "1 executors were asked for, each with 513 MB and 1 vcore, in queue default" in output
    assert "after 10 s YARN has given 0 of them" in output
    until(lambda: used(cluster) == [(1, 640), (2, 1024)], 60, "the second job must have ended, and not the first")
    job.finish()
    edge.end.touch()
    assert process.wait(60) == 0


def test_nodes_are_read_without_what_this_hadoop_does_not_tell(cluster):
    _, version, nodes = yarn_nodes.cluster([f"http://{cluster.web}"])
    states = {node["name"]: (node["state"], node["gpus"]) for node in map(yarn_nodes.summary, nodes)}
    expected = dict.fromkeys(NODES.values(), ("RUNNING", 0)) | {"retired1": ("DECOMMISSIONED", 0)}
    assert (version, states, yarn_nodes.running(nodes)) == ("2.7.7", expected, {"": 2})


def test_a_drain_is_refused_and_nothing_on_the_host_ends(cluster):
    operator, job = Operator(cluster), cluster.submit("nightly training")
    process = operator.starts("drained", job.host)
    output = " ".join(process.communicate(timeout=600)[0].split())
    assert process.returncode != 0
    assert f"A drain requires Hadoop 2.10 or later, but YARN has 2.7.7. Drain {job.host} by your own means" in output
    assert NOTHING in operator.runs("running", job.host)
    assert operator.is_as_before()
    job.finish()


def test_a_refresh_by_hand_ends_what_runs_on_the_host(cluster):
    """As docs/reference/hadoop.md says."""
    job, before = cluster.submit("nightly training"), cluster.excluded.read_bytes()
    host = job.host
    cluster.excluded.write_bytes(before + f"{NODES[host]}\n".encode())
    assert "Usage: yarn rmadmin" in rmadmin(cluster, "-refreshNodes", "-g", "60", "-server")
    assert cluster.states()[host] == "RUNNING"
    rmadmin(cluster, "-refreshNodes")
    until(lambda: cluster.states()[host] == "DECOMMISSIONED", 30, "it must be out")
    until(lambda: job.state != "RUNNING", 30, "its container must have ended")
    cluster.excluded.write_bytes(before)
    rmadmin(cluster, "-refreshNodes")
    subprocess.run([str(cluster.directory / f"start-{host}")], check=True)
    until(lambda: set(cluster.states().values()) == {"RUNNING"}, 60, "it must be back")
    job.finish()  # on the other host, or here again


def test_labels_by_hand(cluster):
    """As docs/operate/yarn.md says."""
    rmadmin(cluster, "-addToClusterNodeLabels", "gpu(exclusive=true)", status=255)
    rmadmin(cluster, "-addToClusterNodeLabels", "gpu")
    assignment, without = f"{NODES['data2']}=gpu", NODES["data2"]
    rmadmin(cluster, "-replaceLabelsOnNode", f"{assignment} nowhere=gpu", "-failOnUnknownNodes")
    plain = cluster.submit("without a label")
    training = cluster.submit("training", **{"am-container-node-label-expression": "gpu"})
    assert (plain.host, training.host) == ("data1", "data2")
    plain.finish()
    rmadmin(cluster, "-replaceLabelsOnNode", f"{without}=")
    assert yarn_nodes.running(cluster.ask("/nodes")["nodes"]["node"]) == {"": 1, "gpu": 1}, "nothing has changed"
    rmadmin(cluster, "-replaceLabelsOnNode", without)
    assert yarn_nodes.running(cluster.ask("/nodes")["nodes"]["node"]) == {"": 2}
    until(lambda: training.state != "RUNNING", 30, "its container must have ended")
    rmadmin(cluster, "-replaceLabelsOnNode", assignment)
    training.finish()
    rmadmin(cluster, "-removeFromClusterNodeLabels", "gpu")


def rmadmin(cluster: Cluster, *arguments: str, status: int = 0) -> Any:
    environment = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf("rm"))}
    command = [str(cluster.directory / "yarn"), "rmadmin", *arguments]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == status, completed.stderr
    return completed.stdout + completed.stderr
