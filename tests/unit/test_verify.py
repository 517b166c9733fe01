"""The report of the testinfra suite: what counts as a failure, and that the report says it."""

from __future__ import annotations

import json
from pathlib import Path

import ansible_programs
import pytest

from hadoop_dl.hosts import verify
from hadoop_dl.hosts.report import last_verify
from hadoop_dl_dev import check_results

GPU = "test_tensorflow_sees_every_gpu"


def case(name: str, host: str, problem: str = "", kind: str = "failure") -> str:
    body = f'<{kind} message="{problem}">trace</{kind}>' if problem else ""
    return (
        f'<testcase classname="tests.infra" name="{name}[ansible://{host}]" time="0.5"><properties><property name="host" value="{host}"/>'
        f'<property name="question" value="{name.removeprefix("test_").replace("_", " ")}"/></properties>{body}</testcase>'
    )


def junit(path: Path, *cases: str) -> Path:
    path.write_text(
        f'<testsuites><testsuite tests="{len(cases)}" failures="9" errors="0">{"".join(cases)}</testsuite></testsuites>'
    )
    return path


SEES_0 = case(GPU, "data1", "AssertionError: sees 0")


@pytest.mark.parametrize(
    ("cases", "expected", "found"),
    [
        ([case("test_java_starts", "data1"), SEES_0], [GPU], [verify.PASSED, verify.EXPECTED]),
        ([SEES_0], [], [verify.FAILED]),  # the same failure counts if nobody expects it
        ([case(GPU, "data1")], [GPU], [verify.SURPRISE]),  # an expected failure that passes is no success
        ([case(GPU, "data1", "unreachable", kind="error")], [GPU], [verify.FAILED]),  # a host that does not answer
    ],
)
def test_a_failure_that_is_expected_is_told_apart(
    tmp_path: Path, cases: list[str], expected: list[str], found: list[str]
) -> None:
    results = verify.results(junit(tmp_path / "junit.xml", *cases), expected)
    assert [result.outcome for result in results] == found


def test_a_skip_is_neither_a_success_nor_the_expected_failure(tmp_path: Path) -> None:
    cases = (case(GPU, "data1", "no GPU here", kind="skipped"), case("test_x", "data1"))
    results = verify.results(junit(tmp_path / "junit.xml", *cases), [GPU])
    assert [result.outcome for result in results] == [verify.SKIPPED, verify.PASSED]
    text = verify.text(results)
    assert "SKIPPED on data1: 1 question: no GPU here" in text
    assert text.endswith("verify: 1 hosts, 1 passed, 0 failed, 0 failed as expected, 1 skipped\n")
    verify.rewrite_junit(tmp_path / "junit.xml", [GPU])
    assert "<skipped" in (tmp_path / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("AssertionError: it is not there\nassert None", "it is not there"),
        ("assert 1 == 2", "assert 1 == 2"),
    ],
)
def test_the_message_is_the_tests_own_sentence(message: str, said: str) -> None:
    assert verify.sentence(message) == said


def test_the_text_names_host_question_and_sentence(tmp_path: Path) -> None:
    cases = (
        case("test_java_starts", "data1", "AssertionError: status 127"),
        case(GPU, "data2", "AssertionError: sees 0"),
        case("test_x", "edge1"),
    )
    text = verify.text(verify.results(junit(tmp_path / "junit.xml", *cases), [GPU]))
    assert "FAILED on data1: java starts: status 127" in text
    assert "EXPECTED FAILURE on data2: tensorflow sees every gpu: sees 0" in text
    assert text.endswith("verify: 3 hosts, 1 passed, 1 failed, 1 failed as expected\n")


def test_what_a_host_answered_is_one_line_of_the_text() -> None:
    text = "x\n0 failed, 99 passed\x1b[2J"
    results = [verify.Result("data1", "test_a", "a", outcome, text, 0.0) for outcome in (verify.FAILED, verify.SKIPPED)]
    lines = verify.text(results).splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


def test_a_junit_reader_counts_what_the_text_says(tmp_path: Path) -> None:
    surprise = case(GPU, "data2")
    cases = (case(GPU, "data1", "sees 0"), surprise, case("test_x", "data1", "broken"), case("test_y", "data1"))
    path = junit(tmp_path / "junit.xml", *cases)
    verify.rewrite_junit(path, [GPU])
    content = path.read_text()
    assert 'failures="2"' in content
    assert "failed as expected: sees 0" in content
    assert "expected to fail but passed" in content


SUITE = """
import pytest

@pytest.fixture
def host():
    return "data1"

def test_good(host, record_property):
    record_property("host", host)

def test_bad(host, record_property):
    record_property("host", host)
    assert False, "this is wrong"
"""


@pytest.mark.parametrize(("expected", "code"), [([], 1), (["test_bad"], 0)])
def test_the_exit_status_tells(tmp_path: Path, expected: list[str], code: int) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_it.py").write_text(SUITE)
    (tmp_path / "hosts").write_text("data1 ansible_connection=local\n")
    arguments = ["--inventory", str(tmp_path / "hosts"), "--report", str(tmp_path / "report"), "--suite", str(suite)]
    assert verify.main(arguments + [f"--expect-failure={name}" for name in expected]) == code
    report = json.loads((tmp_path / "report/report.json").read_text())
    assert {result["test"]: result["host"] for result in report} == {"test_good": "data1", "test_bad": "data1"}
    assert (tmp_path / "report/report.txt").read_text().count("\n") >= 2
    run = json.loads((tmp_path / "report/run.json").read_text())
    assert (run["inventory"], run["at"] > 0) == (str(tmp_path / "hosts"), True)
    verification = last_verify(tmp_path / "report", [str(tmp_path / "hosts")])  # what playbooks/report.yml reads
    assert (verification["data1"]["questions"], len(verification["data1"]["failed"])) == (2, code)


def test_a_suite_that_asks_nothing_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "suite").mkdir()
    arguments = ["--inventory", "nowhere", "--report", str(tmp_path / "report"), "--suite", str(tmp_path / "suite")]
    assert verify.main(arguments) == 2
    assert "ran no test" in capsys.readouterr().out


def test_the_failure_of_the_role_and_the_summary_of_the_checks_name_the_failed_questions(tmp_path: Path) -> None:
    """Of a host that answered nothing."""
    path = verify.expectation_file(tmp_path, "data1")
    path.parent.mkdir()
    path.write_text("{}", encoding="utf-8")
    (tmp_path / "hosts").write_text("data1 ansible_connection=local ansible_become=false\n", encoding="utf-8")
    role = {"name": str(ansible_programs.REPOSITORY / "roles/verify"), "tasks_from": "run_suite.yml"}
    variables = {"verify_inventory": str(tmp_path / "hosts"), "verify_report_directory": str(tmp_path)}
    variables["verify_expected_failures"] = []
    tasks = [{"ansible.builtin.include_role": {**role, "rolespec_validate": False}, "vars": variables}]
    (tmp_path / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
    completed = ansible_programs.run("ansible-playbook", "-i", tmp_path / "hosts", tmp_path / "play.yml")
    assert completed.returncode == 2, completed.stdout + completed.stderr
    (tmp_path / "log").write_text(completed.stdout, encoding="utf-8")
    report = (tmp_path / "report.txt").read_text(encoding="utf-8").splitlines()
    failed_lines = [line for line in report if line.startswith("FAILED on data1: ")]
    assert failed_lines
    assert all(line in completed.stdout.partition("fatal: ")[2] for line in failed_lines), completed.stdout
    assert failed_lines[-1][:300] in "\n".join(check_results.causes(tmp_path / "log"))
