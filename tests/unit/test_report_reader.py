"""What report_facts runs on a host: the facts, gpu-check's harmless questions with a limit, and times."""

import json
import os
import subprocess
import time
from typing import Any

import gpu_check_hosts
import pytest
import report_reader
from ansible.module_utils.hadoop_dl_host import host_reader
from gpu_check import compute, packages, toolkit
from gpu_check.questions import QUESTIONS
from interpreters import HOST_PYTHONS
from trees import write

from hadoop_dl.hosts import host_script

WITH_GPU: dict[str, Any] = {"gpus": [{"device": "1eb8"}], "listed": None}
BARE: dict[str, Any] = {"gpus": [], "listed": None}


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_as_a_script_it_prints_one_json_line(python):
    script = host_script.report_reader().encode()
    completed = subprocess.run([python, "-E", "-s", "-"], input=script, check=True, capture_output=True)
    answer = json.loads(completed.stdout)
    assert sorted(answer) == ["busy", "facts", "health", "holders", "times", "yarn_problem"]
    assert completed.stdout.count(b"\n") == 1


def test_no_question_computes_loads_a_library_or_reads_packages():
    questions = {"driver_runs", *report_reader.ALWAYS, *report_reader.WITH_DRIVER}
    modules = {name: function.__module__ for name, function in QUESTIONS}
    assert questions <= set(modules)
    modules_of_packages = {compute.__name__, toolkit.__name__, packages.__name__}
    assert [name for name in questions if modules[name] in modules_of_packages] == []
    assert not questions & {"nvml_reachable", "linker_finds_the_driver"}


def test_a_host_without_gpus_is_asked_nothing():
    assert report_reader.health(BARE, False, None) == {"results": None, "problem": None}


def test_a_host_whose_gpu_does_not_show_any_more_is_asked(tmp_path):
    machine = gpu_check_hosts.host(tmp_path, gpus=0, gpu_count="1")
    health = report_reader.health(BARE, True, lambda: machine)
    (answer,) = [result for result in health["results"] if result["name"] == "gpus_on_pci_as_declared"]
    assert (answer["outcome"], "the PCI bus shows 0" in answer["message"]) == ("FAIL", True)


def test_a_driver_that_does_not_answer_is_asked_nothing_more_and_the_log_is_still_read(tmp_path):
    xid = (0, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    machine = gpu_check_hosts.host(tmp_path, answers={"nvidia-smi": gpu_check_hosts.NO_DRIVER, "dmesg": xid})
    results = report_reader.health(WITH_GPU, True, lambda: machine)["results"]
    outcomes = {result["name"]: result["outcome"] for result in results}
    assert (outcomes["driver_runs"], outcomes["xid"]) == ("FAIL", "FAIL")
    assert not set(outcomes) & set(report_reader.WITH_DRIVER)


def test_questions_that_hang_are_ended_and_are_the_reason(monkeypatch):
    monkeypatch.setattr(report_reader, "HEALTH_TIMEOUT", 0.3)
    start = time.monotonic()
    health = report_reader.health(WITH_GPU, True, lambda: time.sleep(60))
    assert health["problem"].startswith("gpu-check gave no answer within 0.3 s")
    assert time.monotonic() - start < 30


def test_questions_that_fail_altogether_are_the_reason(tmp_path):
    write(tmp_path, {"/opt/deeplearning/etc/gpu-check.json": "{"})
    health = report_reader.health(WITH_GPU, True, lambda: report_reader.Host(str(tmp_path)))
    assert "must be JSON but is not" in health["problem"]


def test_times_are_those_of_the_link_and_of_what_roles_left(tmp_path):
    assert host_reader.times(str(tmp_path)) == {"changed": None, "verified": None}
    state = tmp_path / "opt/deeplearning/state"
    state.mkdir(parents=True)
    for name, seconds in (("cuda", 1000), ("verify", 3000)):
        (state / f"{name}.json").write_text("{}", encoding="utf-8")
        os.utime(state / f"{name}.json", (seconds, seconds))
    assert host_reader.times(str(tmp_path)) == {"changed": 1000, "verified": 3000}
    (tmp_path / "opt/deeplearning/current").symlink_to("envs/x")
    os.utime(tmp_path / "opt/deeplearning/current", (2000, 2000), follow_symlinks=False)
    assert host_reader.times(str(tmp_path)) == {"changed": 2000, "verified": 3000}
