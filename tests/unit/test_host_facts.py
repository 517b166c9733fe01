"""Facts are typed where they enter: what the reader answers has a field, and what does not fit is one sentence."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import host_reader
import pytest
from trees import TREES, build

from hadoop_dl import plan
from hadoop_dl.data import typed
from hadoop_dl.data.host_facts import Gpu, HostFacts, read_facts
from hadoop_dl.plan.model import host_of
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]


def differences(hint: Any, value: Any, place: str = "") -> list[str]:
    """Keys of an answer that no field takes."""
    if typing.get_origin(hint) is types.UnionType:
        return differences(typing.get_args(hint)[0], value, place)
    if typing.get_origin(hint) is tuple:
        return [name for one in value or () for name in differences(typing.get_args(hint)[0], one, place)]
    if typing.get_origin(hint) is Mapping:
        return [name for one in value.values() for name in differences(typing.get_args(hint)[1], one, place)]
    if not dataclasses.is_dataclass(hint) or value is None:
        return []
    hints = typed.fields(typing.cast(type, hint))
    return [f"{place}{name}" for name in set(value) - set(hints)] + [
        name
        for key, inner in hints.items()
        if key in value
        for name in differences(inner, value[key], f"{place}{key}.")
    ]


@pytest.mark.parametrize("name", sorted(TREES))
def test_what_the_reader_answers_has_a_field_and_what_has_a_field_is_answered(name: str, tmp_path: Path) -> None:
    answer = json.loads(json.dumps(host_reader.read(str(build(tmp_path, TREES[name])))))
    assert differences(HostFacts, answer) == []
    assert typed.read(HostFacts, typed.as_json(read_facts(answer))) == read_facts(answer)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda answer: answer.pop("kernel"), "kernel is missing"),
        (lambda answer: answer["os"].pop("short"), "os.short is missing"),
        (lambda answer: answer["nvidia"].update(nvswitches="6"), "nvidia.nvswitches must be a number but is '6'"),
        (lambda answer: answer["nvidia"].update(nvswitches=True), "nvidia.nvswitches must be a number but is True"),
        (lambda answer: answer.update(java={}), "java must be a list but is {}"),
        (lambda answer: answer.update(pythons=["2.7"]), "pythons must be a mapping but is ['2.7']"),
        (lambda answer: answer.update(cdsw=None), "cdsw must be true or false but is None"),
        (lambda answer: answer["nvidia"].update(gpus=[{"vendor": "10de"}]), "nvidia.gpus[0].device is missing"),
        (
            lambda answer: answer["deeplearning"].update(receipts={"cuda": {"digest": 7, "problem": None}}),
            "deeplearning.receipts.cuda.digest must be text but is 7",
        ),
        (lambda answer: answer.update(hadoop="x" * 900), "hadoop must be a mapping but is 'xxx"),
    ],
)
def test_an_answer_that_does_not_fit_is_one_sentence_of_the_plan(change: Callable[[Any], Any], sentence: str) -> None:
    answer = invented_hosts.answer()
    change(answer)
    hosts = [host_of("data1", ["data_nodes"], {}, answer), host_of("data2", ["data_nodes"], {}, None)]
    problems = [one for one in plan.make_plan(hosts, REPOSITORY).problems if "incomplete or malformed" in one]
    assert len(problems) == 1
    assert problems[0].startswith("data1: ")
    assert sentence in problems[0]
    assert len(problems[0]) < 300


def test_a_key_that_nobody_reads_is_no_reason_to_refuse() -> None:
    assert read_facts({**invented_hosts.answer(), "weather": "rain"}) == invented_hosts.facts()


def test_a_gpu_is_named_by_its_id_and_by_its_capability_where_no_table_has_it() -> None:
    assert Gpu("10de", "15f8").name == "10de:15f8"
    assert Gpu("10de", "4001", compute_cap="12.1").name == "10de:4001 cc=12.1"


def test_the_text_that_digests_have_is_as_it_was() -> None:
    """Another text, and every host runs every role again."""
    facts = invented_hosts.facts(
        {
            "os": {
                "id": "rhel",
                "name": "RHEL 7.9",
                "version": "7.9",
                "major": "7",
                "family": "RedHat",
                "short": "el7",
            },
            "java": [{"home": "/j", "version": "1.8.0_412", "major": "8"}],
            "pythons": {"3.6": "/usr/bin/python3.6", "2.7": "/usr/bin/python2.7"},
        }
    )
    system = (
        '"os": {"family": "RedHat", "id": "rhel", "major": "7", "name": "RHEL 7.9", "short": "el7", "version": "7.9"}'
    )
    assert facts.deciding_text == (
        '{"hadoop": null, "java": [{"home": "/j", "major": "8", "version": "1.8.0_412"}], '
        + system
        + ', "pythons": {"2.7": "/usr/bin/python2.7", "3.6": "/usr/bin/python3.6"}}'
    )
    assert facts.system_text == "{" + system + "}"
