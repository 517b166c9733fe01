"""The demo cluster after site.yml, as its users see it. E2E_STACK says which stack is on it."""

import os
import shlex
import subprocess
from collections.abc import Callable

import pytest

from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.cluster import Cluster, check_checkout, existing, has_kerberos


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    name = os.environ.get("E2E_CLUSTER", Cluster.name)
    containers = existing(name)
    check_checkout(containers)
    cluster = Cluster(os.environ.get("E2E_STACK", Cluster.stack), name=name, kerberos=has_kerberos(name))
    missing_hosts = [host for host in cluster.hosts if cluster.container(host) not in containers]
    assert not missing_hosts, (
        f"These tests need the demo cluster with site.yml applied, and {', '.join(missing_hosts)} is missing. Run: make e2e"
    )
    return cluster


@pytest.fixture(scope="session")
def shell(cluster):
    """Run a command on a node, as root, without SSH: its exit status and output."""

    def shell(host: str, command: str) -> tuple[int, str]:
        completed = subprocess.run(
            ["docker", "exec", cluster.container(host), "sh", "-c", command],
            capture_output=True,
            text=True,
            check=False,
        )
        return completed.returncode, completed.stdout + completed.stderr

    return shell


@pytest.fixture
def analyst(shell) -> Callable[[str], str]:
    """Run shell text as analyst in a login shell of the edge node, which must succeed: its output."""

    def analyst(text: str) -> str:
        code, output = shell("edge1", f"su - analyst -c {shlex.quote(text)}")
        assert code == 0, output[-6000:]
        return output

    return analyst


@pytest.fixture
def play(cluster) -> Callable[..., tuple[int, str]]:
    """Run a playbook on the cluster: its exit status and output."""

    def play(playbook: str, *options: str) -> tuple[int, str]:
        command = ["ansible-playbook", "-i", str(cluster.inventory), playbook, *options]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        completed = subprocess.run(command, cwd=images.REPOSITORY, text=True, check=False, **streams)
        return completed.returncode, completed.stdout

    return play


@pytest.fixture(scope="module")
def gpu_devices(cluster):
    """Files in place of the GPUs' devices, which the executors of a job with --gpus open and lock."""
    for host in cluster.data_hosts:
        nodes.execute(cluster.container(host), "sh", "-c", "umask 0; touch /dev/nvidia0 /dev/nvidia1")
    yield
    for host in cluster.data_hosts:
        nodes.execute(cluster.container(host), "rm", "-f", "/dev/nvidia0", "/dev/nvidia1")
