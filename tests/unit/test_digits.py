"""The example's data and arithmetic."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

DIRECTORY = Path(__file__).parents[2] / "examples/digits"
spec = importlib.util.spec_from_file_location("digits", DIRECTORY / "digits.py")
assert spec
assert spec.loader
digits = importlib.util.module_from_spec(spec)
spec.loader.exec_module(digits)


def test_the_data_is_what_its_readme_says() -> None:
    readme = (DIRECTORY / "data/README.md").read_text()
    assert hashlib.sha256((DIRECTORY / "data/digits.csv.gz").read_bytes()).hexdigest() in readme
    assert len(digits.lines()) == 1797


def test_held_out_rows_are_never_trained_on() -> None:
    rows = [f"{number}" for number in range(1797)]
    training, held_out = digits.split(rows)
    assert (len(training), len(held_out)) == (1437, 360)
    assert not set(training) & set(held_out)
    assert (training, held_out) == digits.split(rows)


def test_every_digit_is_held_out() -> None:
    found = {digits.parse(row)[1] for row in digits.split(digits.lines())[1]}
    assert found == set(range(10))


def test_pixels_are_between_0_and_1() -> None:
    for row in digits.lines():
        pixels, digit = digits.parse(row)
        assert len(pixels) == 64
        assert min(pixels) >= 0
        assert max(pixels) <= 1
        assert digit in range(10)


@pytest.mark.parametrize("row", ["1,2,3", ",".join(["0"] * 64 + ["10"])])
def test_a_row_that_is_none_is_refused(row: str) -> None:
    with pytest.raises(ValueError, match="a row of 64 pixels and a digit is needed"):
        digits.parse(row)


def test_every_row_is_in_exactly_one_shard() -> None:
    parts = digits.shards(list(range(1437)), 4)
    assert sorted(row for part in parts for row in part) == list(range(1437))


@pytest.mark.parametrize(
    ("arguments", "expected"), [((1437, 20, 128), 224), ((1437, 20, 128, 0.9), 202), ((1, 1, 128), 1)]
)
def test_steps(arguments: tuple[float, ...], expected: int) -> None:
    assert digits.steps(*arguments) == expected


def test_the_result_is_json() -> None:
    report = json.loads(digits.result(0.98765, 360, 12.34, 2, ["data2", "data1"], input_mode="spark"))
    assert report == {
        "accuracy": 0.9877,
        "executors": 2,
        "held_out": 360,
        "hosts": ["data1", "data2"],
        "input_mode": "spark",
        "seconds": 12.3,
    }


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(DIRECTORY))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    (tmp_path / "core-site.xml").write_text(
        "<configuration><property><name>fs.defaultFS</name><value>hdfs://master1:8020</value></property></configuration>"
    )
    return importlib.import_module("storage")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("hdfs:///user/me/", "hdfs://master1:8020/user/me"),
        ("hdfs://other:8020/user/me", "hdfs://other:8020/user/me"),
        ("/tmp/here/", "/tmp/here"),
    ],
)
def test_an_address_without_a_namenode_gets_the_clusters(storage: ModuleType, written: str, meant: str) -> None:
    assert storage.address(written) == meant


def test_without_a_configuration_the_namenode_is_asked_for(storage: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").unlink()
    with pytest.raises(argparse.ArgumentTypeError, match="the NameNode is needed"):
        storage.address("hdfs:///user/me")
