"""A host joins, and an empty host replaces another: one run of site.yml makes it like the others and changes no other host."""

import re
from collections.abc import Iterator

import pytest
from bare_hosts import ENVIRONMENT, OF_THE_SYSTEM, Hosts

OLD, NEW, REPLACED = "data1", "data3", "data2"
# Every file, directory and link of the host: times of its last change, size, mode, owner, and where a link points to.
# Without the mirror, which is the controller's cache.
EVERYTHING = r"find / -xdev -path /srv/mirror -prune -o ! -type s -printf '%C@ %T@ %s %m %u:%g %p %l\n' | sort -k 6"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with Hosts("joins", (OLD, REPLACED, NEW), tmp_path_factory.mktemp("j")).running() as hosts:
        yield hosts


def everything(hosts: Hosts, name: str) -> list[str]:
    """Without what the system writes while it runs, and Ansible's own directory for what it runs."""
    lines = hosts.shell(name, EVERYTHING).splitlines()
    return [line for line in lines if not OF_THE_SYSTEM.search(f". {line.split(' ', 5)[5].strip()}")]


def joined(hosts: Hosts, name: str, others: tuple[str, ...]) -> None:
    """One run: the host is as the others, and these are as they were, file by file."""
    before = {other: everything(hosts, other) for other in others}
    assert len(before[OLD]) > 10000, "the list has the whole host"
    output = hosts.site()
    assert hosts.shell(name, "basename $(readlink /opt/deeplearning/current)").strip() == ENVIRONMENT
    assert hosts.content(name) == hosts.content(OLD)
    for other in others:
        assert sorted(set(everything(hosts, other)) ^ set(before[other])) == []
        assert re.search(rf"^{other}\s+: ok=\d+\s+changed=0 ", output, re.MULTILINE), output[-3000:]
    second_output = hosts.site()
    assert second_output.count("changed=0 ") == len(others) + 1


def test_an_empty_host_joins_and_no_other_is_touched(hosts):
    hosts.write_inventory(OLD, REPLACED)
    hosts.site()
    hosts.write_inventory(OLD, REPLACED, NEW)
    joined(hosts, NEW, (OLD, REPLACED))


def test_an_empty_host_takes_the_place_of_another(hosts):
    hosts.close_connections()
    hosts.start_host(REPLACED)
    hosts.write_inventory(OLD, REPLACED, NEW)
    assert hosts.shell(REPLACED, "ls /opt", check=False).split().count("deeplearning") == 0
    joined(hosts, REPLACED, (OLD, NEW))
