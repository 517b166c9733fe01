import json
import os

import pytest

LONG = os.environ.get("SCENARIO_LONG") == "yes"  # make test-long: more that stops the rollout, and kernels


@pytest.fixture
def driver(host):
    return host.ansible.get_variables()["driver_newer"]


@pytest.fixture
def system(host):
    return host.ansible.get_variables()["gpu_system"]


@pytest.fixture
def kernel(host):
    return host.ansible.get_variables()["kernel_newer"] + ".x86_64"


@pytest.fixture
def other_kernel():
    if not LONG:
        pytest.skip("make test-long changes the kernel")


def test_the_newer_driver_runs(host, driver):
    completed = host.run("/opt/deeplearning/bin/gpu-check driver_runs versions_agree")
    assert completed.rc == 0, completed.stdout
    assert driver in completed.stdout


def test_it_is_recorded(host, driver):
    receipt = json.loads(host.file("/opt/deeplearning/state/nvidia_driver.json").content_string)
    assert [path for path in receipt["files"] if path.endswith(f"/libcuda.so.{driver}")], receipt["files"]


def test_the_sites_tasks_ran_before_and_after_and_a_finished_host_was_left_alone(host, system, driver, kernel):
    older, running = {
        "el7": ("470.82.01", "3.10.0-1160.114.2.el7.x86_64"),
        "el8": ("535.104.05", "4.18.0-553.5.1.el8_10.x86_64"),
        "el9": ("535.104.05", "5.14.0-427.18.1.el9_4.x86_64"),  # it was rebooted once
    }[system]
    before, after = ["before", older, running], ["after", older, running]
    # On el7 the module was not built, and the GPU was in use; on el9 it stayed. el8's stream stopped it before any host.
    broken = [before, before, before, after] if LONG and system == "el7" else []
    stop_count = {"el7": 1, "el8": 0}.get(system, 2 if LONG else 0)
    kernel_stopped = [["before", driver, running]] if system == "el9" else []  # its module did not build
    kernel_lines = [*kernel_stopped, ["before", driver, running], ["after", driver, kernel]]
    journal = host.file("/srv/journal").content_string.split("\n")
    assert [line.split() for line in journal if line] == [
        *broken,
        *[before] * stop_count,
        before,
        ["after", driver, running],
        *(kernel_lines if LONG else []),
    ]


@pytest.mark.usefixtures("other_kernel")
def test_the_newer_kernel_runs_and_boots_with_the_module_for_it(host, kernel):
    assert host.check_output("/usr/local/bin/uname -r") == kernel
    assert host.check_output("grubby --default-kernel") == f"/boot/vmlinuz-{kernel}"
    completed = host.run("/opt/deeplearning/bin/gpu-check module_for_boot_kernel")
    assert completed.rc == 0, completed.stdout
    assert "PASS" in completed.stdout


@pytest.mark.usefixtures("other_kernel")
@pytest.mark.parametrize("package", ["kernel", "kernel-devel"])
def test_the_kernels_and_their_headers_are_locked_and_the_older_ones_are_there(host, kernel, package):
    locked = host.file("/etc/dnf/plugins/versionlock.list").content_string
    assert f"{package}-0:{kernel.removesuffix('.x86_64')}.*" in locked
    assert len(host.check_output(f"rpm -q {package}").splitlines()) == 3


@pytest.mark.usefixtures("other_kernel")
def test_what_ties_headers_to_their_kernel_went_along(host, kernel):
    installed = host.run("rpm -q kernel-devel-matched").stdout.strip()
    assert installed in (f"kernel-devel-matched-{kernel}", "package kernel-devel-matched is not installed")
    assert (".el9" in kernel) == (not installed.endswith("is not installed"))


def test_it_is_locked(host, driver):
    assert f":{driver}" in host.file("/etc/dnf/plugins/versionlock.list").content_string


def test_no_way_back_is_recorded_once_the_newer_version_works(host):
    assert not host.file("/opt/deeplearning/etc/nvidia-driver-working-versions.json").exists


def test_no_package_is_left_half_installed(host):
    assert host.check_output("rpm --verify --all --nofiles") == ""


def test_nouveau_was_unloaded_and_only_the_host_where_it_stayed_was_rebooted(host, system):
    log = host.file("/srv/kernel.log").content_string.splitlines()
    stayed = system == "el9"
    assert log[:2] == ["modprobe -r nouveau", "boot" if stayed else "modprobe nvidia"]
    assert "modprobe nvidia" in log[2:] or not stayed
    assert "nouveau" not in host.file("/srv/modules").content_string
    assert "blacklist nouveau" in host.file("/etc/modprobe.d/deeplearning-nouveau.conf").content_string


def test_the_device_of_unified_memory_is_there_also_after_a_boot(host):
    assert host.file("/dev/nvidia-uvm").exists
    output = host.check_output("systemctl show --property=ExecStartPre nvidia-persistenced")
    assert "argv[]=/usr/bin/nvidia-modprobe -u -c 0" in output
    # After the boot of the kernel's upgrade nothing else creates that device.
    assert not LONG or "status=0" in output
