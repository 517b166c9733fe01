import json

import pytest


@pytest.fixture
def driver(host):
    return host.ansible.get_variables()["driver_newer"]


def test_the_newer_driver_runs(host, driver):
    result = host.run("/opt/deeplearning/bin/gpu-check driver_runs versions_agree")
    assert result.rc == 0, result.stdout
    assert driver in result.stdout


def test_it_is_recorded(host, driver):
    receipt = json.loads(host.file("/opt/deeplearning/state/nvidia_driver.json").content_string)
    assert f"/usr/lib64/libcuda.so.{driver}" in receipt["files"]


def test_the_sites_tasks_ran_before_and_after_and_a_finished_host_was_left_alone(host, driver):
    older = {"535.104.05": "470.82.01", "580.82.07": "535.104.05"}[driver]
    journal = host.file("/srv/journal").content_string.split("\n")
    assert [line.split() for line in journal if line] == [
        ["before", older],  # stopped: the GPU was in use, or the module stayed
        ["before", older],
        ["after", driver],
    ]


def test_it_is_locked(host, driver):
    assert f":{driver}" in host.file("/etc/dnf/plugins/versionlock.list").content_string
