"""Two stacks on one cluster: both are installed, a job chooses one by its name, and the active one stays what it was.

A cluster of its own, removed at the end. `make test-long` runs it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from demo_commands import run

from hadoop_dl_dev.demo.cluster import Cluster

ACTIVE, BESIDE = "tf2.15-cpu-py3-el9", "tf2.21-tfos-cpu-py311"
CLUSTER = Cluster(ACTIVE, name="beside")
ASKED = ("-e", f'{{"deeplearning_additional_stacks": ["{BESIDE}"]}}')
JOB = """
from pyspark import SparkContext
def version(_):
    import tensorflow
    return tensorflow.__version__
print("ON " + " ".join(SparkContext().parallelize(range(2), 2).map(version).collect()))
"""


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    run("scripts/demo", "up", "--name", CLUSTER.name, "--stack", ACTIVE)
    yield
    run("scripts/demo", "down", "--name", CLUSTER.name)


def site(*options: str) -> set[str]:
    """The hosts that site.yml changed."""
    said = run(".venv/bin/ansible-playbook", "-i", str(CLUSTER.inventory), "site.yml", *options)
    print(said)
    return {
        host for host, changed in re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+)", said, re.MULTILINE) if int(changed)
    }


def on(host: str, text: str) -> str:
    return run("docker", "exec", CLUSTER.container(host), "sh", "-c", text)


def analyst(text: str) -> str:
    return on("edge1", f"su - analyst -c {shlex.quote(text)}")


def submitted(*options: str) -> str:
    """The version of TensorFlow in the executors."""
    analyst(f"printf %s {shlex.quote(JOB)} > version.py")
    said = analyst(f"tfos-submit {' '.join(options)} --memory 2g --timeout 300 version.py")
    return next(line for line in said.splitlines() if line.startswith("ON "))


def test_two_stacks() -> None:
    """One test, because each step starts from the one before."""
    assert {"data1", "data2", "edge1"} <= site(*ASKED)
    listed = [line.split() for line in analyst("deeplearning list").splitlines()]
    assert [row[:2] for row in listed if row[0] == "*"] == [["*", ACTIVE]]
    assert BESIDE in [row[0] for row in listed]
    assert submitted() == "ON 2.15.1 2.15.1"
    assert submitted("--stack", "tf2.21") == "ON 2.21.0 2.21.0"
    assert site(*ASKED) == set(), "nothing is left to do"

    broken = f"/opt/deeplearning/envs/{BESIDE}-*/lib/python3.11/site-packages/tensorflow/__init__.py"
    on("data1", f"rm -f {broken}")
    assert site(*ASKED) == {"data1"}
    assert submitted("--stack", "tf2.21") == "ON 2.21.0 2.21.0"

    assert {"data1", "data2", "edge1"} <= site(), "it is not requested any more"
    assert site() == set()
