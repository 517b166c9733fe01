"""SIGKILL at ten random points of a run that changes CDSW's hosts, and at each step of its command; the same command ends as an undisturbed run.

The role cdsw on a master and a worker, behind stand-ins of ssh and of CDSW's command (tests/unit/cdsw_deployment.py).
The points are one in each tenth of an undisturbed run. KILL_POINTS_SEED repeats a run that failed; KILL_POINTS is their number.
"""

import os
import random
import signal
import time

import pytest
from cdsw_deployment import HOSTS, MASTER, WORKER, Site

SEED = int(os.environ.get("KILL_POINTS_SEED", str(random.SystemRandom().randrange(10**6))))
POINTS = int(os.environ.get("KILL_POINTS", "10"))
DICE = random.Random(SEED)  # noqa: S311  (reproducible points)
# Where in a run (0 is its begin, 1 its end) and what dies. Of a killed controller, what runs on the hosts goes on.
VICTIMS = ("controller", "both")
CHOSEN = [((number + DICE.random()) / POINTS, DICE.choice(VICTIMS)) for number in range(POINTS)]
STEPS = ((MASTER, "restart"), (WORKER, "reset"), (WORKER, "join"))
PLACES = [f"{host} {where} {step}" for host, step in STEPS for where in ("before", "after")]


@pytest.fixture(scope="module")
def seconds(tmp_path_factory: pytest.TempPathFactory) -> float:
    """Of an undisturbed run."""
    site = Site(tmp_path_factory.mktemp("undisturbed"))
    began = time.monotonic()
    code, output = site.run()
    assert (code, site.differences()) == (0, []), output
    return time.monotonic() - began


def heals(site: Site) -> None:
    """The same command ends like an undisturbed run, and then changes nothing."""
    code, output = site.run()
    assert (code, output.count("COMPLETE True")) == (0, len(HOSTS)), output
    assert site.differences() == []
    changes = site.changes()
    code, output = site.run()
    assert (code, site.changes(), output.count("changed=0 ")) == (0, changes, len(HOSTS)), output


@pytest.mark.parametrize("number", range(POINTS))
def test_the_same_command_heals_a_run_that_was_killed(tmp_path, seconds, number):
    part, victim = CHOSEN[number]
    print(f"KILL_POINTS_SEED={SEED} KILL_POINTS={POINTS}: {victim} at {part:.3f} of {seconds:.1f} s")
    site = Site(tmp_path)
    process = site.start()
    time.sleep(part * seconds)
    if victim == "both":
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait(timeout=60)
    heals(site)


@pytest.mark.parametrize("place", PLACES)
def test_the_same_command_heals_a_run_that_was_killed_at_a_step(tmp_path, place):
    site = Site(tmp_path)
    site.kill(place)
    heals(site)
