"""Requests as public descriptions of clusters suggest them (requests.yml): the verdict, and what decides it."""

import json
import shlex
from pathlib import Path

import pytest
import yaml

from hadoop_dl.cli import stack

SOURCES = yaml.safe_load((Path(__file__).parent / "requests.yml").read_text(encoding="utf-8"))
REQUESTS = [(one, source) for source, requests in SOURCES.items() for one in requests]
VERSIONS, BUILT = "versions", "built"  # an ok without a named stack


@pytest.mark.parametrize(("expected", "source"), REQUESTS, ids=[one["ask"] for one, _ in REQUESTS])
def test_a_request_of_a_described_cluster_has_its_true_answer(
    expected: dict[str, str], source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack.main(["resolve", *shlex.split(expected["ask"]), "--format", "json"])
    answer = json.loads(capsys.readouterr().out)
    messages = [conflict["message"] for conflict in answer.get("conflicts", ())] or [
        warning["text"] for warning in answer["warnings"]
    ]
    verdict, reason = next((key, expected[key]) for key in ("ok", "conflict") if key in expected)
    assert answer["status"] == verdict, (messages, source)
    if verdict == "conflict":
        clashes = [conflict["components"] for conflict in answer["conflicts"]]
        assert any(set(reason.split()) <= set(clash) for clash in clashes), (clashes, messages, source)
    elif reason == BUILT:
        assert answer["versions"]["tensorflow_source"] == BUILT, source
    elif reason != VERSIONS:
        assert answer["stack"] == reason, (answer["stack"], source)
