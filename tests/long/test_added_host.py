"""A host joins a site, and one is replaced by an empty one of its name: one run installs it, and nothing on the others is touched."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from bare_hosts import PATH, Hosts


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts("added", ("data1", "data2"), tmp_path_factory.mktemp("a"))
    hosts.start()
    yield hosts
    hosts.remove()


def times(hosts: Hosts, name: str) -> str:
    """Every path of this project on a host with the times of its content and of its inode; the lock's holder comes and goes."""
    found = hosts.shell(name, "find /opt/deeplearning ! -name .lock -printf '%p %T@ %C@\\n' | sort")
    return "\n".join(line for line in found.splitlines() if not line.startswith("/opt/deeplearning "))


def test_a_host_that_joins_is_installed_and_nobody_else_is_touched(hosts: Hosts) -> None:
    hosts.site("--limit", "data1")
    before = times(hosts, "data1")
    said = hosts.site()
    assert re.search(r"^data1 .*changed=0 ", said, re.MULTILINE), said[-3000:]
    plan = said[said.index("PLAN") : said.index("PLAY [Fill")]
    assert "data2" in plan
    assert "data1" not in plan
    assert times(hosts, "data1") == before
    assert hosts.content("data2") == hosts.content("data1")
    assert hosts.shell("data2", "readlink /opt/deeplearning/current") == f"envs/{PATH.rpartition('/')[2]}"


def test_a_host_that_was_replaced_is_installed_and_nobody_else_is_touched(hosts: Hosts) -> None:
    """The new machine has the name, the address and the keys of the old one, and nothing of this project."""
    hosts.shell("data2", "rm -rf /opt/deeplearning")
    before = times(hosts, "data1")
    said = hosts.site()
    assert re.search(r"^data1 .*changed=0 ", said, re.MULTILINE), said[-3000:]
    assert times(hosts, "data1") == before
    assert hosts.content("data2") == hosts.content("data1")
    assert hosts.site().count("changed=0 ") == 2
