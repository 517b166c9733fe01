"""What the demo prints at its end: commands for the cluster that was made, and not for another one."""

from __future__ import annotations

import subprocess

import pytest

from hadoop_dl_dev import check_steps
from hadoop_dl_dev.demo import images, tour
from hadoop_dl_dev.demo.cluster import Cluster


def commands(cluster: Cluster) -> list[str]:
    return [suggestion.command for suggestion in tour.suggestions(cluster)]


def test_the_same_command_again_names_the_same_stack_and_nodes() -> None:
    """make demo alone would switch the cluster to the default stack."""
    assert commands(Cluster("tf1.4-cpu-py27-el7"))[0] == "make demo STACK=tf1.4-cpu-py27-el7"
    assert commands(Cluster(data_nodes=3))[0] == "make demo DATA_NODES=3"
    assert commands(Cluster(hadoop="2.10.2"))[0] == "make demo HADOOP=2.10.2"
    assert commands(Cluster(name="other", hadoop="2.10.2"))[0].endswith(" --hadoop 2.10.2")


@pytest.mark.parametrize(("given", "option"), [("", []), ("1", ["--cdsw"]), ("1.10.5", ["--cdsw", "1.10.5"])])
def test_make_hands_the_release_of_cdsw_on(given: str, option: list[str]) -> None:
    command = ["make", "--no-print-directory", "--dry-run", "demo", f"CDSW={given}"]
    completed = subprocess.run(command, cwd=images.REPOSITORY, capture_output=True, text=True, check=True)
    assert completed.stdout.splitlines()[-1].split()[6:] == option


@pytest.mark.parametrize("command", [command for command in commands(Cluster()) if command.startswith("make ")])
def test_make_knows_the_target(command: str) -> None:
    make, *words = command.split()
    completed = subprocess.run(
        [make, "--dry-run", *words], cwd=images.REPOSITORY, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("stack", check_steps.STACKS)
def test_what_is_printed_is_what_the_end_to_end_tests_run(stack: str) -> None:
    """But for the status and the shell, which tests/e2e types, and with Kerberos the suite, which test_kerberos.py starts.

    The removal comes first, because a killed run leaves nodes, and last.
    """
    steps = [" ".join(step.command) for part in check_steps.e2e_steps(images.REPOSITORY, stack) for step in part]
    cluster = check_steps.e2e_cluster(stack)
    demo_command, _status, _shell, verify, removal = commands(cluster)
    used = [demo_command] if cluster.kerberos else [demo_command, verify]
    assert [step for step in steps if step in (demo_command, verify, removal)] == [removal, *used, removal]
    assert (steps[0], steps[-1]) == (removal, removal)
