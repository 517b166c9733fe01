"""What lets requests share results: a part is evaluated for one build, and the result holds for all of its class."""

from itertools import product
from typing import Any

import pytest

from hadoop_dl.data import compat
from hadoop_dl.resolver import compose
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, shared_tables
from hadoop_dl.resolver.request import Item, read_request

DATA = compat.load()
TABLES = shared_tables(DATA)
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


def own_items(place: int, request: dict[str, Any]) -> list[Item]:
    return [item for item in read_request(DATA, request) if TABLES.parts[place].level in item.levels]


@pytest.mark.parametrize(
    ("place", "asked"),
    [(place, one) for place, one in product(range(len(TABLES.parts)), REQUESTS) if own_items(place, one)],
    ids=str,
)
def test_a_part_has_a_choice_for_every_build_of_a_class_or_for_none(place: int, asked: dict[str, Any]) -> None:
    part, items = TABLES.parts[place], own_items(place, asked)
    fits = {key: part.best(first, items) is not None for key, (first, _) in TABLES.classes[place].items()}
    for build in TABLES.catalog.builds:
        assert (part.best(build, items) is not None) is fits[part.classify(build)]


def test_a_part_that_is_asked_again_about_other_builds_answers_about_them() -> None:
    """Two requests with the same item for Spark, the second with TensorFlows that the first did not ask about."""
    spark = {"pyspark": "2.4"}
    for version in ("2.15", "1.15", "2.4"):
        shared_problem = ConstraintProblem(TABLES, read_request(DATA, {**spark, "tensorflow": version}))
        fresh = {
            build
            for build in shared_problem.builds(shared_problem.build_masks[0])
            if all(
                part.best(build, [item for item in shared_problem.items if part.level in item.levels]) is not None
                for part in TABLES.parts
            )
        }
        assert set(shared_problem.builds(shared_problem.solutions)) == fresh


def test_a_reason_names_the_release_of_its_own_answer() -> None:
    """Both releases are of one class; the second answer named the first one's."""
    for version in ("1.15.5", "1.15.0"):
        reasons = compose({"tensorflow": version, "tensorflow_package": "tensorflow"}).reasons
        (reason,) = (finding.text for finding in reasons if finding.text.startswith("kafka"))
        assert f"tensorflow {version} logs in" in reason
