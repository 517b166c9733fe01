"""deeplearning benchmark --resnet50 on YARN: real all-reduce between two workers, what the columns add up to, and a job that is interrupted.

A cluster of its own, removed at the end. Images are tiny, and all hosts share the cores of one machine: this verifies the measurement, not a speed.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from demo_commands import nodes_alone, play, run

from hadoop_dl_dev.demo.cluster import Cluster

CLUSTER = Cluster("tf2.15-cpu-py3-el9", name="resnet")
MEASURE = "deeplearning benchmark --resnet50 --image-size 32 --batch 2 --memory 2g --timeout 900"
PARTS = ("input", "compute", "all_reduce")


def command(text: str) -> list[str]:
    return ["docker", "exec", CLUSTER.container("edge1"), "su", "-", "analyst", "-c", text]


def analyst(text: str) -> str:
    return run(*command(text))


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with nodes_alone(CLUSTER):
        play(CLUSTER, "site.yml")
        yield


def test_one_and_two_workers_are_measured_and_the_columns_add_up():
    lines = analyst(f"{MEASURE} --workers 1,2 --rounds 4 --output resnet50.json").splitlines()
    results: dict[str, Any] = json.loads(analyst("cat resnet50.json"))
    assert re.fullmatch(r"tf2\.15-cpu-py3-el9-[0-9a-f]{12}", results["environment"])
    one, two = results["resnet50"]["workers"]
    assert (one["workers"], one["replicas"], one["efficiency"]) == (1, 1, 1.0)
    assert (two["workers"], two["replicas"], two["hosts"]) == (2, 2, ["data1", "data2"])
    assert two["efficiency"] == pytest.approx(two["images_per_second"] / (2 * one["images_per_second"]))
    for row in (one, two):
        seconds = row["seconds"]
        assert row["problem"] is None  # the sum of ones of all workers included
        assert row["gradient_bytes"] == 4 * 25_583_592
        assert sum(seconds[part] for part in (*PARTS, "remainder")) == pytest.approx(seconds["step"])
        assert row["images_per_second"] == pytest.approx(2 * row["workers"] / seconds["step"])
        assert all(len(row["rounds"][part]) == 4 for part in (*PARTS, "step"))
        assert all(min(row["rounds"][part]) > 0 for part in (*PARTS, "step"))
    table = [line.split() for line in lines if re.match(r" +\d+ ", line)]
    titles = next(line.split() for line in lines if line.startswith("workers"))
    assert " ".join(titles) == "workers hosts images/s efficiency input compute all-reduce remainder step spread"
    assert [row[:2] for row in table] == [["1", "1"], ["2", "2"]]
    for row in table:
        *parts, step = (float(cell) for cell in row[4:9])
        assert sum(parts) == pytest.approx(step, abs=0.003)  # each is rounded
    assert any("this is on CPUs, and says nothing about GPUs" in line for line in lines)


def test_an_interrupted_measurement_ends_its_job():
    ran = set(re.findall(r"application_\S+", analyst("tfos-submit jobs")))
    text = f"exec {MEASURE} --workers 2 --rounds 1000 --output interrupted.json"
    with subprocess.Popen(
        command(f"echo $$ > pid; {text}"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        deadline, new = time.monotonic() + 300, [""]
        while new[5:6] != ["3"]:  # containers
            assert time.monotonic() < deadline
            rows = [
                line.replace("ResNet-50 on 2", "ResNet-50").split() for line in analyst("tfos-submit jobs").splitlines()
            ]
            new = next((row for row in rows[1:] if row[0] not in ran), [""])
        analyst("kill -INT $(cat pid)")
        output = process.communicate(timeout=180)[0]
    assert "interrupted, and the job was ended" in output
    assert re.search(rf"{new[0]} .* KILLED ", analyst("tfos-submit jobs"))
    assert json.loads(analyst("cat interrupted.json"))["resnet50"]["workers"] == []


def test_what_yarn_cannot_give_is_no_result_and_keeps_the_others():
    words = run(*command(f"{MEASURE} --workers 1,30 --rounds 2 --wait 10 --output few.json"), status=1)
    assert "30 executors were asked for" in words
    one, many = json.loads(analyst("cat few.json"))["resnet50"]["workers"]
    assert (one["efficiency"], many["images_per_second"]) == (1.0, None)
    assert "after 10 s YARN has given" in many["problem"]
