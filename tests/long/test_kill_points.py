"""SIGKILL at ten points of a first installation and ten of a repair; the same command ends in the same files as an undisturbed run.

The points are random, one in each tenth of an undisturbed run. KILL_POINTS_SEED repeats a run that failed; KILL_POINTS is their number.
"""

import os
import random
import subprocess
import time
from collections.abc import Iterator

import pytest
from bare_hosts import PATH, Hosts

HOST = "data1"
SEED = int(os.environ.get("KILL_POINTS_SEED", str(random.SystemRandom().randrange(10**6))))
POINTS = int(os.environ.get("KILL_POINTS", "10"))
ASIDE = "/var/tmp/installed"
DICE = random.Random(SEED)  # noqa: S311  (reproducible points)
# Where in a run (0 is its begin, 1 its end) and what dies. Of a killed controller, the host's processes go on.
VICTIMS = ("controller", "host", "both")
CHOSEN = {
    kind: [((number + DICE.random()) / POINTS, DICE.choice(VICTIMS)) for number in range(POINTS)]
    for kind in ("first installation", "repair")
}
RESET = {
    "first installation": "rm -rf /opt/deeplearning",
    "repair": f"rm -rf /opt/deeplearning && cp -a {ASIDE} /opt/deeplearning"
    f" && rm {PATH}/lib/python2.7/site-packages/six.py && echo evil > {PATH}/lib/python2.7/site-packages/mock/mock.py",
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with Hosts("kill", (HOST,), tmp_path_factory.mktemp("k")).running() as hosts:
        yield hosts


@pytest.fixture(scope="module")
def undisturbed(hosts: Hosts) -> dict[str, tuple[float, set[str]]]:
    """By kind: the seconds that a run takes, and the host after it. The first installation is kept for the repairs."""
    hosts.site()  # the next one does not wait for the disk
    runs = {}
    for kind, reset in RESET.items():
        hosts.shell(HOST, reset)
        began = time.monotonic()
        hosts.site()
        runs[kind] = (time.monotonic() - began, hosts.content(HOST))
        if kind == "first installation":
            hosts.shell(HOST, f"cp -a /opt/deeplearning {ASIDE}")
    return runs


def active(hosts: Hosts) -> str:
    return hosts.shell(HOST, "readlink /opt/deeplearning/current || true").strip()


@pytest.mark.parametrize("number", range(POINTS))
@pytest.mark.parametrize("kind", RESET)
def test_the_same_command_heals_a_run_that_was_killed(hosts, undisturbed, kind, number):
    part, victim = CHOSEN[kind][number]
    seconds, expected = undisturbed[kind]
    print(f"KILL_POINTS_SEED={SEED} KILL_POINTS={POINTS}: {kind}, {victim} at {part:.3f} of {seconds:.1f} s")
    hosts.shell(HOST, RESET[kind])
    before = active(hosts)
    process = hosts.start_site()
    time.sleep(part * seconds)
    kill(hosts, process, victim)
    heals(hosts, before, expected)


def kill(hosts: Hosts, process: subprocess.Popen[str], victim: str) -> None:
    if victim != "controller":  # before the controller: without it, they are nobody's children
        print("killed on the host:", hosts.kill_on_host(HOST) or "nothing ran")
    if victim != "host":
        hosts.kill_controller(process)
    if victim == "host":
        hosts.finish(process)


def heals(hosts: Hosts, before: str, expected: set[str]) -> None:
    """The same command ends like an undisturbed run, and then changes nothing."""
    if active(hosts):  # nothing half-made is ever active: a sealed tree, or the one that was active before
        assert hosts.shell(HOST, "cat /opt/deeplearning/current/.deeplearning/sealed.json")
        hosts.shell(HOST, "/opt/deeplearning/current/bin/python -c 'import sys'")
    assert active(hosts) or not before
    hosts.site()
    assert sorted(hosts.content(HOST) ^ expected) == []
    assert "changed=0 " in hosts.site()
