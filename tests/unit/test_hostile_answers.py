"""Recorded answers of hosts, changed leaf by leaf: plan and report end with rows, whatever one host answers, and every other host is served.

Every change goes through the door; of those that it lets in, and of those that it does not, a fixed sample goes through plan, report and the
four writers, so that this ends in less than a minute. HOSTILE_ANSWERS=100000 takes all of them (20 minutes and more).
"""

import copy
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded_plan import recorded

from hadoop_dl import plan
from hadoop_dl.data.report_answers import Asked, asked_of
from hadoop_dl.hosts import report, report_files
from hadoop_dl.plan.model import Host, Plan, host_of
from hadoop_dl_dev import report_sample

REPOSITORY = Path(__file__).resolve().parents[2]
RECORDED = {entry["host"]: entry for entry in recorded()}
SAMPLE = int(os.environ.get("HOSTILE_ANSWERS", "150"))
Json = dict[str, Any]
Place = tuple[Any, ...]
FORGED = "FORGED"
# What the recorded hosts lack, as host_cdsw and gpu-check answer it.
WORKBENCH = {
    "kind": "rpm",
    "release": "1.4.0",
    "settings": {"NVIDIA_GPU_ENABLE": "false", "NVIDIA_LIBRARY_PATH": "", "MASTER_IP": "192.0.2.10"},
    "master": True,
    "drivers": ["418.67"],
    "sessions": 2,
    "images": ["docker.repository.cloudera.com/cdsw/engine:4"],
    "mig": False,
}
CONTAINERS = {"runtimes": ["nvidia"], "daemon_json_problem": None, "packages": {"nvidia-docker": "1.0.1-1"}}
ASKED = {
    "health": {
        "results": [
            {"name": "driver_runs", "outcome": "PASS", "message": "well"},
            {"name": "xid", "outcome": "FAIL", "message": "Xid 79"},
            {"name": "persistence", "outcome": "SKIP", "message": "no driver"},
        ],
        "problem": None,
    },
    "times": {"changed": 1795352400, "verified": 1795352700},
}
TEXTS = [
    *("abc", "²", "", " ", "0", "9" * 5000, "a\nb", f"x\n  {FORGED} as planned\n{FORGED}_up 1\n", f"\x1b[2J\r{FORGED}"),
    *("\x9b31m", "\ud800", "\u202egnp", "\u2028", "{{ lookup('pipe', 'id') }}", "{% for x in y %}", "../../etc/passwd"),
    *(f"<script>{FORGED}</script>", f'a"}} 1\n{FORGED}_x{{a="b', "-oProxyCommand=x", "x" * 3_000_000, "1" * 400, "1.a"),
    *(
        "1!2",
        ".",
        "-",
        "..",
        "9.9.9",
        "999999999.999999999",
        "7.x",
        "cc=abc",
        "10de:zzzz cc=9",
        "10de:15f8 cc=9",
        "MIG",
    ),
    *("3.14-cdh5", "cdh", "other", "PASS", "OPEN", "RedHat", "/", "/" * 600, "1.8.0_412-ea", "21-ea", "10.0; reboot"),
]
NESTED: Any = []
for _ in range(10_000):
    NESTED = [NESTED]
OTHERS: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 10**30, 10**4999, 253402300800, -(10**18), 1e400, float("nan"), 1.5, [], {}),
    *([None], ["abc"], {"abc": "def"}, NESTED, {"a": NESTED}, [[1]] * 1001, {str(n): "1" for n in range(1001)}),
]


def base(name: str) -> Json:
    """What report_reader answered on a recorded host."""
    facts = {**RECORDED[name]["facts"], "libstdcxx": "3.4.19", "containers": CONTAINERS}
    facts["unanswered"] = ["nvidia-smi did not end within 20 s"]
    facts["disk_free_mb"] = dict(facts["disk_free_mb"])
    return copy.deepcopy({"facts": {**facts, "workbench": WORKBENCH if facts["cdsw"] else None}, **ASKED})


def places(value: Any, path: Place = ()) -> Iterator[Place]:
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def at(answer: Any, path: Place) -> Any:
    for key in path:
        answer = answer[key]
    return answer


def changes(name: str) -> Iterator[tuple[str, Json]]:
    """Every leaf, list and mapping as each of the values, every key as each of the texts, and every entry without one."""
    answer = base(name)
    for path in [place for place in places(answer) if place]:
        original = at(answer, path)
        for number, value in enumerate([*TEXTS, *OTHERS]):
            yield f"{path} value {number}", replaced(answer, path, value)
        for number, text in enumerate(TEXTS):
            parent = at(answer, path[:-1])
            if isinstance(parent, dict):
                keys = {(text if key == path[-1] else key): item for key, item in parent.items()}
                yield f"{path} key {number}", replaced(answer, path[:-1], keys)
            elif isinstance(original, str):
                yield f"{path} also {number}", replaced(answer, path[:-1], [*parent, text])


def replaced(answer: Any, path: Place, value: Any) -> Any:
    """A copy that shares what did not change."""
    if not path:
        return value
    inner = replaced(answer[path[0]], path[1:], value)
    if isinstance(answer, dict):
        return {key: inner if key == path[0] else item for key, item in answer.items()}
    return [inner if key == path[0] else item for key, item in enumerate(answer)]


BASES = ("v100-installed", "cdsw-installed", "container", "t4-bare")


def received(name: str, answer: Json) -> tuple[Host, Asked]:
    """The host as the controller has it after it answered so to report_facts."""
    entry = RECORDED[name]
    return host_of("data1", entry["groups"], entry["variables"], answer.get("facts")), asked_of(answer)


def other(name: str) -> Host:
    entry = RECORDED[name]
    return host_of("data2", entry["groups"], entry["variables"], entry["facts"])


def made(host: Host, name: str, *, grouped: bool) -> Plan:
    return plan.make_plan([host, other(name)], REPOSITORY, grouped=grouped)


def reported(host: Host, asked: Asked, name: str, directory: Path) -> Json:
    answers = {"data1": asked, "data2": Asked()}
    report_ = report.make_report([host, other(name)], answers, made(host, name, grouped=False), {}, report_sample.NOW)
    report_files.write(report_, directory)
    return report_


def texts(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in directory.iterdir()}


def check(host: Host, asked: Asked, name: str, directory: Path) -> None:
    plan_ = made(host, name, grouped=True)
    assert "data2" in plan_.hosts, "another host is planned for, whatever this one answers"
    for line in [plan_.table(), *plan_.warnings, *plan_.problems, *plan_.reboots]:
        assert all(part.isprintable() and not part.strip().startswith(FORGED) for part in line.splitlines()), line
    report_ = reported(host, asked, name, directory)
    assert [entry["host"] for entry in report_["hosts"]] == ["data1", "data2"]
    contents = texts(directory)
    assert set(contents) == {"report.txt", "report.html", "report.json", "deeplearning.prom"}
    assert json.loads(contents["report.json"], parse_constant=pytest.fail)["hosts"][1]["host"] == "data2"
    assert f"<script>{FORGED}" not in contents["report.html"]
    for text in contents.values():
        assert re.search(r"[^\n -\U0010ffff]|[\x7f-\x9f\u2028\u2029\u202e]", text) is None
    for text in (contents["report.txt"], contents["deeplearning.prom"]):
        assert not any(line.strip().startswith(FORGED) for line in text.splitlines())
        assert max(map(len, text.splitlines())) < 5000
    sample = re.compile(r'# (HELP|TYPE) .*|deeplearning_\w+(\{(\w+="([^"\\]|\\.)*",?)*\})? -?\d+')
    assert all(sample.fullmatch(line) for line in contents["deeplearning.prom"].splitlines())


@pytest.mark.parametrize("name", BASES)
def test_the_recorded_answer_is_let_in(name, tmp_path):
    host, answer = received(name, base(name))
    assert host.facts is not None
    assert answer.health.results
    check(host, answer, name, tmp_path)


@pytest.mark.parametrize("name", BASES)
def test_whatever_a_host_answers_plan_and_report_end_with_rows(name, tmp_path):
    refusals, let_in = [], []
    for label, answer in changes(name):
        host, answers = received(name, answer)
        if host.problem:
            assert re.match(r"answered .+ for .+, which (must be|is required)", host.problem), label
            assert host.problem.isprintable(), label
            assert len(host.problem) < 500, label
        (refusals if host.facts is None else let_in).append((label, host, answers))
    assert len(refusals) > 1000
    assert len(let_in) > 500
    generator = random.Random(25)  # noqa: S311 (a sample, not a secret)
    for label, host, answers in [
        *generator.sample(refusals, min(len(refusals), SAMPLE // 10)),
        *generator.sample(let_in, min(len(let_in), SAMPLE)),
    ]:
        try:
            check(host, answers, name, tmp_path)
        except Exception as error:
            raise AssertionError(f"{name} with {label}") from error
