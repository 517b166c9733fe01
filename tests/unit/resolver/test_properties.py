"""What holds for every request: answers survive a second opinion, and more constraints never help."""

import json
import os
import re
import shlex
import subprocess
import sys
from typing import Any

from checker import problems
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hadoop_dl.cli.stack import read_constraints, resolve_parser
from hadoop_dl.cli.stack_text import command_line
from hadoop_dl.data import compat
from hadoop_dl.resolver import compose, resolve
from hadoop_dl.resolver.choose_stack import KEYS
from hadoop_dl.resolver.request import read_request

DATA = compat.load()


def versions(subject: str, name: str, column: str = "version") -> list[str]:
    return [str(row[column]) for row in DATA.rows(subject, name)]


VALUES: dict[str, list[str]] = {
    "os": ["rhel-7.9", "rhel-7.6", "rhel-8.10", "rhel-8.4", "rhel-9.4", "debian-12", "ubuntu-20.04", "ubuntu-22.04"],
    "gpu": ["K80", "P100", "V100", "T4", "A100", "A10", "H100", "B200", "P100,V100", "T4,A100"],
    "hadoop": ["cdh-5.16", "cdh-6.3", "cdp-7.1", "hdp-3.1", "apache-3.3.6"],
    "tensorflow": [
        *versions("tensorflow", "lines", "line"),
        *versions("tensorflow", "releases"),
        ">=2.4,<2.12",
        "<1.9",
    ],
    "tensorflow_package": ["tensorflow", "tensorflow-gpu", "tensorflow-cpu"],
    "tensorflow_source": ["prebuilt", "built"],
    "python": [*versions("python", "pythons", "python"), ">=3.8", "<3"],
    "cuda": [*versions("cuda", "toolkits"), "11", "none"],
    "cudnn": ["6", "7", "7.6", "8", "8.9", "9", ">=8.5"],
    "driver": [*versions("drivers", "branches", "latest_known"), "418.67", "470", "535"],
    "driver_branch": versions("drivers", "branches", "branch"),
    "driver_module": ["open", "proprietary"],
    "bazel": ["0.9.0", "0.26.1", "3.7.2", "5.3.0"],
    "gcc": ["4.8", "7.3.1", "9"],
    "keras": ["2.1.2", "2.3.1", "2.15", "3", "none"],
    "tensorflow_io": ["0.17", "0.36.0", "0.37", "none"],
    "tensorflowonspark": [*versions("tensorflowonspark", "releases"), "none"],
    "pyspark": ["2.4", "3.0", "3.5", "4", "3.0.3"],
    "java": ["8", "11", "17"],
    "hdfs": ["true", "false"],
    "kafka": ["true", "false"],
    "yarn_gpu": ["true", "false"],
    "cdsw": ["true", "false"],
    "nccl": ["2.16.5", "2.27", "none"],
    "driver_min": ["410.48", "525.60.13", "535.104.05"],
    "glibc_min": ["2.12", "2.17"],
    "cpu_features": ["avx", "avx,avx2", "none"],
}
PAIRS = st.sampled_from(sorted(VALUES)).flatmap(lambda name: st.tuples(st.just(name), st.sampled_from(VALUES[name])))
REQUESTS = st.lists(PAIRS, max_size=5).map(dict)
SOME = settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
FEW = settings(SOME, max_examples=25)


@SOME
@given(REQUESTS)
def test_an_answer_survives_a_second_opinion(request: dict[str, Any]) -> None:
    resolution = compose(request, suggest=False)
    if resolution.fits:
        assert problems(request, resolution.stack) == []
        assert resolution.reasons
    else:
        assert resolution.conflicts
        assert all(conflict.sources and conflict.components for conflict in resolution.conflicts)


@SOME
@given(REQUESTS, PAIRS)
def test_one_more_constraint_never_makes_an_impossible_request_possible(
    request: dict[str, Any], more: tuple[str, str]
) -> None:
    if more[0] not in request and compose({**request, more[0]: more[1]}, suggest=False).ok:
        assert compose(request, suggest=False).ok


@SOME
@given(REQUESTS.flatmap(lambda request: st.tuples(st.just(request), st.permutations(list(request.items())))))
def test_the_order_of_a_request_does_not_matter(both: tuple[dict[str, Any], list[tuple[str, str]]]) -> None:
    request, other_order = both
    assert compose(dict(other_order), suggest=False) == compose(request, suggest=False)


@SOME
@given(REQUESTS)
def test_every_clash_is_real_and_none_is_left_when_one_part_of_each_is_gone(request: dict[str, Any]) -> None:
    resolution = compose(request, suggest=False)
    for conflict in resolution.conflicts:
        parts = {name: value for name, value in request.items() if name in conflict.components}
        assert not compose(parts, suggest=False).fits
    if resolution.conflicts:
        names = {name for conflict in resolution.conflicts for name in conflict.components}
        assert compose({name: value for name, value in request.items() if name not in names}, suggest=False).fits


@SOME
@given(REQUESTS)
@example({"tensorflowonspark": "2.1.1"})
@example({"tensorflow": "2.21", "pyspark": "4"})
@example({"tensorflow": "2.4", "keras": "2.4.3"})
@example({"tensorflow": "2.21", "java": "21"})
@example({"os": "rhel-9.4", "tensorflow": "2.15", "python": "3.9"})
def test_every_named_stack_has_what_was_requested_of_it(request: dict[str, Any]) -> None:
    answer = resolve(request, suggest=False)
    for item in read_request(DATA, request) if answer.name else ():
        found = answer.stack.get(item.key)
        if item.key in ("hdfs", "kafka"):
            assert bool(found) is item.flag, f"{answer.name}: {item.label}"
        elif item.specs and item.key in KEYS:
            values = found if isinstance(found, list) else [found]
            assert any(item.accepts(value) for value in values), f"{answer.name}: {item.label}"


@SOME
@given(REQUESTS)
@example({"driver": "470", "driver_branch": "384"})
def test_no_rule_refuses_without_a_fact(request: dict[str, Any]) -> None:
    """What was requested is never the only reason: a rule that decides also explains."""
    for conflict in compose(request, suggest=False).conflicts:
        parts = conflict.message.rstrip(".").split("; ")
        assert [part for part in parts if not part.endswith(("was requested", "is installed"))], request


@SOME
@given(REQUESTS)
@example({"python": "3.6", "java": "21"})
@example({"gpu": "none", "cuda": "12.2"})
def test_no_reason_speaks_of_versions_that_nobody_named(request: dict[str, Any]) -> None:
    """A reason argues with one line of a component, the requested one if there is one, and never with each in turn."""
    pins = [item for item in read_request(DATA, request) if item.key == "tensorflow"]
    releases = [
        row for row in DATA.rows("tensorflow", "releases") if all(item.accepts(row["version"]) for item in pins)
    ]
    for conflict in compose(request, suggest=False).conflicts:
        for component in ("TensorFlow", "Spark"):
            lines = set(re.findall(rf"\b{component} (\d+\.\d+)\S* (?:needs|runs|is built)", conflict.message))
            assert len(lines) <= 1, (request, conflict.message)
            assert len(re.findall(r"is built for CUDA", conflict.message)) <= 1, (request, conflict.message)
            assert component == "Spark" or lines <= {row["line"] for row in releases} or not releases


@FEW
@given(REQUESTS)
def test_the_nearest_requests_resolve_when_they_are_asked(request: dict[str, Any]) -> None:
    resolution = compose(request)
    if resolution.fits:
        return
    conflict_components = [set(conflict.components) for conflict in resolution.conflicts]
    assert resolution.nearest or any(components <= {"os", "gpu"} for components in conflict_components)
    for near in resolution.nearest:
        assert compose(near, suggest=False).fits
        words = shlex.split(command_line(near))[2:]
        assert compose(read_constraints(resolve_parser().parse_intermixed_args(words)), suggest=False).fits


@FEW
@given(REQUESTS)
def test_asking_for_what_the_answer_has_gives_the_same_answer(request: dict[str, Any]) -> None:
    """Nothing that fits is missed: an answer's own values, asked for as well, leave it as it is."""
    stack = compose(request, suggest=False).stack
    answer_values = {key: value for key, value in stack.items() if isinstance(value, str) and key not in request}
    second_answer = compose({**request, **answer_values}, suggest=False)
    assert second_answer.stack == stack, second_answer.problems


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from hadoop_dl.resolver import compose
print(json.dumps([compose(request).as_json() for request in json.loads(sys.argv[2])]))
"""


def test_the_answer_does_not_depend_on_the_order_of_dicts_and_sets() -> None:
    requests: list[dict[str, Any]] = [
        {},
        {"os": "rhel-7.9", "gpu": ["P100", "V100"], "tensorflow": "1.15"},
        {"os": "rhel-7.9", "gpu": ["T4", "A100"], "tensorflow": "1.15", "python": "3.11", "keras": "3"},
        {"gpu": "P101", "os": "redhad-7", "hadoop": "cdx-5.16", "driver": "999"},
        {"hdfs": "true", "kafka": "true", "tensorflow_source": "built", "python": "3.6"},
    ]
    backwards = [dict(reversed(request.items())) for request in requests]
    for request in backwards:
        if isinstance(request.get("gpu"), list):
            request["gpu"] = request["gpu"][::-1]
    answers = set()
    for seed, ordered_requests in (("0", requests), ("1", backwards), ("4711", requests)):
        command = [sys.executable, "-c", SCRIPT, str(compat.REPOSITORY / "lib"), json.dumps(ordered_requests)]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answers.add(completed.stdout)
    assert len(answers) == 1
