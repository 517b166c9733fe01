"""Another process holds the package manager's lock, with real dnf, rpm and apt: it is named in time, and the next run does the work.

The images have no yum 3: what RHEL 7 has is not asked here.
"""

from __future__ import annotations

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
NODES = {
    "el9": {"package": "nvidia-smi-standin", "manager": "dnf"},
    "debian12": {"package": "lock-test", "manager": "apt"},
}
POSIX = "import fcntl, time; f = open('%s', 'a'); fcntl.lockf(f, fcntl.LOCK_EX); time.sleep(600)"
# A real dnf that reads the index of a repository whose server accepts and never answers.
DNF = (
    "import socket, subprocess; s = socket.create_server(('127.0.0.1', 9999)); "
    "subprocess.run(['dnf', '--repofrompath=hang,http://127.0.0.1:9999/', '--repo=hang', '--setopt=timeout=600', 'makecache'])"
)
HOLDERS = {  # image, what holds it, what shows that it does, who is named
    "rpm": ("el9", POSIX % "/root/.rpmdb/.rpm.lock", "grep -q POSIX /proc/locks", "holds /root/.rpmdb/.rpm.lock"),
    "dnf": ("el9", DNF, "test -e /var/cache/dnf/metadata_lock.pid", r"dnf .* makecache\) holds|is: dnf"),
    "dpkg": (
        "debian12",
        POSIX % "/var/lib/dpkg/lock-frontend",
        "grep -q POSIX /proc/locks",
        r"is held by process|process \d+ .* holds /var/lib/dpkg/lock-frontend",
    ),
}
DEBIAN = r"""
set -e
[ -z "$http_proxy" ] || echo "Acquire::http::Proxy \"$http_proxy\";" > /etc/apt/apt.conf.d/80proxy
mkdir -p /srv/debs/lock-test/DEBIAN && cd /srv/debs
printf 'Package: lock-test\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: test\n' > lock-test/DEBIAN/control
dpkg-deb --build lock-test lock-test.deb
sum=$(sha256sum lock-test.deb | cut -d' ' -f1)
{ cat lock-test/DEBIAN/control; printf 'Filename: ./lock-test.deb\nSize: %s\nSHA256: %s\n' "$(stat -c %s lock-test.deb)" "$sum"; } > Packages
printf 'deb http://deb.debian.org/debian bookworm main\ndeb [trusted=yes] file:/srv/debs ./\n' > /etc/apt/sources.list
apt-get -q update && apt-get -q -y install python3-apt
"""


@pytest.fixture(scope="module")
def image(request: pytest.FixtureRequest) -> Iterator[str]:
    """A node with one small package in a repository of its own, and with what Ansible's apt needs."""
    name = f"lock-{request.param}"
    nodes.remove(name)
    nodes.start(name, request.param, nodes.options_of(name, mounts=[f"{fixtures.ensure()}:/srv/site-repo:ro"]))
    shell = ["docker", "exec", "--interactive", "--env", "http_proxy", name, "sh", "-c"]
    if request.param == "debian12":
        run(*shell, DEBIAN, timeout=300)
    else:
        run(*shell, "rm -f /etc/yum.repos.d/*; cat > /etc/yum.repos.d/site.repo", stdin=fixtures.REPOSITORY_FILE)
    yield request.param
    nodes.remove(name)


def play(image: str, tag: str) -> subprocess.CompletedProcess[str]:
    variables = {"ansible_connection": "community.docker.docker", "ansible_python_interpreter": "/usr/bin/python3"}
    arguments = ("-i", f"lock-{image},", "--tags", tag, "-e", json.dumps({**variables, **NODES[image]}))
    playbook = REPOSITORY / "tests/long/package_lock.yml"
    return ansible_programs.run("ansible-playbook", *arguments, playbook, timeout=LIMIT)


@pytest.mark.parametrize("tag", ["install", "remove"])
@pytest.mark.parametrize(
    ("image", "holder"), [(row[0], holder) for holder, row in HOLDERS.items()], indirect=["image"], scope="module"
)
def test_a_lock_is_waited_for_and_its_holder_is_named(image: str, holder: str, tag: str) -> None:
    _, program, shows, pattern = HOLDERS[holder]
    if tag == "remove":
        assert play(image, "install").returncode == 0
    container = f"lock-{image}"

    def succeeds(*command: str) -> bool:
        return run("docker", "exec", container, *command, check=False).returncode == 0

    nodes.execute(container, "systemd-run", "--unit", "holder", "/usr/bin/python3", "-c", program)
    try:
        until(lambda: succeeds("sh", "-c", shows), 30, "the lock must be held")
        completed = play(image, tag)
    finally:
        nodes.execute(container, "systemctl", "kill", "--signal=KILL", "holder")
    output = " ".join(completed.stdout.split())
    assert completed.returncode == 2, output
    assert re.search(pattern, output), output
    until(lambda: not succeeds("systemctl", "is-active", "--quiet", "holder"), 30, "its holder must end")
    nodes.execute(container, "systemctl", "reset-failed", "holder", check=False)
    second_run = play(image, tag)
    assert second_run.returncode == 0, second_run.stdout
    assert "changed=1 " in second_run.stdout
    play(image, "remove")
