"""gpu-check on a host: each answer of the driver and its tools becomes PASS, SKIP, or a sentence with what to do."""

import os

import pytest
from gpu_check.host import Host
from gpu_check_hosts import (
    KERNEL,
    MISMATCH,
    NO_DRIVER,
    RUNNING,
    Library,
    ask,
    check,
    fails,
    host,
    look,
    with_tensorflow,
)


def test_a_host_that_promises_no_gpu_skips(tmp_path):
    assert ask("driver_runs", host(tmp_path, gpus=0)) == ("SKIP", "this host must have no GPU")


OTHER_MODULE = (0, "version: 535.104.05\nvermagic: 5.14.0-1.el9.x86_64 SMP\n")
OLDER_RUNS = {"/proc/driver/nvidia/version": RUNNING.replace("535.104.05", "470.82.01")}
# What a transaction of rpm leaves that was ended between the new package and the old one: package-cleanup(1) --dupes.
TWO_VERSIONS = {"rpm": (0, "550.54.15\n535.104.05\n"), "rpm -q": (0, "")}
WITHOUT_UVM = {"/proc/driver/nvidia/version": RUNNING, "/dev/nvidia0": "", "/dev/nvidiactl": ""}


@pytest.mark.parametrize(
    ("question", "given", "words"),
    [
        ("gpus_on_pci_as_declared", {"gpu_count": "2"}, ["promises 2", "shows 1", "lspci"]),
        (
            "module_for_boot_kernel",
            {"answers": {"modinfo": OTHER_MODULE}},
            ["for 5.14.0-1.el9.x86_64", "dkms remove -k"],
        ),
        ("versions_agree", {"files": OLDER_RUNS}, ["loaded module 470.82.01", "library 535.104.05"]),
        ("no_reboot_waits", {"files": OLDER_RUNS}, []),
        ("versions_agree", {"answers": TWO_VERSIONS}, ["550.54.15 and 535.104.05", "dnf remove --duplicates"]),
        ("nouveau_absent", {"files": {"/proc/modules": "nouveau 123 0 - Live 0x0\n"}}, []),
        ("driver_new_enough", {"driver_min": "550.54"}, ["550.54 or newer, and 535.104.05"]),
        ("nvcc_version", {"cuda": ["12.2"]}, ["/usr/local/cuda-12.2"]),
        ("pcie_width", {"answers": {"nvidia-smi": (0, "a line of text\n")}}, ["but printed: a line of text. Run"]),
        ("device_nodes", {"files": WITHOUT_UVM}, ["without /dev/nvidia-uvm. Create them: nvidia-modprobe -c 0 -u"]),
    ],
)
def test_what_is_wrong_on_a_host_fails_with_what_to_do(tmp_path, question, given, words):
    fails(question, host(tmp_path, **given), *words)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NO_DRIVER, ["must run in the kernel", "modprobe nvidia", "has the module 535.104.05"]),
        (MISMATCH, ["one version", "reboot the host"]),
        ((4, "Failed to initialize NVML: Insufficient Permissions"), ["/dev/nvidia*", "container"]),
        ((6, "No devices were found"), ["lspci -d 10de:"]),
        ((-9, ""), ["within 30 seconds", "Xid"]),
        ((None, ""), ["no such command", "playbooks/gpu.yml"]),
        ((255, "Unable to determine the device handle"), ["status 255", "Unable to determine"]),
    ],
)
def test_every_failure_of_nvidia_smi_becomes_its_own_sentence(tmp_path, answer, words):
    fails("driver_runs", host(tmp_path, answers={"nvidia-smi": answer}), *words)


def test_a_boot_kernel_without_module_is_told_before_the_reboot(tmp_path):
    machine = host(tmp_path)
    (tmp_path / f"lib/modules/{KERNEL}/extra/nvidia.ko").unlink()
    fails("module_for_boot_kernel", machine, f"Kernel {KERNEL} starts at the next boot")


def test_versions_that_agree_pass(tmp_path):
    machine = host(tmp_path, files={"/proc/driver/nvidia/version": RUNNING})
    assert ask("versions_agree", machine) == ("PASS", "535.104.05")


@pytest.mark.parametrize(("status", "outcome"), [(0, "PASS"), (9, "FAIL"), (18, "FAIL")])
def test_nvml_is_reached_only_with_status_0(tmp_path, status, outcome):
    assert ask("nvml_reachable", host(tmp_path, load=lambda path: Library(status)))[0] == outcome


@pytest.mark.parametrize(
    ("answer", "header", "outcome"), [(6021, "6.0.21", "PASS"), (6020, "6.0.21", "FAIL"), (6021, "6.0.20", "FAIL")]
)
def test_cudnn_header_library_and_wish_have_to_agree(tmp_path, answer, header, outcome):
    text = "".join(
        f"#define CUDNN_{name} {value}\n"
        for name, value in zip(("MAJOR", "MINOR", "PATCHLEVEL"), header.split("."), strict=True)
    )
    machine = host(
        tmp_path,
        answers={"ldconfig": (0, "\tlibcudnn.so.6 (libc6,x86-64) => /usr/lib64/libcudnn.so.6\n")},
        files={"/usr/include/cudnn.h": text},
        load=lambda path: Library(answer),
        cudnn={"6.0.21": "/usr/local/cuda-8.0"},
    )
    assert ask("cudnn_version", machine)[0] == outcome


def test_nvcc_of_another_version_fails(tmp_path):
    machine = host(
        tmp_path, answers={str(tmp_path / "usr/local/cuda-8.0/bin/nvcc") + " --version": (0, "release 9.0, V9.0.176")}
    )
    (tmp_path / "usr/local/cuda-8.0/bin").mkdir(parents=True)
    assert ask("nvcc_version", machine)[0] == "FAIL"


def test_device_nodes_that_users_may_not_open_fail(tmp_path):
    nodes = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")
    machine = host(tmp_path, files={"/proc/driver/nvidia/version": RUNNING, **dict.fromkeys(nodes, "")})
    for mode, outcome in ((0o660, "FAIL"), (0o666, "PASS")):  # the second is what the driver itself sets
        for node in nodes:
            os.chmod(f"{tmp_path}{node}", mode)
        assert ask("device_nodes", machine)[0] == outcome


def test_a_yarn_container_is_asked_about_the_gpus_that_it_was_given(tmp_path, monkeypatch):
    one_of_two = {"nvidia-smi -L": (0, "GPU 0: Tesla T4 (UUID: GPU-0)\n")}
    machine = host(tmp_path, gpus=2, answers=one_of_two)
    assert ask("gpus_by_driver_as_declared", machine)[0] == "FAIL"  # on the host, one is missing
    monkeypatch.setenv("CONTAINER_ID", "container_e17_1410901177871_0001_01_000005")
    assert ask("gpus_by_driver_as_declared", machine) == ("PASS", "1 GPUs of its host's 2")
    assert ask("tensorflow_lists_gpus", with_tensorflow(machine, look(gpus=1)))[0] == "PASS"


def test_a_yarn_container_without_gpus_says_how_to_ask_for_them(tmp_path, monkeypatch):
    monkeypatch.setenv("CONTAINER_ID", "container_1410901177871_0001_01_000005")
    machine = host(tmp_path, answers={"nvidia-smi -L": (6, "No devices were found\n")})
    fails("gpus_by_driver_as_declared", machine, "This YARN container was given no GPU")


CDSW = "NVIDIA_GPU_ENABLE=true\nNVIDIA_LIBRARY_PATH=%s\n"
UNPACKAGED = (1, "package cloudera-data-science-workbench is not installed")


@pytest.mark.parametrize(
    ("settings", "release", "outcome", "words"),
    [
        (None, "1.4.0", "SKIP", "no host of CDSW"),
        ('NVIDIA_GPU_ENABLE=false\nNVIDIA_LIBRARY_PATH="/x"', "1.4.0", "SKIP", "NVIDIA_GPU_ENABLE is not true"),
        ("NVIDIA_GPU_ENABLE=true\n# NVIDIA_LIBRARY_PATH=/x", "1.4.0", "FAIL", "it is not set and has no libcuda.so"),
        ("NVIDIA_GPU_ENABLE=true\n", "1.10.5", "SKIP", "CDSW 1.10.5 finds the driver itself"),
        (CDSW % "/srv/driver/418.67", "1.7.2", "SKIP", "CDSW 1.7.2 finds the driver itself"),
        ("NVIDIA_GPU_ENABLE=true\n", None, "SKIP", "right from CDSW 1.6 on, required before"),
        (CDSW % "/srv/driver/535.104.05", "1.5.0", "PASS", "535.104.05 in /srv/driver/535.104.05"),
        (
            CDSW % '"/srv/driver/418.67" # the old one',
            None,
            "FAIL",
            "driver 535.104.05, the one that is installed; /srv/driver/418.67 has driver 418.67",
        ),
        (CDSW % "/srv/driver/none", "1.4.0", "FAIL", "/srv/driver/none has no libcuda.so"),
    ],
)
def test_the_setting_of_cdsw_has_to_name_the_installed_driver_up_to_1_5(tmp_path, settings, release, outcome, words):
    files = {f"/srv/driver/{version}/lib64/libcuda.so.{version}": "" for version in ("418.67", "535.104.05")}
    files["/usr/bin/rpm"] = ""
    package = (0, f"cloudera-data-science-workbench {release}-1\n") if release else UNPACKAGED
    if settings is not None:
        files["/etc/cdsw/config/cdsw.conf"] = settings
    machine = host(tmp_path, files=files, answers={"/usr/bin/rpm": package})
    check(ask("cdsw_hands_in_this_driver", machine), outcome, words)


def test_a_parcel_of_cdsw_has_its_settings_in_cloudera_manager(tmp_path):
    (tmp_path / "opt/cloudera/parcels/CDSW-1.7.2.p1.2066404").mkdir(parents=True)
    (tmp_path / "opt/cloudera/parcels/CDSW").symlink_to("CDSW-1.7.2.p1.2066404")
    answer = ("SKIP", "CDSW 1.7.2: Cloudera Manager has its settings")
    assert ask("cdsw_hands_in_this_driver", host(tmp_path)) == answer


def in_usr_local(root):
    """A machine whose driver is mounted in /usr/local/nvidia, and that shows no sign of a container."""
    names = ("libcuda.so", "libnvidia-ml.so")
    files = {f"/usr/local/nvidia/lib64/{name}.535.104.05": "" for name in names}
    answers = {"rpm": (1, ""), "ldconfig": (0, ""), "grubby": (1, "")}
    machine = host(root, answers=answers, files={**files, "/proc/driver/nvidia/version": RUNNING})
    for path in ("usr/bin/nvidia-smi", "usr/lib64/libcuda.so.535.104.05", f"boot/vmlinuz-{KERNEL}"):
        (root / path).unlink()
    for name in names:
        (root / f"usr/local/nvidia/lib64/{name}.1").symlink_to(f"{name}.535.104.05")
    return machine


def test_a_driver_in_usr_local_is_found_outside_of_containers(tmp_path, monkeypatch):
    machine = in_usr_local(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64")
    assert ask("versions_agree", machine) == ("PASS", "535.104.05")
    machine.expected["driver_min"] = "450.80.02"
    assert ask("driver_new_enough", machine) == ("PASS", "535.104.05 >= 450.80.02")
    assert ask("linker_finds_the_driver", machine)[0] == "PASS"
    assert ask("no_reboot_waits", machine) == ("PASS", "535.104.05")


def test_a_driver_that_no_process_finds_names_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    fails(
        "linker_finds_the_driver",
        in_usr_local(tmp_path),
        "Set LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64.",
    )


def test_a_question_that_breaks_hides_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(Host, "declared", lambda self: 1 / 0)
    fails("gpus_on_pci_as_declared", host(tmp_path), "gpu-check itself failed: ZeroDivisionError")
