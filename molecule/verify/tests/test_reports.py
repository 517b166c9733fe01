"""What the three runs left on the controller."""

import json
import os
from pathlib import Path

import pytest

REPORTS = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / "reports"


@pytest.mark.parametrize(
    ("run", "outcomes"),
    [("good", {"passed"}), ("expected", {"passed", "expected failure"}), ("bad", {"passed", "failed"})],
)
def test_the_report_tells_the_outcomes(host, run, outcomes):
    report = json.loads((REPORTS / run / "report.json").read_text())
    assert {result["outcome"] for result in report} == outcomes
    assert {result["host"] for result in report} == {"verify-el7"}


def test_the_text_says_what_is_wrong_and_what_to_do(host):
    text = (REPORTS / "bad/report.txt").read_text()
    assert (
        "FAILED on verify-el7: tensorflow sees every gpu: TensorFlow should compute on 1 GPUs (gpu_count), and sees 0"
        in text
    )
    assert text.splitlines()[-1].startswith("verify: 1 hosts, ")


@pytest.mark.parametrize("file", ["report.txt", "report.json", "junit.xml", "pytest.log"])
def test_every_form_of_the_report_is_there(host, file):
    assert (REPORTS / "good" / file).stat().st_size > 0
