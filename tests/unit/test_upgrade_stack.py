"""Another stack, hosts that are directories: what is shown and asked. The real ansible-playbook runs the layers of upgrade_stack.yml."""

import json
from pathlib import Path

import ansible_programs
from upgrade_hosts import GROUPS, NEW, OLD, active

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
    assert " TensorFlow 1.0 1.4.1 " in output
    assert " TensorFlowOnSpark none 1.4.4 " in output
    assert " Java unknown 8 " in output, "the old stack is none of those that this project knows"
    assert " numpy none 1.16.6 " in output
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


def test_what_a_host_has_is_one_line_for_each_package():
    answer = {"environment": "a\n\x1b[2J", "python": ["x"], "packages": {"keras\nx": {"a": 1}, "numpy": "1" * 900}}
    current = stack_change.active({**answer, "stack": 7})
    target = stack_change.Contents("b", "3.11", {}, None)
    lines = stack_change.table(["data1"], current, target).splitlines()
    assert all(line.isprintable() and len(line) < 300 for line in lines)
    assert len(lines) == 6
    assert stack_change.active({"packages": 7}).packages == {}
