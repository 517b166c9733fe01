"""scripts/report on the cluster: exit status 0, 3 and 4, for a real drift and a host that really does not answer. It changes nothing."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hadoop_dl_dev.demo.cluster import DEFAULT_NAME, inventory_of
from hadoop_dl_dev.demo.images import REPOSITORY

INVENTORY = inventory_of(os.environ.get("E2E_CLUSTER", DEFAULT_NAME))
STATE = "/opt/deeplearning/state"
LIMIT = 300  # seconds; the reader on a host ends after 220
HOSTS = ("--limit", "data1:data2:edge1")
# What goes aside on edge1, and what the report has to say about it.
DRIFTS = {
    "a file that a role wrote": ("/opt/deeplearning/current/.deeplearning/client/hadoop-env.sh", "hadoop_client"),
    "the record of what is installed": (f"{STATE}/tensorflowonspark.json", "tensorflowonspark"),
    "the link to the active environment": ("/opt/deeplearning/current", "environment"),
}


def report(directory: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """As cron runs it: the exit status, and each host's row."""
    command = ["scripts/report", "-i", str(INVENTORY), "--directory", str(directory), "--format", "json", *options]
    completed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=LIMIT, check=False)
    print((directory / "report.txt").read_text(encoding="utf-8"), completed.stderr)
    content: dict[str, Any] = json.loads(completed.stdout)
    assert content["status"] == completed.returncode
    return completed.returncode, {host["host"]: host for host in content["hosts"]}


def states(hosts: dict[str, Any]) -> dict[str, str]:
    return {name: host["state"] for name, host in hosts.items()}


@pytest.fixture
def aside(cluster) -> Iterator[Callable[[str], None]]:
    """Move a file of edge1 away, and back with the times that it had."""
    paths = []

    def aside(path: str) -> None:
        cluster.run("edge1", f"mv {path} {path}.aside")
        paths.append(path)

    yield aside
    for path in paths:
        cluster.run("edge1", f"mv {path}.aside {path}")


def test_hosts_that_are_as_planned(cluster, tmp_path):
    before = cluster.stamps()
    status, hosts = report(tmp_path, *HOSTS)
    assert (status, states(hosts)) == (0, dict.fromkeys(("data1", "data2", "edge1"), "as planned"))
    assert cluster.stamps() == before


@pytest.mark.parametrize("what", DRIFTS)
def test_a_drift(cluster, tmp_path, aside, what):
    path, component = DRIFTS[what]
    aside(path)
    status, hosts = report(tmp_path, *HOSTS)
    assert (status, states(hosts)) == (3, {"data1": "as planned", "data2": "as planned", "edge1": "drift"})
    assert component in [row["component"] for row in hosts["edge1"]["drift"]]


@pytest.mark.parametrize("data2_unreachable", ["sshd is stopped"], indirect=True)
def test_a_host_that_does_not_answer_beside_a_drift(cluster, tmp_path, aside, data2_unreachable):
    aside(f"{STATE}/tensorflowonspark.json")
    status, hosts = report(tmp_path, *HOSTS)
    assert status == 4
    assert states(hosts) == {"data1": "as planned", "data2": "unreachable", "edge1": "drift"}


def test_it_is_as_planned_again(cluster, tmp_path):
    assert report(tmp_path, *HOSTS)[0] == 0
