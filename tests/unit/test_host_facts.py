"""Facts are typed where they enter: what the reader answers has a field, and what does not fit is one sentence."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import host_reader
from trees import TREES, build

from hadoop_dl import plan
from hadoop_dl.data import typed
from hadoop_dl.data.host_facts import Gpu, HostFacts, read_facts
from hadoop_dl.data.report_answers import Asked, asked_of
from hadoop_dl.hosts import report
from hadoop_dl.plan.model import host_of
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]
HADOOP = {"home": "/opt/hadoop", "version": None, "conf_dir": None}
RECEIPT = {"cuda": {"digest": 7, "problem": None}}
GONE = object()


def keys(value: Any, place: str = "") -> set[str]:
    """Where a value in JSON has a mapping's key."""
    if isinstance(value, list):
        return {key for number, item in enumerate(value) for key in keys(item, f"{place}[{number}]")}
    if not isinstance(value, dict):
        return set()
    return {f"{place}.{name}" for name in value} | {
        key for name in value for key in keys(value[name], f"{place}.{name}")
    }


@pytest.mark.parametrize("name", sorted(TREES))
def test_what_the_reader_answers_has_a_field_and_what_has_a_field_is_answered(name, tmp_path):
    answer = json.loads(json.dumps(host_reader.read(str(build(tmp_path, TREES[name])))))
    facts = typed.as_json(read_facts(answer))
    assert keys(answer) - keys(facts) == set()
    assert typed.as_json(typed.read(HostFacts, facts)) == facts


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("kernel", GONE, "answered nothing for kernel, which is required"),
        ("os.short", GONE, "nothing for os.short, which is required"),
        ("nvidia.nvswitches", "6", "'6' for nvidia.nvswitches, which must be a number from 0 to 100000"),
        ("nvidia.nvswitches", True, "True for nvidia.nvswitches, which must be a number from"),
        ("java", {}, "{} for java, which must be a list of at most 1000 entries"),
        ("pythons", ["2.7"], "['2.7'] for pythons, which must be a mapping"),
        ("cdsw", None, "None for cdsw, which must be true or false"),
        ("nvidia.gpus", [{"vendor": "10de"}], "nothing for nvidia.gpus[0].device, which is required"),
        ("deeplearning.receipts", RECEIPT, "7 for deeplearning.receipts.cuda.digest, which must be letters, digits"),
        ("hadoop", "x" * 900, "xxx' for hadoop, which must be a mapping"),
        ("glibc", "abc", "'abc' for glibc, which must be a version of numbers and points, such as 12.2"),
        ("glibc", "²", "'²' for glibc, which must be a version"),
        ("nvidia.driver", "1" * 5000, "for nvidia.driver, which must be a version"),
        ("nvidia.nvswitches", 10**5000, "a number of 16610 bits for nvidia.nvswitches"),
        ("kernel.running", "a\nb", "'a\\nb' for kernel.running, which must be a kernel's release"),
        ("pythons", {"../x": "/usr/bin/python"}, "'../x' for a key of pythons, which must be a version"),
        ("hadoop", {**HADOOP, "distribution": "hdp+"}, "which must be one of cdh, hdp, mapr, apache"),
        ("managed.cuda", ["10.0; reboot"], "'10.0; reboot' for managed.cuda[0], which must be two numbers"),
        ("cuda.cudnn", ["7"] * 1001, "for cuda.cudnn, which must be a list of at most 1000 entries"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_an_answer_that_has_no_sense_is_one_line_with_the_hosts_name_and_stops_nobody(place, value, sentence):
    answer = invented_hosts.answer()
    part, _, key = place.rpartition(".")
    section = answer[part] if part else answer
    section[key] = value
    if value is GONE:
        del section[key]
    hosts = [host_of(name, ["masters"], {}, invented_hosts.answer()) for name in ("data2", "data3")]
    hosts.append(host_of("edge1", ["edge_nodes"], {}, None))
    plan_ = plan.make_plan([host_of("data1", ["data_nodes"], {}, answer), *hosts], REPOSITORY)
    (line,) = [warning for warning in plan_.warnings if "data1: answered " in warning]
    assert sentence in line
    assert len(line) < 400
    assert (plan_.problems, sorted(plan_.hosts), plan_.unreachable) == ([], ["data2", "data3"], ["data1", "edge1"])


def test_a_host_whose_answer_has_no_sense_stops_the_run_where_the_site_wants_that():
    hosts = [
        host_of("data1", ["data_nodes"], {"deeplearning_unreachable": "stop"}, {}),
        host_of("data2", ["masters"], {}, None),
    ]
    (problem,) = plan.make_plan(hosts, REPOSITORY).problems
    assert problem.startswith("data1, data2 cannot be reached or read, but deeplearning_unreachable is 'stop'.")


@pytest.mark.parametrize("kind", [HostFacts, Asked])
def test_every_field_has_a_form(kind):
    typed.converter(kind)  # it takes every field below, and refuses one without a form


@pytest.mark.parametrize("hint", [str, int, float, dict, Any])
def test_a_new_fact_cannot_come_without_a_form(hint):
    kind = dataclasses.make_dataclass("Kind", [("weather", tuple[hint, ...])])
    with pytest.raises(TypeError, match="needs a form"):
        typed.read(kind, {"weather": []})


def test_a_time_that_no_date_can_have_is_clipped():
    answer = asked_of({"times": {"changed": 10**18, "verified": -5}})
    assert (answer.times.changed, answer.times.verified) == (253402300799, 0)
    assert report.iso(answer.times.changed or 0) == "9999-12-31T23:59:59Z"


def test_what_a_program_said_is_cut_to_one_line_and_not_refused():
    facts = invented_hosts.facts({"os": {"name": "RHEL\r\n\x1b[2J" + "x" * 900}})
    assert facts.os.name is not None
    assert facts.os.name.startswith("RHEL \ufffd[2Jxxx")
    assert len(facts.os.name) == 500


def test_a_key_that_nobody_reads_is_no_reason_to_refuse():
    assert read_facts({**invented_hosts.answer(), "weather": "rain"}) == invented_hosts.facts()


def test_a_gpu_is_named_by_its_id_and_by_its_capability_where_no_table_has_it():
    assert Gpu("10de", "15f8").name == "10de:15f8"
    assert Gpu("10de", "4001", compute_cap="12.1").name == "10de:4001 cc=12.1"


def test_a_java_of_ibm_and_an_account_without_a_home_are_answers():
    java = {"home": "/usr/lib/jvm/ibm", "version": "8.0.7.20 - pxa6480sr7fp20", "major": "8"}
    paths_and_accounts = {"paths": {}, "accounts": {"svc": {"uid": 1000, "home": ""}}}
    facts = invented_hosts.facts({"java": [java], "named": paths_and_accounts})
    assert facts.profile.javas == ("8",)
