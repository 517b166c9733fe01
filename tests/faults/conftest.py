"""Faults on the demo cluster, after site.yml has run there. Each test puts back what it broke.

scripts/demo up && ansible-playbook -i inventories/demo site.yml && pytest tests/faults
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import ansible_programs
import other_processes
import pytest
import testinfra
from waiting import until

from hadoop_dl_dev.demo.cluster import DEFAULT_NAME, inventory_of

REPO = Path(__file__).resolve().parents[2]
NAME = os.environ.get("E2E_CLUSTER", DEFAULT_NAME)
INVENTORY = inventory_of(NAME)
RUN_SECONDS = 1800  # no run of site.yml on the demo takes that long; one that does hangs
RECAP = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)

# Compiled Python is left out: it records the times of its sources, and any import by root may add some.
# What a second installation must reproduce: names, kinds, modes, owners, links, contents. The seal's list of the tree
# (tree.txt) has times, that of all bytes (files.txt) has bytecode: both are of one installation, as are their digests in sealed.json, the number of the
# last activation. The rest of the seal is compared.
CONTENT = r"""
cd /opt/deeplearning 2>/dev/null || exit 0
find . -name __pycache__ -prune -o ! -name '*.pyc' -printf '%y %m %u:%g %p %l\n' | sort
find . -name __pycache__ -prune -o ! -name '*.pyc' ! -path '*/.deeplearning/tree.txt' ! -path '*/.deeplearning/files.txt' \
    ! -path '*/.deeplearning/sealed.json' ! -path '*/.deeplearning/activated.json' ! -path ./.lock -type f -print0 |
    sort -z | xargs -0r sha256sum
for seal in envs/*/.deeplearning/sealed.json; do echo "$seal"; grep -v _sha256 "$seal"; done
"""
# What nobody may even touch: the time of the last change of every file and link, and every directory. The lock is taken also if nothing is to do.
STAMPS = r"""
cd /opt/deeplearning 2>/dev/null || exit 0
find . -name __pycache__ -prune -o ! -name '*.pyc' ! -type d ! -path ./.lock -printf '%C@ %s %p %l\n' -o -type d -print | sort
"""


@dataclass
class Run:
    """How a run of site.yml ended."""

    code: int
    output: str
    changed: dict[str, int] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for host, changed, unreachable, failed in RECAP.findall(self.output):
            self.changed[host] = int(changed)
            self.unreachable |= {host} if int(unreachable) else set()
            self.failed |= {host} if int(failed) else set()


class Cluster:
    """The demo, as an operator and as the machine it runs on see it."""

    def __init__(self, control_paths: Path) -> None:
        self.control_paths = control_paths
        completed = subprocess.run(
            ["ansible-inventory", "-i", str(INVENTORY), "--list"], capture_output=True, text=True, check=True, cwd=REPO
        )
        self.inventory = json.loads(completed.stdout)
        self.platform_hosts = sorted(
            {host for group in ("data_nodes", "edge_nodes") for host in self.inventory.get(group, {}).get("hosts", [])}
        )

    def host(self, name: str) -> testinfra.host.Host:
        return testinfra.get_host(f"ansible://{name}?ansible_inventory={INVENTORY}&sudo=true")

    def run(self, name: str, command: str) -> str:
        completed = self.host(name).run(command)
        assert completed.rc == 0, f"{command!r} on {name} ended with {completed.rc}: {completed.stderr}"
        return completed.stdout

    def content(self, name: str) -> list[str]:
        return self.run(name, CONTENT).splitlines()

    def stamps(self) -> dict[str, list[str]]:
        """Of every host that has something of the platform."""
        return {name: self.run(name, STAMPS).splitlines() for name in self.platform_hosts}

    def start_site(self, *arguments: str) -> subprocess.Popen[str]:
        """Start site.yml with SSH masters of its own, so that all of it can be killed."""
        masters = {"ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.control_paths)}
        return ansible_programs.start("-i", INVENTORY, "site.yml", *arguments, **masters)

    def site(self, *arguments: str) -> Run:
        process = self.start_site(*arguments)
        try:
            output, _ = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill(process)
            raise
        print(output)
        return Run(process.returncode, output)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """As a power cut on the controller: the whole session, and the SSH masters that would outlive it."""
        os.killpg(process.pid, signal.SIGKILL)
        print(process.communicate()[0])  # for the reader of a failure
        other_processes.kill(str(self.control_paths))

    def wait(self, name: str, command: str, seconds: float) -> None:
        """Until the command succeeds on the host."""
        host = self.host(name)
        until(lambda: host.run(command).rc == 0, seconds, f"{command!r} must succeed on {name} within {seconds:.0f} s")

    def container(self, name: str) -> str:
        return f"{NAME}-{name}"

    def docker(self, name: str, *command: str) -> None:
        subprocess.run(["docker", "exec", self.container(name), *command], check=True)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory) -> Cluster:
    assert INVENTORY.exists(), (
        "The fault tests need the demo cluster with site.yml applied, and it is not up. Run: make e2e"
    )
    # The path of an SSH control socket must stay below 108 characters.
    cluster = Cluster(tmp_path_factory.mktemp("cp"))
    # Clusters of one checkout share the directory of the mirror, so another one may have added artifacts since.
    assert cluster.site().code == 0
    return cluster


@pytest.fixture(params=["sshd is stopped", "the host is frozen"])
def data2_unreachable(request, cluster):
    container = cluster.container("data2")
    if request.param == "sshd is stopped":
        stop = "systemctl stop ssh.socket 2>/dev/null; systemctl stop ssh; pkill -KILL -f '^sshd: ' || true"
        cluster.docker("data2", "sh", "-c", stop)
        yield
        cluster.docker("data2", "systemctl", "start", "ssh")
    else:
        subprocess.run(["docker", "pause", container], check=True)
        yield
        subprocess.run(["docker", "unpause", container], check=True)
    cluster.wait("data2", "true", 60)


@pytest.fixture
def bare(cluster) -> Iterator[Callable[[str], None]]:
    """Make a host look as before the first run, but for YARN's settings; put everything back afterwards."""
    hosts = []
    record = "/opt/deeplearning/state/yarn_gpu.json"  # without it they would be the site's

    def bare(name: str) -> None:
        cluster.run(name, "mv /opt/deeplearning /opt/deeplearning.aside && mkdir -p /opt/deeplearning/state")
        earlier = record.replace("/state/", ".aside/state/")
        cluster.run(name, f"[ ! -e {earlier} ] || cp -p {earlier} {record}")  # a host without GPUs may have none
        hosts.append(name)

    yield bare
    for name in hosts:
        cluster.run(name, "rm -rf /opt/deeplearning && mv /opt/deeplearning.aside /opt/deeplearning")


@pytest.fixture
def needs_hadoop_client(cluster) -> Iterator[Callable[[str], Callable[[], bool]]]:
    """Give a host something small to do; the answer says whether it was done."""
    receipt = "/opt/deeplearning/state/hadoop_client.json"
    aside = "/root/hadoop_client.json.aside"
    hosts = []

    def needs(name: str) -> Callable[[], bool]:
        cluster.run(name, f"mv {receipt} {aside}")
        hosts.append(name)
        return lambda: cluster.host(name).file(receipt).exists

    yield needs
    for name in hosts:
        cluster.run(name, f"mv {aside} {receipt}")
