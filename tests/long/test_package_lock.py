"""Another process holds the package manager's lock, with real dnf and rpm: it is named in time, and the next run does the work.

The images have no yum 3: what RHEL 7 has is not asked here.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import ansible_programs
import pytest
from waiting import until

from hadoop_dl_dev.demo import fixtures, nodes
from hadoop_dl_dev.demo.shell import run

REPOSITORY = Path(__file__).resolve().parents[2]
LIMIT = 200  # seconds; the longest wait for a lock is 120
NODE = "lock-el9"
POSIX = "import fcntl, time; f = open('%s', 'a'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(600)"
# A real dnf that reads the index of a repository whose server accepts and never answers.
DNF = (
    "import socket, subprocess; s = socket.create_server(('127.0.0.1', 9999)); "
    "subprocess.run(['dnf', '--repofrompath=hang,http://127.0.0.1:9999/', '--repo=hang', '--setopt=timeout=600', 'makecache'])"
)
HOLDERS = {  # what holds it, what shows that it does, who is named
    "rpm": (POSIX % "/root/.rpmdb/.rpm.lock", "grep -q POSIX /proc/locks", "holds /root/.rpmdb/.rpm.lock"),
    "dnf": (DNF, "test -e /var/cache/dnf/metadata_lock.pid", r"dnf .* makecache\) holds|is: dnf"),
}


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    """A node with one small package in a repository of its own."""
    nodes.remove(NODE)
    nodes.start(NODE, "el9", nodes.options_of(NODE, mounts=[f"{fixtures.ensure()}:/srv/site-repo:ro"]))
    define = "rm -f /etc/yum.repos.d/*; cat > /etc/yum.repos.d/site.repo"
    run("docker", "exec", "--interactive", NODE, "sh", "-c", define, stdin=fixtures.REPOSITORY_FILE)
    yield NODE
    nodes.remove(NODE)


def play(tag: str) -> subprocess.CompletedProcess[str]:
    variables = {"ansible_connection": "community.docker.docker", "ansible_python_interpreter": "/usr/bin/python3"}
    variables |= {"package": "nvidia-smi-standin", "manager": "dnf"}
    arguments = ("-i", f"{NODE},", "--tags", tag, "-e", json.dumps(variables))
    playbook = REPOSITORY / "tests/long/package_lock.yml"
    return ansible_programs.run("ansible-playbook", *arguments, playbook, timeout=LIMIT)


@pytest.mark.parametrize("tag", ["install", "remove"])
@pytest.mark.parametrize("holder", list(HOLDERS))
def test_a_lock_is_waited_for_and_its_holder_is_named(node, holder, tag):
    program, shows, pattern = HOLDERS[holder]
    if tag == "remove":
        assert play("install").returncode == 0

    def succeeds(*command: str) -> bool:
        return run("docker", "exec", node, *command, check=False).returncode == 0

    nodes.execute(node, "systemd-run", "--unit", "holder", "/usr/bin/python3", "-c", program)
    try:
        until(lambda: succeeds("sh", "-c", shows), 30, "the lock must be held")
        completed = play(tag)
    finally:
        nodes.execute(node, "systemctl", "kill", "--signal=KILL", "holder")
    output = " ".join(completed.stdout.split())
    assert completed.returncode == 2, output
    assert re.search(pattern, output), output
    until(lambda: not succeeds("systemctl", "is-active", "--quiet", "holder"), 30, "its holder must end")
    nodes.execute(node, "systemctl", "reset-failed", "holder", check=False)
    second_run = play(tag)
    assert second_run.returncode == 0, second_run.stdout
    assert "changed=1 " in second_run.stdout
    play("remove")
