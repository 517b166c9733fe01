"""What tests/stacks found: a record counts for the artifacts that it was made with, and for nothing else."""

import dataclasses
import re

import pytest

from hadoop_dl.data.stacks import load_stack, stack_names
from hadoop_dl.resolver import resolve
from hadoop_dl_dev import tested, xid_module

STACK, PYTHON = load_stack("tf2.15-cpu-py3-el9"), "3.11"
ANSWERS = dict.fromkeys(tested.questions(STACK, PYTHON), tested.YES)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tested.yml"


def record(**changes) -> tested.Record:
    record = tested.Record(STACK.name, PYTHON, tested.digest(STACK, PYTHON), "el9", "2026-11-01", dict(ANSWERS))
    return dataclasses.replace(record, **changes)


def test_a_lock_that_changed_since_counts_as_not_tested(path):
    tested.write(record(digest="0" * 16), path)
    assert set(tested.status(STACK, PYTHON, tested.read(path)).values()) == {"not tested"}
    row = next(line for line in tested.tables(path).splitlines() if f"[{STACK.name}]" in line and "| 3.11 |" in line)
    assert "yes" not in row
    assert "2026-11-01" not in row


def test_the_digest_changes_with_any_artifact():
    changed_stack = dataclasses.replace(STACK, data={**STACK.data, "files": []})
    assert tested.digest(changed_stack, PYTHON) != tested.digest(STACK, PYTHON)
    assert tested.digest(STACK, "3.9") != tested.digest(STACK, PYTHON)


def test_an_answer_that_was_never_given_is_not_a_yes(path):
    answers = {name: answer for name, answer in ANSWERS.items() if name != "trained"}
    tested.write(record(answers=answers), path)
    assert tested.status(STACK, PYTHON, tested.read(path))["trained"] == "not tested"


def test_a_skip_on_another_machine_replaces_no_answers(path):
    tested.write(record(), path)
    tested.write(record(answers={}, skipped="no Python 3.11"), path)
    assert tested.read(path)[(STACK.name, PYTHON)] == record()


def test_the_same_answers_again_change_nothing(path):
    tested.write(record(), path)
    before = path.read_bytes()
    tested.write(record(date="2026-12-31"), path)
    assert path.read_bytes() == before


def test_other_answers_take_the_new_date(path):
    tested.write(record(), path)
    tested.write(record(date="2026-12-31", answers={**ANSWERS, "hdfs": "refused"}), path)
    assert tested.read(path)[(STACK.name, PYTHON)].date == "2026-12-31"


def test_only_what_a_stack_promises_is_asked():
    assert tested.questions(load_stack("tf2.21-cpu-py311"), "3.11") == ["installed", "imports", "computes"]
    assert "cuda" in tested.questions(load_stack("tf2.21-py311"), "3.11")
    # Linked to CUDA 8.0 and the driver: nothing of it starts without them.
    assert tested.questions(load_stack("tf1.4-py27-el7"), "2.7") == ["installed"]


@pytest.mark.parametrize(
    "request_",
    [
        {"os": "rhel-7.9"},
        {"os": "rhel-7.9", "hadoop": "hdp-2.6"},
        {"os": "rhel-7.9", "hadoop": "cdp-7.1"},
        {"os": "rhel-7.9", "hadoop": "cdh-5.14", "tensorflow": "1.4", "gpu": "none"},
        {"os": "rhel-8.8", "hadoop": "cdp-7.1"},
        {"os": "rhel-8.8", "hadoop": "cdp-7.1", "gpu": "none"},
        {"os": "rhel-9.4", "hadoop": "cdp-7.1"},
        {"os": "rhel-9.4", "hadoop": "cdp-7.1", "gpu": "none"},
    ],
)
def test_the_first_answer_for_a_cluster_was_on_yarn(request_):
    assert resolve(request_, suggest=False).name in tested.on_yarn()


def test_gpu_stacks_from_2_15_on_carry_cuda_as_the_stack_says():
    for name in stack_names():
        stack = load_stack(name)
        version = tuple(int(part) for part in stack.data["tensorflow"].split(".")[:2])
        if "cuda" not in stack.data or version < (2, 15):
            continue
        for python in stack.pythons:
            locked_versions = {entry.project: entry.version for entry in stack.lock(python).entries}
            match = re.search(r"-cuda([0-9.]+)-", name)  # newer libraries than those that TensorFlow was built with
            cuda = match[1] if match else stack.data["cuda"]
            assert locked_versions["nvidia-cuda-runtime-cu12"].startswith(cuda + ".")
            assert locked_versions["nvidia-cudnn-cu12"].startswith(stack.data["cudnn"] + ".")
            assert locked_versions["nvidia-nccl-cu12"] == stack.data.get("nccl", locked_versions["nvidia-nccl-cu12"])


def test_gpu_check_has_the_catalogue_of_xids():
    assert xid_module.MODULE.read_text(encoding="utf-8") == xid_module.text(), "run scripts/stack data xids"
