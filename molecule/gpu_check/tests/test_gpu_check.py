import json

import pytest

GPU_CHECK = "/opt/deeplearning/bin/gpu-check"


@pytest.fixture(scope="module")
def answers(host):
    return {answer["name"]: answer for answer in json.loads(host.run(f"{GPU_CHECK} --json").stdout)}


def test_the_exit_status_reports_that_something_failed(host):
    assert host.run(GPU_CHECK).rc == 1


def test_promised_gpus_that_are_missing_fail(answers):
    assert answers["gpus_on_pci_as_declared"]["outcome"] == "FAIL"
    assert "promises 2" in answers["gpus_on_pci_as_declared"]["message"]


def test_the_oldest_driver_is_that_of_the_inputs(answers):
    assert "410.48 or newer" in answers["driver_new_enough"]["message"]


def test_dcgm_is_asked_only_where_it_is(answers):
    assert answers["dcgm_diagnosis"]["outcome"] == "SKIP"
    assert "no /usr/bin/dcgmi" in answers["dcgm_diagnosis"]["message"]


def test_gpus_that_do_not_answer_are_not_accepted(host):
    completed = host.run(f"{GPU_CHECK} --accept --json")
    assert completed.rc == 1, completed.stderr
    report = json.loads(completed.stdout)
    assert report["measures"] == []
    assert [answer["outcome"] for answer in report["results"]] == ["FAIL", "SKIP", "SKIP", "SKIP", "SKIP"]
    assert "nvidia-smi is required" in report["results"][0]["message"]


def test_a_user_without_rights_may_run_it(host):
    completed = host.run(f"su nobody -s /bin/sh -c '{GPU_CHECK} --list'")
    assert completed.rc == 0, completed.stderr
    assert "xid" in completed.stdout


def test_a_login_shell_finds_it(host):
    assert host.run("su - nobody -s /bin/sh -c 'command -v gpu-check'").stdout == "/usr/local/bin/gpu-check\n"


def test_the_timer_writes_what_yarn_gets(host):
    assert host.service("deeplearning-gpu-health.timer").is_running
    assert host.service("deeplearning-gpu-health.timer").is_enabled
    answer = host.file("/run/deeplearning-gpu-health")
    assert host.run(f"timeout 60 sh -c 'until test -s {answer.path}; do sleep 1; done'").succeeded  # 5 to 10 s at first
    assert (answer.user, answer.mode) == ("root", 0o644)
    assert answer.content_string.startswith("NOT ASKED: nvidia-smi is required to ask the GPUs")
