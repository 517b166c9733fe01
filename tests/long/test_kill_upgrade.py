"""SIGKILL at five points of an upgrade to another stack and of a rollback; the same command ends in the same files as an undisturbed run.

The points are random, one in each fifth of an undisturbed run. KILL_POINTS_SEED repeats a run that failed; KILL_POINTS is their number.
"""

import os
import random
import time
from collections.abc import Iterator

import pytest
from bare_hosts import ENVIRONMENT, STACK, Hosts

from hadoop_dl.data import stacks

HOSTS = ("data1", "data2")
OTHER = "tf1.4-other-py27-el7"  # the same wheels under another name: a stack of the site beside its inventory
SEED = int(os.environ.get("KILL_POINTS_SEED", str(random.SystemRandom().randrange(10**6))))
POINTS = int(os.environ.get("KILL_POINTS", "5"))
DICE = random.Random(SEED)  # noqa: S311  (reproducible points)
VICTIMS = ("controller", "both")  # of a killed controller, the hosts' processes go on
KINDS = ("upgrade", "rollback")
CHOSEN = {kind: [((n + DICE.random()) / POINTS, DICE.choice(VICTIMS)) for n in range(POINTS)] for kind in KINDS}
COMMAND = {
    "upgrade": ("playbooks/upgrade_stack.yml", "-e", f"deeplearning_request={OTHER}", "-e", "assume_yes=true"),
    "rollback": ("playbooks/rollback.yml",),
}


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    hosts = Hosts("killup", HOSTS, tmp_path_factory.mktemp("u"))
    stack = stacks.load_stack(STACK)
    stacks_directory = hosts.directory / "stacks"
    (stacks_directory / "locks").mkdir(parents=True)
    text = (stack.directory / f"{STACK}.yml").read_text(encoding="utf-8")
    (stacks_directory / f"{OTHER}.yml").write_text(text.replace(f"name: {STACK}", f"name: {OTHER}"), encoding="utf-8")
    (stacks_directory / "locks" / f"{OTHER}.txt").write_text(stack.lock().text, encoding="utf-8")
    with hosts.running():
        yield hosts


@pytest.fixture(scope="module")
def undisturbed(hosts: Hosts) -> dict[str, tuple[float, dict[str, set[str]]]]:
    """By kind: the seconds that a run takes, and the hosts after it. What each kind begins with is kept aside."""
    hosts.site()
    runs = {}
    for kind in KINDS:
        for name in HOSTS:
            hosts.shell(name, f"rm -rf /var/tmp/{kind} && cp -a /opt/deeplearning /var/tmp/{kind}")
        began = time.monotonic()
        hosts.play(*COMMAND[kind])
        runs[kind] = (time.monotonic() - began, {name: hosts.content(name) for name in HOSTS})
    return runs


def current(hosts: Hosts) -> list[str]:
    return [hosts.shell(name, "basename $(readlink /opt/deeplearning/current)").strip() for name in HOSTS]


@pytest.mark.parametrize("number", range(POINTS))
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_command_ends_a_run_that_was_killed(hosts, undisturbed, kind, number):
    part, victim = CHOSEN[kind][number]
    seconds, expected = undisturbed[kind]
    print(f"KILL_POINTS_SEED={SEED} KILL_POINTS={POINTS}: {kind}, {victim} at {part:.3f} of {seconds:.1f} s")
    for name in HOSTS:
        hosts.shell(name, f"rm -rf /opt/deeplearning && cp -a /var/tmp/{kind} /opt/deeplearning")
    process = hosts.start_play(*COMMAND[kind])
    time.sleep(part * seconds)
    if victim == "both":  # before the controller: without it, they are nobody's children
        print("killed on the hosts:", [hosts.kill_on_host(name) for name in HOSTS])
    hosts.kill_controller(process)
    for name in HOSTS:  # what is active is complete
        hosts.shell(name, "/opt/deeplearning/current/bin/python -B -c 'import numpy'")
    lock_files = [hosts.shell(name, "ls /opt/deeplearning/.run.json", check=False).strip() for name in HOSTS]
    if kind == "rollback" and not any(lock_files) and set(current(hosts)) == {ENVIRONMENT}:
        print("it had ended: the same command would go forward again")
    else:
        hosts.play(*COMMAND[kind])
    for name in HOSTS:
        assert sorted(hosts.content(name) ^ expected[name]) == []
