"""Another stack, hosts that are directories: what is shown and asked. The real ansible-playbook runs the layers of upgrade_stack.yml."""

import json
from pathlib import Path

import ansible_programs
from upgrade_hosts import GROUPS, NEW, OLD, STACK, active

from hadoop_dl.data import stacks
from hadoop_dl.hosts import stack_change


def run(cluster: Path, *options: str, **variables: object) -> tuple[int, str]:
    arguments = ("-i", cluster / "hosts.yml", cluster / "upgrade.yml", *options, "-e", json.dumps(variables))
    return ansible_programs.play(*arguments, timeout=300)


def test_without_a_terminal_and_without_assume_yes_nothing_is_changed(cluster):
    code, output = run(cluster)
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), output
    assert "No host was changed. Type yes, or add -e assume_yes=true if there is no terminal." in output


def test_what_changes_is_shown_and_a_confirmed_upgrade_switches_all_hosts_and_again_changes_none(cluster):
    code, output = run(cluster, assume_yes=True)
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, NEW)), output
    assert f"data1, data2, edge1: {OLD} -> {NEW}" in output
    assert " TensorFlow unknown 1.4.1 " in output, "the old stack is none of those that this project knows"
    assert " TensorFlowOnSpark unknown 1.4.4 " in output
    assert " Java unknown 8 " in output
    assert all((cluster / name / "envs" / OLD).is_dir() for name in GROUPS), "the way back"
    code, output = run(cluster, needed=False)
    assert code == 0, output
    assert f"{NEW} is installed and active on every host already. No host was changed." in output
    assert "changed=0" in output
    assert "changed=1" not in output


def test_check_mode_shows_what_would_change_and_asks_nothing(cluster):
    code, output = run(cluster, "--check")
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, OLD)), output
    assert "TensorFlowOnSpark" in output


def contents(name: str) -> stack_change.Contents:
    stack = stacks.load_stack(name)
    lock = stack.lock(stack.pythons[0])
    return stack_change.active(f"{name}-{lock.digest}")


def test_a_lock_that_this_tree_has_tells_the_packages_that_change():
    lines = stack_change.table(["data1"], contents(STACK), contents("tf1.15-cpu-py27-el7")).splitlines()
    assert [line.split() for line in lines if line.split()[0] in ("Python", "TensorFlow", "gast")] == [
        ["Python", "2.7", "2.7"],
        ["TensorFlow", "1.4.1", "1.15.0"],
        ["gast", "none", "0.2.2"],
    ]


def test_of_another_lock_the_stacks_parts_alone_are_known():
    old = stack_change.active(f"{STACK}-000000000000")
    assert (old.part("Spark"), old.part("Python"), old.part("Keras")) == (
        contents(STACK).part("Spark"),
        "unknown",
        "unknown",
    )
    assert "numpy" not in stack_change.table(["data1"], old, contents(STACK))
    assert "numpy" in stack_change.table(["data1"], stack_change.active(""), contents(STACK))
