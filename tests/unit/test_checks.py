"""The runner behind `make test`: what it counts, what it stops, what it cleans up."""

import json
from pathlib import Path

import ansible_programs
import pytest

from hadoop_dl_dev import check_results, check_steps, checks
from hadoop_dl_dev.check_steps import Step
from hadoop_dl_dev.checks import Runner


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    runner = Runner(tmp_path)
    runner.logs.mkdir(parents=True)
    return runner


def bash(name: str, script: str, layer: str = "unit", **options) -> Step:
    return Step(layer, name, ["bash", "-c", script], **options)


def outcomes(runner: Runner) -> list[str]:
    return [step.outcome for step in runner.steps]


@pytest.mark.parametrize(
    ("layer", "next_one"), [("unit", "not run"), ("molecule", "not run"), ("lint", "passed"), (checks.LONG, "passed")]
)
@pytest.mark.parametrize("beside", [False, True])
def test_a_failure_ends_the_run_of_all_layers_but_lint_and_long(runner, layer, next_one, beside):
    runner.steps = [bash("one", "true", layer), bash("two", "exit 3", layer), bash("three", "true", layer)]
    if beside:
        runner.run_side_by_side([[step] for step in runner.steps], jobs=1)
    else:
        runner.run_in_order(runner.steps)
    assert outcomes(runner) == ["passed", "FAILED", next_one]
    assert runner.failed
    count = outcomes(runner).count("passed")
    assert str(runner.count()) == f"{count} passed, 1 failed, 0 skipped"


def test_a_cluster_that_was_started_is_removed_after_a_failure(runner):
    first_environment, second_environment = {"E2E_STACK": "here"}, {"E2E_STACK": "other"}
    runner.steps = [
        bash("here up", "exit 1", "e2e", environment=first_environment),
        bash("here down", "true", "e2e", environment=first_environment, always=True),
        bash("other up", "true", "e2e", environment=second_environment),
        bash("other down", "true", "e2e", environment=second_environment, always=True),
    ]
    runner.run_in_order(runner.steps[:1])
    runner.run_in_order(runner.steps[1:])
    assert outcomes(runner) == ["FAILED", "passed", "not run", "not run"]


def test_a_scenario_that_ran_no_test_is_a_failure(runner, capsys):
    runner.steps = [bash("empty", "true", "molecule", needs_tests=True)]
    runner.run_side_by_side([[step] for step in runner.steps], jobs=1)
    assert outcomes(runner) == ["FAILED"]
    assert "ran none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("writes", "count"),
    [
        ('<testsuite tests="7" failures="1" errors="1" skipped="2"/>', "3 passed, 2 failed, 2 skipped"),
        ("", "0 passed, 1 failed, 0 skipped"),  # the report of an earlier run is not counted
    ],
)
def test_tests_are_counted_from_the_junit_file_of_this_run(runner, writes, count):
    report = ".cache/test/unit-pytest.xml"
    (runner.repo / report).write_text('<testsuites><testsuite tests="7"/></testsuites>')
    write = f"echo '<testsuites>{writes}</testsuites>' > {report}; " if writes else ""
    runner.steps = [bash("pytest", f"{write}exit 1", "unit")]
    runner.run_in_order(runner.steps)
    assert str(runner.count()) == count


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("TASK [ask]\nfatal: [el7]: FAILED! => why\nPLAY RECAP\nel7 : ok=3\n", "fatal: [el7]: FAILED! => why"),
        ("  \x1b[2m│\x1b[0m fatal: [el9]: FAILED! =>\n  \x1b[2m│\x1b[0m   msg: too old\n", "    msg: too old"),
        ("def test():\nE   assert 1 == 2\n", "E   assert 1 == 2"),
        ("no line of a known form\n\nthe last one\n", "the last one"),
    ],
)
def test_the_summary_ends_with_the_cause_of_a_failure(runner, log, cause):
    runner.steps = [bash("one", "true"), bash("two", f"printf '%s' '{log}'; exit 1")]
    runner.run_in_order(runner.steps)
    end = runner.summary().split("FAILED: unit two (.cache/test/unit-two.log)")[1]
    assert cause in end


def test_what_is_slow_is_in_the_long_layer_only():
    quick = {step.name for step in check_steps.molecule_steps(check_steps.REPO)}
    long = {step.name for step in check_steps.long_steps(check_steps.REPO)}
    assert set(check_steps.LONG_SCENARIOS) <= long
    assert quick & long == set(check_steps.TWO_TIERS)
    assert quick | long >= set(check_steps.scenarios(check_steps.REPO))


def test_the_words_of_a_failed_command_are_among_the_causes(tmp_path):
    command = {"argv": ["bash", "-c", "echo the reason >&2; exit 3"]}
    play = {"hosts": "localhost", "connection": "local", "gather_facts": False}
    play["vars"] = {"ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    play["tasks"] = [{"ansible.builtin.command": command, "changed_when": False, "loop": ["one"]}]
    (tmp_path / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    completed = ansible_programs.run("ansible-playbook", "-i", "localhost,", tmp_path / "play.yml")
    (tmp_path / "log").write_text(completed.stdout, encoding="utf-8")
    assert "stderr: the reason" in check_results.causes(tmp_path / "log"), completed
