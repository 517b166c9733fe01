"""What lets requests share results: a rule or a part is evaluated for one build, and the result holds for all that are alike."""

from itertools import product
from typing import Any

import pytest

from hadoop_dl.data import compat
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, shared_tables
from hadoop_dl.resolver.hosts import known_systems
from hadoop_dl.resolver.request import Item, read_request
from hadoop_dl.resolver.rules.tensorflow import rules

DATA = compat.load()
TABLES = shared_tables(DATA)
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
def test_a_rule_refuses_all_builds_that_are_alike_or_none_of_them(item: Item) -> None:
    item_rules = list(rules(TABLES.catalog, item))
    assert item_rules
    remaining_builds = []
    for build in TABLES.catalog.builds:
        refusals = [any(finding.refuses for finding in rule(build)) for rule, _ in item_rules]
        remaining_builds += [] if any(refusals) else [build]
    asked_once = ConstraintProblem(TABLES, [item]).build_mask(0)
    assert [build for build in TABLES.catalog.builds if asked_once >> build.index & 1] == remaining_builds


def own_items(place: int, request: dict[str, Any]) -> list[Item]:
    return [item for item in read_request(DATA, request) if TABLES.parts[place].level in item.levels]


@pytest.mark.parametrize(
    ("place", "asked"),
    [(place, one) for place, one in product(range(len(TABLES.parts)), REQUESTS) if own_items(place, one)],
    ids=str,
)
def test_a_part_is_possible_where_it_has_a_choice_for_every_build_of_the_class(
    place: int, asked: dict[str, Any]
) -> None:
    part, items = TABLES.parts[place], own_items(place, asked)
    for key, (first, _) in TABLES.classes[place].items():
        assert part.possible(first, items) is (part.best(first, items) is not None), key
    fits = {key: part.possible(first, items) for key, (first, _) in TABLES.classes[place].items()}
    for build in TABLES.catalog.builds:
        assert part.possible(build, items) is fits[part.classify(build)]


def test_a_part_that_is_asked_again_about_other_builds_answers_about_them() -> None:
    """Two requests with the same item for Spark, the second with TensorFlows that the first did not ask about."""
    spark = {"pyspark": "2.4"}
    for version in ("2.15", "1.15", "2.4"):
        shared_problem = ConstraintProblem(TABLES, read_request(DATA, {**spark, "tensorflow": version}))
        fresh = {
            build
            for build in shared_problem.builds(shared_problem.build_mask(0))
            if all(
                part.best(build, [item for item in shared_problem.items if part.level in item.levels]) is not None
                for part in TABLES.parts
            )
        }
        assert set(shared_problem.builds(shared_problem.solutions)) == fresh
