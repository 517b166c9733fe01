"""What lets many requests share what was found out: a rule or a part is asked about one core for all that are alike."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from hadoop_dl.data import compat
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.hosts import known_systems
from hadoop_dl.resolver.problem import Problem, engine
from hadoop_dl.resolver.request import Item, read_request
from hadoop_dl.resolver.rules.tensorflow import rules

DATA = compat.load()
ENGINE = engine(DATA)
GPUS = sorted({f"cc={row['cc']}" for row in DATA.rows("gpus", "architectures")})
FACTS = (
    HostProfile(pythons=()),
    HostProfile(pythons=("2.7", "3.6")),
    HostProfile(pythons=("3.9", "3.11", "3.13")),
    HostProfile(glibc="2.12"),
    HostProfile(glibc="2.17"),
    HostProfile(glibc="2.34"),
    HostProfile(cpu_features=()),
    HostProfile(cpu_features=("sse4_1", "sse4_2", "avx")),
    HostProfile(architecture="aarch64"),
)
REQUESTS: tuple[dict[str, Any], ...] = (
    {"tensorflowonspark": "2.2", "pyspark": "3", "java": "8"},
    {"tensorflowonspark": "none", "pyspark": "none", "java": "none"},
    {"tensorflowonspark": "1", "pyspark": "2.4", "yarn_gpu": True, "hadoop": "cdp-7.1"},
    {"java": "17", "hadoop": "cdh-5.16"},
    {"driver": "470", "gpu": "H100"},
    {"driver": "none", "cuda": "none"},
    {"driver_branch": "535", "driver_module": "open", "gpu": ["T4", "A100"], "os": "rhel-8.10"},
    {"driver_min": "450.80.02", "gpu": "V100"},
    {"driver_module": "proprietary", "gpu": "B200"},
    {"driver": "615"},
    {"keras": "2.15"},
    {"keras": "3"},
    {"keras": "none"},
    {"hdfs": True, "kafka": True},
    {"hdfs": False, "tensorflow_io": "0.36.0"},
    {"hdfs": "true", "kafka": "false", "tensorflow_io": "none"},
    {"cudnn": "8"},
    {"cudnn": "none"},
    {"bazel": "0.26.1", "gcc": "7.3.1"},
    {"gcc": "none"},
    {"cdsw": True, "os": "rhel-7.9", "gpu": ["V100", "T4"]},
    {"cdsw": True, "os": "rhel-9.4", "yarn_gpu": True, "hadoop": "apache-3.3.6"},
)


def environment_items() -> list[Item]:
    items = [item for system in known_systems(DATA) for item in read_request(DATA, {"os": system})]
    items += [item for name in (*GPUS, "none") for item in read_request(DATA, {"gpu": name})]
    return items + [item for host in FACTS for item in read_request(DATA, {}, host)]


@pytest.mark.parametrize("item", environment_items(), ids=lambda item: item.label)
def test_a_rule_refuses_all_cores_that_are_alike_or_none_of_them(item: Item) -> None:
    said = list(rules(ENGINE.universe, item))
    assert said
    left = []
    for core in ENGINE.universe.cores:
        refused = [any(finding.refuses for finding in rule(core)) for rule, _ in said]
        left += [] if any(refused) else [core]
    asked_once = Problem(ENGINE, [item]).core_mask(0)
    assert [core for core in ENGINE.universe.cores if asked_once >> core.index & 1] == left


@pytest.mark.parametrize("fields", [("python",), ("name", "glibc_min"), ("name", "source", "cuda", "pip_cuda")])
def test_every_core_is_in_one_group_of_those_that_are_alike(fields: tuple[str, ...]) -> None:
    groups = ENGINE.alike(fields)
    assert sum(members for _, members in groups) == ENGINE.everything
    for first, members in groups:
        inside = [core for core in ENGINE.universe.cores if members >> core.index & 1]
        assert inside[0] is first
        assert {tuple(getattr(core, name) for name in fields) for core in inside} == {
            tuple(getattr(first, name) for name in fields)
        }


def own_items(place: int, request: dict[str, Any]) -> list[Item]:
    return [item for item in read_request(DATA, request) if ENGINE.parts[place].level in item.levels]


@pytest.mark.parametrize(
    ("place", "asked"),
    [(place, one) for place, one in product(range(len(ENGINE.parts)), REQUESTS) if own_items(place, one)],
    ids=str,
)
def test_a_part_is_possible_where_it_has_a_choice_for_every_core_of_the_class(
    place: int, asked: dict[str, Any]
) -> None:
    part, items = ENGINE.parts[place], own_items(place, asked)
    for key, (first, _) in ENGINE.classes[place].items():
        assert part.possible(first, items) is (part.best(first, items) is not None), key
    fits = {key: part.possible(first, items) for key, (first, _) in ENGINE.classes[place].items()}
    for core in ENGINE.universe.cores:
        assert part.possible(core, items) is fits[part.classify(core)]


def test_a_part_that_is_asked_again_about_other_cores_answers_about_them() -> None:
    """Two requests with the same item for Spark, the second with TensorFlows that the first did not ask about."""
    spark = {"pyspark": "2.4"}
    for version in ("2.15", "1.15", "2.4"):
        shared = Problem(ENGINE, read_request(DATA, {**spark, "tensorflow": version}))
        fresh = {
            core
            for core in shared.cores(shared.core_mask(0))
            if all(
                part.best(core, [item for item in shared.items if part.level in item.levels]) is not None
                for part in ENGINE.parts
            )
        }
        assert set(shared.cores(shared.mask(shared.all))) == fresh
