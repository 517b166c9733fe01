"""Spark 2.4 on Hadoop 2.10: site.yml with the suite, every input mode, what tests/e2e asks of jobs, --gpus refused. A cluster of its own, removed at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from hadoop_dl_dev.demo import cli, cluster, images, nodes, tour

CLUSTER = cluster.Cluster("tf1.15-spark2-cpu-py27-el7", name="hadoop2", hadoop="2.10.2")


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    """After the job that Spark feeds."""
    try:
        assert tour.run_all(CLUSTER, cli.up) == 0
        yield
    finally:
        cluster.down(CLUSTER.name)


def test_the_suite_passes_on_every_host() -> None:
    play = [".venv/bin/ansible-playbook", "-i", str(CLUSTER.inventory), "playbooks/verify.yml"]
    done = subprocess.run(play, cwd=images.REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    assert " 0 failed" in done.stdout


@pytest.mark.parametrize("name", ["training", "submit"])
def test_jobs_behave_as_on_hadoop_3(name: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/e2e/test_{name}.py"]
    given = {**os.environ, "E2E_CLUSTER": CLUSTER.name, "E2E_STACK": CLUSTER.stack}
    assert subprocess.run(command, cwd=images.REPOSITORY, env=given, check=False).returncode == 0


def test_a_request_for_gpus_is_refused_before_submission() -> None:
    """YARN has them, but this Spark cannot ask for them."""
    submit = "cd digits && tfos-submit --gpus 1 train_tf1.py; echo status $?"
    said = nodes.execute(CLUSTER.container("edge1"), "su", "-", "analyst", "-c", f"exec 2>&1; {submit}", check=False)
    assert "--gpus 1 requires Spark 3, but" in said
    assert "is Spark 2.4." in said
    assert "status 3" in said


def test_the_hosts_have_hadoop_2_and_java_8() -> None:
    edge = CLUSTER.container("edge1")
    assert nodes.execute(edge, "hadoop", "version").startswith("Hadoop 2.10.2")
    assert 'version "1.8.' in nodes.execute(edge, "sh", "-c", "java -version 2>&1")
