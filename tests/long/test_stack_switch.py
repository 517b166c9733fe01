"""A cluster changes its stack, goes back and forward by the links alone, and changes back; after each step the digits train on YARN.

A cluster of its own (SWITCH_STACKS names other stacks for one image), removed at the end.
"""

import os
from collections.abc import Iterator

import pytest
from demo_commands import play, run

from hadoop_dl_dev.demo import tour
from hadoop_dl_dev.demo.cluster import Cluster

NAME = "switch"
FIRST, SECOND = os.environ.get("SWITCH_STACKS", "tf1.15-py27-el7 tf1.4-cpu-py27-el7").split()
# Hosts with an environment; the demo's others have none.
HOSTS = ("data1", "data2", "edge1")
ACCURACY = 0.95  # of a model that learned the digits


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    yield
    run("scripts/demo", "down", "--name", NAME)


def seals(cluster: Cluster) -> dict[str, str]:
    """By host: the active environment and the time of its seal."""
    look = "cd -P /opt/deeplearning/current && pwd && stat --format=%y .deeplearning/sealed.json"
    return {host: run("docker", "exec", cluster.container(host), "sh", "-c", look) for host in HOSTS}


def verified(cluster: Cluster) -> None:
    """The suite on every host."""
    assert " 0 failed" in play(cluster, "playbooks/verify.yml")


def switch(stack: str) -> dict[str, str]:
    """Nodes, site.yml with the suite on what changed, the training job; then the suite on every host."""
    cluster = Cluster(stack, name=NAME)
    output = run("scripts/demo", "run", "--name", NAME, "--stack", stack)
    assert "RESULT {" in output
    verified(cluster)
    host_seals = seals(cluster)
    assert all(f"/envs/{stack}-" in seal for seal in host_seals.values()), host_seals
    return host_seals


def roll_back(*options: str) -> dict[str, str]:
    """Every host's active environment and its seal, after the way back; a job runs with it."""
    cluster = Cluster(SECOND, name=NAME)
    print(play(cluster, "playbooks/rollback.yml", *options))
    assert tour.train(cluster)["accuracy"] >= ACCURACY
    return seals(cluster)


def test_there_and_back():
    """One test, because each step starts from the one before."""
    before = switch(FIRST)
    second = switch(SECOND)
    assert roll_back() == before
    assert roll_back("-e", f"rollback_to={SECOND}") == second
    assert switch(FIRST) == before, "the first environment is used again, not rebuilt"
