"""The report of the testinfra suite: what counts as a failure, and that the report says it."""

import json
import shutil

import ansible_programs
import pytest

from hadoop_dl.hosts import verify
from hadoop_dl.hosts.report import last_verify
from hadoop_dl_dev import check_results


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("AssertionError: it is not there\nassert None", "it is not there"),
        ("assert 1 == 2", "assert 1 == 2"),
    ],
)
def test_the_message_is_the_tests_own_sentence(message, said):
    assert verify.sentence(message) == said


def test_what_a_host_answered_is_one_line_of_the_text():
    text = "x\n0 failed, 99 passed\x1b[2J"
    results = [verify.Result("data1", "test_a", "a", outcome, text, 0.0) for outcome in (verify.FAILED, verify.SKIPPED)]
    lines = verify.text(results).splitlines()
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)


SUITE = """
import pytest

@pytest.fixture(autouse=True)
def host(record_property):
    record_property("host", "data1")

@pytest.fixture
def answer():
    assert False, "no answer"

"""
TESTS = {
    "good": "def test_good(): pass\n",
    "bad": "def test_bad(): assert False, 'this is wrong'\n",
    "unanswered": "def test_unanswered(answer): pass\n",
    "skipped": "def test_skipped(): pytest.skip('no GPU here')\n",
}
UNANSWERED = 'FAILED on data1: unanswered: failed on setup with "AssertionError: no answer'
BAD, SKIPPED = "FAILED on data1: bad: this is wrong", "SKIPPED on data1: 1 question: no GPU here"


@pytest.mark.parametrize(
    ("names", "expected", "lines", "totals"),
    [
        ("good bad unanswered skipped", "", [SKIPPED, BAD, UNANSWERED], (1, 2, 0)),
        ("good bad", "bad", ["EXPECTED FAILURE on data1: bad: this is wrong"], (1, 0, 1)),
        (
            "good",
            "good",
            ["UNEXPECTED SUCCESS on data1: good: it passed: remove it from verify_expected_failures"],
            (0, 1, 0),
        ),
        ("unanswered", "unanswered", [UNANSWERED], (0, 1, 0)),
        ("good skipped", "skipped", [SKIPPED], (1, 0, 0)),
    ],
)
def test_an_expected_failure_is_told_apart_in_every_report(tmp_path, names, expected, lines, totals):
    """By the suite's own conftest. A host that does not answer is never expected, and a skip is no failure."""
    suite, hosts, reports = tmp_path / "suite", tmp_path / "hosts", tmp_path / "report"
    suite.mkdir()
    shutil.copy(verify.REPOSITORY / "tests/infra/conftest.py", suite)
    (suite / "test_it.py").write_text(SUITE + "".join(TESTS[name] for name in names.split()), encoding="utf-8")
    hosts.write_text("data1 ansible_connection=local\n")
    arguments = ["--inventory", str(hosts), "--report", str(reports), "--suite", str(suite)]
    passed, failed, as_expected = totals
    assert verify.main(arguments + [f"--expect-failure=test_{name}" for name in expected.split()]) == min(failed, 1)
    text = (reports / "report.txt").read_text().splitlines()
    assert text[1:-1] == lines
    assert f"verify: 1 hosts, {passed} passed, {failed} failed, {as_expected} failed as expected" in text[-1]
    report = json.loads((reports / "report.json").read_text())
    assert [(row["test"], row["host"]) for row in report] == [(f"test_{name}", "data1") for name in names.split()]
    junit = (reports / "junit.xml").read_text(encoding="utf-8")
    assert junit.count("<failure ") + junit.count("<error ") == failed
    run = json.loads((reports / "run.json").read_text())
    assert (run["inventory"], run["at"] > 0) == (str(hosts), True)
    verification = last_verify(reports, [str(hosts)])  # what playbooks/report.yml reads
    assert (verification["data1"]["questions"], len(verification["data1"]["failed"])) == (len(report), failed)


def test_a_suite_that_asks_nothing_is_no_success(tmp_path, capsys):
    (tmp_path / "suite").mkdir()
    arguments = ["--inventory", "nowhere", "--report", str(tmp_path / "report"), "--suite", str(tmp_path / "suite")]
    assert verify.main(arguments) == 2
    assert "ran no test" in capsys.readouterr().out


def test_the_failure_of_the_role_and_the_summary_of_the_checks_name_the_failed_questions(tmp_path):
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
