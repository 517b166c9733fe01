"""gpu-check inside YARN containers. The demo's GPUs are a stand-in nvidia-smi: TensorFlow must not see them, and the answer says why."""

import json

import pytest

from hadoop_dl.data import programs
from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.shell import output


@pytest.fixture(scope="module")
def asked(cluster, shell, tmp_path_factory) -> tuple[int, list[dict]]:
    """The exit status, and what each executor answered."""
    edge = cluster.container("edge1")
    nodes.execute(edge, "mkdir", "-p", "/tmp/gpus")
    program = tmp_path_factory.mktemp("program") / "gpu-check"
    programs.main([str(images.REPOSITORY / "roles/gpu_check/files/gpu-check"), str(program)])
    for source in (program, images.REPOSITORY / "examples/gpus/ask_executors.py"):
        output("docker", "cp", str(source), f"{edge}:/tmp/gpus/{source.name}")
    submit = "cd /tmp/gpus && /opt/deeplearning/bin/tfos-submit --executors 2 --timeout 300 --files gpu-check ask_executors.py"
    code, text = shell("edge1", f"su analyst -c '{submit}'")
    lines = [line for line in text.splitlines() if line.startswith("RESULT ")]
    assert len(lines) == 1, text
    return code, json.loads(lines[0].removeprefix("RESULT "))


def answers(asked, name: str) -> dict[str, dict]:
    """By container: YARN may place both on one host."""
    return {place["container"]: answer for place in asked[1] for answer in place["answers"] if answer["name"] == name}


def test_every_executor_answers_from_a_container_of_its_own(asked, cluster):
    assert {place["host"] for place in asked[1]} <= set(cluster.data_hosts)
    assert len({place["container"] for place in asked[1]}) == 2
    assert all(place["container"].startswith("container_") for place in asked[1])


def test_gpus_that_are_none_are_not_taken_for_gpus(asked):
    rows = answers(asked, "tensorflow_lists_gpus")
    assert [row["outcome"] for row in rows.values()] == ["FAIL", "FAIL"]
    for row in rows.values():
        assert row["message"].startswith("TensorFlow must list 2 GPUs but lists 0. ")
        assert row["message"].rpartition("lists 0. ")[2], "and a cause"


def test_a_failed_question_is_the_jobs_exit_status(asked):
    assert asked[0] == 1


def test_tensorflow_computes_on_the_cpu_of_a_container(asked):
    rows = answers(asked, "tensorflow_computes_on_cpu")
    assert [row["outcome"] for row in rows.values()] == ["PASS", "PASS"], rows
