import json

import pytest
from lost_content import emptied


@pytest.fixture(scope="module")
def version(host):
    return host.check_output("cat /etc/stand-in-driver-version").strip()


@pytest.fixture(scope="module")
def kernel(host):
    return host.check_output("ls /boot/vmlinuz-*").strip().rpartition("vmlinuz-")[2]


@pytest.fixture(scope="module")
def answers(host):
    return {answer["name"]: answer for answer in json.loads(host.run("/opt/deeplearning/bin/gpu-check --json").stdout)}


def test_dkms_has_built_the_real_module(host, version, kernel):
    assert f"nvidia-current/{version}, {kernel}, x86_64: installed" in host.check_output("dkms status")


def test_the_module_is_for_the_kernel_of_the_next_boot(host, version, kernel):
    words = host.check_output(
        f"modinfo -k {kernel} -F version nvidia-current; modinfo -k {kernel} -F vermagic nvidia-current"
    ).split()
    assert words[:2] == [version, kernel]


def test_the_real_nvidia_smi_says_that_no_driver_runs(host):
    completed = host.run("nvidia-smi")
    assert completed.rc != 0
    assert "couldn't communicate with the NVIDIA driver" in completed.stdout


def test_gpu_check_turns_that_into_its_own_sentence(answers, version, kernel):
    answer = answers["driver_runs"]
    assert answer["outcome"] == "FAIL"
    assert f"Kernel {kernel} has the module {version}" in answer["message"]
    assert "modprobe nvidia" in answer["message"]


def test_nvml_says_the_same_from_python(answers):
    assert answers["nvml_reachable"]["outcome"] == "FAIL"
    assert "returned 9" in answers["nvml_reachable"]["message"]


@pytest.mark.parametrize(
    "name", ["versions_agree", "module_for_boot_kernel", "linker_finds_the_driver", "nouveau_absent", "package_files"]
)
def test_what_needs_no_gpu_passes(answers, name):
    assert answers[name]["outcome"] == "PASS", answers[name]["message"]


def test_a_promised_gpu_that_is_not_there_fails(answers):
    assert answers["gpus_on_pci_as_declared"]["outcome"] == "FAIL"


def test_a_library_that_lost_its_content_is_named_with_its_package(host):
    library = host.check_output("readlink -f /usr/lib/x86_64-linux-gnu/libcuda.so.1")
    package = host.check_output(f"dpkg-query --search {library}").split(":")[0]
    with emptied(host, library):
        completed = host.run("/opt/deeplearning/bin/gpu-check package_files")
    assert completed.rc == 1
    assert f"{library} ({package}). Run apt-get install --reinstall {package}." in completed.stdout
