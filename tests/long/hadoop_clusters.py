"""A demo cluster of another Hadoop than the usual one, and what is asked of each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from demo_commands import run

from hadoop_dl_dev.demo import cli, cluster, images, nodes, tour


def of_its_own(found: cluster.Cluster) -> Iterator[None]:
    """After the job that Spark feeds; removed at the end."""
    try:
        assert tour.run_all(found, cli.up) == 0
        yield
    finally:
        cluster.down(found.name)


def play(found: cluster.Cluster, *arguments: str) -> str:
    return run(".venv/bin/ansible-playbook", "-i", str(found.inventory), *arguments)


def run_e2e(found: cluster.Cluster, name: str) -> None:
    """tests/e2e/test_NAME.py on this cluster."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/e2e/test_{name}.py"]
    given = {**os.environ, "E2E_CLUSTER": found.name, "E2E_STACK": found.stack}
    assert subprocess.run(command, cwd=images.REPOSITORY, env=given, check=False).returncode == 0


def check_versions(found: cluster.Cluster) -> None:
    edge = found.container("edge1")
    assert nodes.execute(edge, "hadoop", "version").startswith(f"Hadoop {found.hadoop}")
    assert 'version "1.8.' in nodes.execute(edge, "sh", "-c", "java -version 2>&1")
