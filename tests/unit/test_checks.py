"""The runner behind `make test`: what it counts, what it stops, what it cleans up."""

import runpy
from pathlib import Path

import pytest

from hadoop_dl.data.stacks import load_stack, stack_names
from hadoop_dl_dev import check_steps, checks
from hadoop_dl_dev.check_steps import Step
from hadoop_dl_dev.checks import Runner
from hadoop_dl_dev.demo import images


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


@pytest.mark.parametrize(("ends", "unit"), [("exit 0", "passed"), ("exit 1", "not run")])
def test_unit_tests_begin_beside_the_longest_lint_step_and_not_after_a_failure(
    ends: str, unit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = "for i in $(seq 100); do [ ! -e begun ] || exit 0; sleep 0.05; done; exit 1"  # until a unit test has begun
    lint = [bash("short", ends, "lint"), bash("long", waits if ends == "exit 0" else ends, "lint")]
    report = "echo '<testsuite tests=\"1\"/>' > .cache/test/unit-a.xml"
    for name, value in (
        ("REPO", tmp_path),
        ("scenarios", lambda repo: []),
        ("lint_steps", lambda repo: lint),
        ("unit_steps", lambda repo, jobs: [bash("a", f"touch begun; {report}")]),
    ):
        monkeypatch.setattr(checks, name, value)
    assert checks.main(["lint", "unit", "--jobs", "1"]) == (0 if unit == "passed" else 1)
    steps = [line.split() for line in capsys.readouterr().out.partition("result     time")[2].splitlines()]
    assert [words[2] for words in steps if words[:2] == ["unit", "a"]] == ([unit] if unit == "passed" else [])


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


def test_the_next_cluster_is_made_beside_jobs_and_both_are_removed_after_their_failure(tmp_path, monkeypatch):
    def parts(_, stack: str) -> list[list[Step]]:
        def step(name: str, script: str, **options) -> Step:
            return bash(f"{stack} {name}", script, "e2e", environment={"E2E_STACK": stack}, **options)

        # Those of the first cluster fail when those of the second, which is there then, have begun; these end after the first one's removal.
        scripts = {
            "one": "while [ ! -e begun ]; do sleep 0.05; done; exit 1",
            "two": "touch begun; while [ ! -e down-one ]; do sleep 0.05; done",
        }
        down = step("down", f"touch down-{stack}", always=True)
        return [[step("made", "true")], [step("jobs", scripts[stack]), step("faults", "true"), down]]

    monkeypatch.setattr(check_steps, "e2e_steps", parts)
    monkeypatch.setattr(checks, "REPO", tmp_path)
    monkeypatch.setattr(checks, "scenarios", lambda repo: [])
    names = []
    monkeypatch.setattr(
        Runner, "run", lambda runner, step, show, run=Runner.run: (names.append(step.name), run(runner, step, show))
    )
    assert checks.main(["e2e", "--stack", "one", "--stack", "two"]) == 1
    assert (names[0], set(names[1:3]), names[3:]) == (
        "one made",
        {"one jobs", "two made"},
        ["two jobs", "one down", "two down"],
    )


def test_clusters_that_are_there_at_the_same_time_have_names_of_their_own() -> None:
    names = [check_steps.e2e_cluster(stack).name for stack in stack_names()]
    assert len(set(names)) == len(names)


def test_a_command_that_does_not_exist_is_a_failure(runner, capsys):
    runner.steps = [Step("lint", "nothing", ["/no/such/command"])]
    runner.run_in_order(runner.steps)
    assert outcomes(runner) == ["FAILED"]
    assert "/no/such/command" in capsys.readouterr().out


def test_side_by_side_runs_everything_and_shows_the_log_of_what_failed(runner, capsys):
    runner.steps = [bash("good", "echo all fine", "molecule"), bash("bad", "echo the cause; exit 1", "molecule")]
    runner.run_side_by_side([[step] for step in runner.steps], jobs=2)
    assert outcomes(runner) == ["passed", "FAILED"]
    output = capsys.readouterr().out
    assert "the cause" in output
    assert "all fine" not in output


def test_a_lane_runs_in_order_beside_others_and_cleans_up_after_their_failure(runner):
    environment = {"E2E_STACK": "here"}
    lane = [
        bash("up", "touch up", "e2e", environment=environment),
        bash(
            "wait",
            "for i in $(seq 600); do [ ! -e failed ] || exec sleep 3; sleep 0.05; done; exit 1",
            "e2e",
            environment=environment,
        ),
        bash("jobs", "true", "e2e", environment=environment),
        bash("down", "true", "e2e", environment=environment, always=True),
    ]
    scenario = bash("scenario", "while [ ! -e up ]; do sleep 0.05; done; touch failed; exit 1", "molecule")
    runner.steps = [*lane, scenario]
    runner.run_side_by_side([lane, [scenario]], jobs=2)
    assert outcomes(runner) == ["passed", "passed", "not run", "passed", "FAILED"]


def test_a_scenario_does_its_long_part_in_the_long_layer_only(monkeypatch):
    monkeypatch.delenv("SCENARIO_LONG", raising=False)
    [quick] = [step for step in check_steps.molecule_steps(check_steps.REPO) if step.name == check_steps.TWO_TIERS[0]]
    [long] = [step for step in check_steps.long_steps(check_steps.REPO) if step.name == check_steps.TWO_TIERS[0]]
    runner = Runner(check_steps.REPO)
    assert [runner.environment(step).get("SCENARIO_LONG") for step in (quick, long)] == [None, "yes"]


def test_steps_write_the_bytecode_that_their_next_start_reads(runner, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "PYTHONDONTWRITEBYTECODE" not in runner.environment(bash("a", "true"))


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


def test_the_summary_names_every_step_and_ends_with_the_count(runner):
    runner.steps = [bash("one", "true"), bash("two", "exit 1"), bash("later", "true", "unit")]
    runner.run_in_order(runner.steps)
    lines = runner.summary().splitlines()
    assert [name for name in ("one", "two") if any(f" {name} " in line for line in lines)] == ["one", "two"]
    assert any("1 of 3 steps" in line and "not run" in line for line in lines)
    assert lines[-1] == "1 passed, 1 failed, 0 skipped"


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


def test_every_scenario_of_the_repository_is_found():
    folders = {path.name for path in (check_steps.REPO / "molecule").iterdir() if (path / "converge.yml").exists()}
    assert set(check_steps.scenarios(check_steps.REPO)) == folders - {"shared"}
    assert check_steps.scenarios(check_steps.REPO)[: len(check_steps.LONGEST_SCENARIOS)] == list(
        check_steps.LONGEST_SCENARIOS
    )  # one that was renamed would wait its turn


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["molecule", "--scenario", "no-such-scenario"], ["long", "--from", "no-such-step"]]
)
def test_misuse_is_refused_with_the_choices(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        checks.main(arguments)
    assert stop.value.code == 2
    assert "Choose one of those." in capsys.readouterr().err


def test_what_is_slow_is_in_the_long_layer_only():
    quick = {step.name for step in check_steps.molecule_steps(check_steps.REPO)}
    long = {step.name for step in check_steps.long_steps(check_steps.REPO)}
    assert set(check_steps.LONG_SCENARIOS) <= long
    assert quick & long == set(check_steps.TWO_TIERS)
    assert quick | long >= set(check_steps.scenarios(check_steps.REPO))


def test_every_file_of_tests_long_is_a_step(tmp_path):
    (tmp_path / "tests/long").mkdir(parents=True)
    (tmp_path / "tests/long/test_killed.py").touch()
    [step] = check_steps.long_steps(tmp_path)
    assert (step.name, step.needs_tests, step.command[1]) == ("killed", True, "tests/long/test_killed.py")


@pytest.mark.parametrize(("option", "ran"), [("--from", [False, True, True]), ("--only", [False, True, False])])
def test_the_long_layer_runs_the_steps_that_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, ran: list[bool]
) -> None:
    monkeypatch.setattr(checks, "REPO", tmp_path)
    steps = [bash(name, f"touch {tmp_path}/{name}", checks.LONG) for name in ("one", "two", "three")]
    monkeypatch.setattr(checks, "long_steps", lambda repo: steps)
    monkeypatch.setattr(checks, "stack_steps", lambda repo: [])
    assert checks.main(["long", option, "two"]) == 0
    assert [(tmp_path / step.name).exists() for step in steps] == ran


def test_the_long_layer_installs_the_locks_of_every_image():
    expected_images = {images_of(name) for name in stack_names()}
    assert {step.command[3] for step in check_steps.stack_steps(check_steps.REPO)} == expected_images


def test_steps_of_stacks_that_run_side_by_side_share_no_node() -> None:
    node = runpy.run_path(str(check_steps.REPO / "tests" / "stacks" / "node.py"))["Node"]
    steps = [step.command[3] for step in check_steps.stack_steps(check_steps.REPO)]
    names = [node(image, {}, requested=[step]).name for step in steps for image in steps]
    assert len(set(names)) == len(names)


def images_of(name: str) -> str:
    stack = load_stack(name).data
    names = [image for image in images.image_names() if image.partition("-")[0] in stack["os"]]
    return next((image for image in names if images.java(image) in stack.get("java", [])), names[0])


def test_every_unit_test_is_in_one_step_with_a_process_more_than_jobs() -> None:
    (step,) = check_steps.unit_steps(check_steps.REPO, 4)
    assert step.command[:4] == ["pytest", "tests/unit", "--numprocesses", "5"]
