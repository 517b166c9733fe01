"""Hosts that an earlier version of this project installed: today's site.yml rebuilds nothing on them, and the earlier one works there again.

EARLIER is a commit of this project's history, because no release is tagged yet; EARLIER_VERSION names another. A clone without history skips the test.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_hosts import ENVIRONMENT, PATH, REPOSITORY, Hosts

# Before the layers of lib/hadoop_dl, the run lock and the removal.
EARLIER = os.environ.get("EARLIER_VERSION", "46e58bb5a921e74547d613d385eaf3a9e6836942")
# A directory's time and size follow the names in it, which are all here.
TREE = f"find {PATH}* -type d -printf '- - %m %u:%g %p\\n' -o -printf '%C@ %s %m %u:%g %p %l\\n' | sort -k 5"


def git(repository: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)


def missing(repository: Path) -> str:
    """Why this clone does not have the earlier version; empty if it has."""
    if git(repository, "cat-file", "-e", f"{EARLIER}^{{commit}}").returncode == 0:
        return ""
    return f"{EARLIER[:12]} must be in this clone's history, but is not. git fetch --unshallow brings it; EARLIER_VERSION names another commit."


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the earlier version."""
    if reason := missing(REPOSITORY):
        pytest.skip(reason)
    tree = tmp_path_factory.mktemp("earlier")
    subprocess.run(["tar", "-x"], cwd=tree, input=git(REPOSITORY, "archive", EARLIER).stdout, check=True)
    return tree


@pytest.fixture(scope="module")
def hosts(earlier: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with Hosts("earlier", ("data1", "data2"), tmp_path_factory.mktemp("e")).running() as hosts:
        yield hosts


def test_a_clone_without_history_says_what_brings_it(tmp_path):
    git(tmp_path, "init", "--quiet")
    assert "git fetch --unshallow brings it" in missing(tmp_path)


def current(hosts: Hosts) -> set[str]:
    return {hosts.shell(name, "basename $(readlink /opt/deeplearning/current)").strip() for name in hosts.names}


def test_todays_site_yml_takes_the_hosts_of_an_earlier_version_and_the_earlier_one_takes_them_back(hosts, earlier):
    """One test, because each step begins with what the one before left."""
    hosts.tree = earlier
    hosts.site()
    assert current(hosts) == {ENVIRONMENT}
    before = {name: hosts.shell(name, TREE) for name in hosts.names}
    assert all(len(lines.splitlines()) > 1000 for lines in before.values())

    hosts.tree = REPOSITORY
    output = hosts.site()
    print(output)
    assert current(hosts) == {ENVIRONMENT}
    for name in hosts.names:
        entries = set(hosts.shell(name, TREE).splitlines()) ^ set(before[name].splitlines())
        assert [line for line in entries if ".client" not in line and "/.deeplearning/activated.json" not in line] == []
        hosts.shell(name, "/opt/deeplearning/current/bin/python -B -c 'import tensorflow'")
    assert hosts.site().count("changed=0 ") == len(hosts.names)

    # The way back: the earlier version's directory.
    hosts.tree = earlier
    print(hosts.site())
    assert current(hosts) == {ENVIRONMENT}
    for name in hosts.names:
        hosts.shell(name, "/opt/deeplearning/current/bin/python -B -c 'import tensorflow'")
