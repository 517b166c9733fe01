import json

import pytest


@pytest.fixture
def driver(host):
    return host.ansible.get_variables()["driver_newer"]


@pytest.fixture
def kernel(host):
    return host.ansible.get_variables()["kernel_newer"] + ".x86_64"


def test_the_newer_driver_runs(host, driver):
    result = host.run("/opt/deeplearning/bin/gpu-check driver_runs versions_agree")
    assert result.rc == 0, result.stdout
    assert driver in result.stdout


def test_it_is_recorded(host, driver):
    receipt = json.loads(host.file("/opt/deeplearning/state/nvidia_driver.json").content_string)
    assert f"/usr/lib64/libcuda.so.{driver}" in receipt["files"]


def test_the_sites_tasks_ran_before_and_after_and_a_finished_host_was_left_alone(host, driver, kernel):
    older = {"535.104.05": "470.82.01", "580.82.07": "535.104.05"}[driver]
    running = {"535.104.05": "3.10.0-1160.114.2.el7", "580.82.07": "5.14.0-427.13.1.el9_4"}[driver] + ".x86_64"
    kernel_stopped = [["before", driver, running]] if driver == "580.82.07" else []  # its module did not build
    journal = host.file("/srv/journal").content_string.split("\n")
    assert [line.split() for line in journal if line] == [
        ["before", older, running],  # stopped: the GPU was in use, or the module stayed
        ["before", older, running],
        ["after", driver, running],
        *kernel_stopped,
        ["before", driver, running],
        ["after", driver, kernel],
    ]


def test_the_newer_kernel_runs_and_boots_with_the_module_for_it(host, kernel):
    assert host.check_output("/usr/local/bin/uname -r") == kernel
    assert host.check_output("grubby --default-kernel") == f"/boot/vmlinuz-{kernel}"
    result = host.run("/opt/deeplearning/bin/gpu-check module_for_boot_kernel")
    assert result.rc == 0, result.stdout
    assert "PASS" in result.stdout


def test_the_kernels_are_locked_and_the_older_ones_are_there(host, kernel):
    locked = host.file("/etc/dnf/plugins/versionlock.list").content_string
    assert f"kernel-0:{kernel.removesuffix('.x86_64')}.*" in locked
    assert len(host.check_output("rpm -q kernel").splitlines()) == 3


def test_it_is_locked(host, driver):
    assert f":{driver}" in host.file("/etc/dnf/plugins/versionlock.list").content_string
