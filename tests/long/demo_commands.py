"""The demo's commands and playbooks as a person runs them at the repository's root."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.cluster import Cluster


def run(*command: str, status: int = 0) -> str:
    """What the command printed; it must end with this status."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    completed = subprocess.run(command, cwd=images.REPOSITORY, text=True, check=False, **streams)
    assert completed.returncode == status, completed.stdout[-6000:]
    return completed.stdout


def play(cluster: Cluster, *arguments: str, status: int = 0) -> str:
    """What ansible-playbook printed on the hosts of a cluster; it must end with this status."""
    return run(".venv/bin/ansible-playbook", "-i", str(cluster.inventory), *arguments, status=status)


@contextmanager
def nodes_alone(cluster: Cluster) -> Iterator[None]:
    """The nodes of a cluster before site.yml; removed at the end."""
    try:
        of_gpus = [] if cluster.gpu_nodes is None else ["--gpu-nodes", str(cluster.gpu_nodes)]
        run("scripts/demo", "up", "--name", cluster.name, "--stack", cluster.stack, *of_gpus)
        yield
    finally:
        run("scripts/demo", "down", "--name", cluster.name)
