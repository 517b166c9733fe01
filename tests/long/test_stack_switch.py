"""A cluster changes its stack and changes back; after each change the suite is green and the digits train on YARN.

A cluster of its own (SWITCH_STACKS names other stacks for one image), removed at the end. `make test-long` runs it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.cluster import Cluster

NAME = "switch"
FIRST, SECOND = os.environ.get("SWITCH_STACKS", "tf1.15-py27-el7 tf1.4-cpu-py27-el7").split()
# Hosts with an environment; the demo's others have none.
HOSTS = ("data1", "data2", "edge1")


def run(*command: str) -> str:
    done = subprocess.run(
        command, cwd=images.REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    yield
    run("scripts/demo", "down", "--name", NAME)


def seals(cluster: Cluster) -> dict[str, str]:
    """By host: the active environment and the time of its seal."""
    look = "cd -P /opt/deeplearning/current && pwd && stat --format=%y .deeplearning/sealed.json"
    return {host: run("docker", "exec", cluster.container(host), "sh", "-c", look) for host in HOSTS}


def switch(stack: str) -> dict[str, str]:
    """Nodes, site.yml with the suite on what changed, the training job; then the suite on every host."""
    cluster = Cluster(stack, name=NAME)
    shown = run("scripts/demo", "run", "--name", NAME, "--stack", stack)
    assert "RESULT {" in shown
    verified = run(".venv/bin/ansible-playbook", "-i", str(cluster.inventory), "playbooks/verify.yml")
    assert " 0 failed" in verified
    found = seals(cluster)
    assert all(f"/envs/{stack}-" in seal for seal in found.values()), found
    return found


def test_there_and_back() -> None:
    """One test, because each step starts from the one before."""
    before = switch(FIRST)
    switch(SECOND)
    assert switch(FIRST) == before, "the first environment is used again, not rebuilt"
