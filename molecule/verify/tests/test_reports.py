"""What the three runs left on the controller."""

import json
import os
from pathlib import Path

import pytest

REPORTS = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "reports"


@pytest.mark.parametrize(
    ("run", "outcomes"),
    [
        ("good", {"passed", "skipped"}),
        ("expected", {"passed", "expected failure", "skipped"}),
        ("bad", {"passed", "failed", "skipped"}),
    ],
)
def test_the_report_tells_the_outcomes(host, run, outcomes):
    report = json.loads((REPORTS / run / "report.json").read_text())
    assert {row["outcome"] for row in report} == outcomes
    assert {row["host"] for row in report} == {"verify-el7"}


def test_the_text_says_what_is_wrong_and_what_to_do(host):
    text = (REPORTS / "bad/report.txt").read_text()
    assert (
        "FAILED on verify-el7: cuda computes on every gpu: The linker must find libcuda.so.1 but its cache has none. Run ldconfig"
        in text
    )
    assert text.splitlines()[-1].startswith("verify: 1 hosts, ")


def test_a_host_that_promises_no_gpu_is_a_reported_skip(host):
    text = (REPORTS / "good/report.txt").read_text()
    assert "SKIPPED on verify-el7: 1 question: the inventory promises no GPU here (gpu_count: 0)" in text
    assert text.splitlines()[-1].endswith(", 1 skipped")


@pytest.mark.parametrize("file", ["report.txt", "report.json", "junit.xml", "pytest.log"])
def test_every_form_of_the_report_is_there(host, file):
    assert (REPORTS / "good" / file).stat().st_size > 0


@pytest.mark.parametrize("way", ["sudo", "su"])
def test_the_suite_is_answered_where_becoming_root_asks_for_a_password(host, way):
    answers = json.loads((REPORTS / way / "answers/verify-el7.json").read_text())
    assert answers["exists"] is False
    assert "no_answer" not in answers


def test_a_wrong_password_is_what_the_report_will_name(host):
    answers = json.loads((REPORTS / "wrong/answers/verify-el7.json").read_text())
    assert "incorrect password" in answers["no_answer"]
