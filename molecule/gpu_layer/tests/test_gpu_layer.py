import json

import pytest
from lost_content import emptied


@pytest.mark.parametrize("component", ["nvidia_driver", "cuda", "cudnn", "nccl", "gpu_check"])
def test_a_receipt_names_the_files(host, component):
    receipt = json.loads(host.file(f"/opt/deeplearning/state/{component}.json").content_string)
    assert len(receipt["digest"]) == 12
    assert receipt["files"]


def test_the_record_has_the_drivers_library(host):
    receipt = json.loads(host.file("/opt/deeplearning/state/nvidia_driver.json").content_string)
    assert "/usr/lib64/libcuda.so.535.104.05" in receipt["files"]


@pytest.mark.parametrize(
    "check",
    [
        "versions_agree",
        "module_for_boot_kernel",
        "linker_finds_the_driver",
        "nvcc_version",
        "cuda_link",
        "nccl_loads",
        "package_files",
    ],
)
def test_gpu_check_passes_what_needs_no_hardware(host, check):
    completed = host.run(f"/opt/deeplearning/bin/gpu-check {check}")
    assert completed.rc == 0, completed.stdout
    assert completed.stdout.startswith("PASS")


def test_gpu_check_misses_the_driver_that_no_kernel_loaded(host):
    completed = host.run("/opt/deeplearning/bin/gpu-check driver_runs")
    assert completed.rc == 1
    assert "modprobe nvidia" in completed.stdout


def test_gpu_check_finds_a_library_of_a_package_that_lost_its_content(host):
    library = host.check_output("readlink -f /usr/lib64/libcudnn.so.8")
    package = host.check_output(f"rpm -qf --qf '%{{NAME}}' {library}")
    with emptied(host, library):
        completed = host.run("/opt/deeplearning/bin/gpu-check package_files")
    assert completed.rc == 1
    assert f"missing or have other content: {library} ({package})." in completed.stdout
    assert f"reinstall) {package}." in completed.stdout
