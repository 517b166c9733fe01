"""The self-test that stays on hosts: each answer of a host becomes PASS, SKIP, or a sentence that says what to do."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "roles" / "gpu_check" / "files" / "gpu_check.py"
spec = importlib.util.spec_from_file_location("gpu_check", SCRIPT)
gpu_check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpu_check)

KERNEL = "5.14.0-427.18.1.el9_4.x86_64"
NO_DRIVER = (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …\n")
MISMATCH = (18, "Failed to initialize NVML: Driver/library version mismatch\n")
RUNNING = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n"


class Library:
    def __init__(self, value):
        self.nvmlInit_v2 = self.cudnnGetVersion = lambda: value


def host(root, gpus=1, answers=None, files=None, load=lambda path: Library(0), **expected):
    files = {
        **(files or {}),
        "/run/systemd/system/here": "",  # booted: a host, not a container
        "/etc/redhat-release": "",
        "/usr/bin/nvidia-smi": "",
        "/usr/lib64/libcuda.so.535.104.05": "",
        f"/boot/vmlinuz-{KERNEL}": "",
        f"/lib/modules/{KERNEL}/extra/nvidia.ko": "",
        "/opt/deeplearning/etc/gpu-check.json": json.dumps(
            {"gpu_count": str(gpus), "driver": "535.104.05", **expected}
        ),
    }
    for number in range(gpus):
        files[f"/sys/bus/pci/devices/{number}/vendor"] = "0x10de\n"
        files[f"/sys/bus/pci/devices/{number}/class"] = "0x030200\n"
    for path, content in files.items():
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            target.write_text(content)
    known = {
        "uname": (0, KERNEL),
        "rpm": (0, "535.104.05"),
        "modinfo": (0, f"version: 535.104.05\nvermagic: {KERNEL} SMP\n"),
        "nvidia-smi -L": (0, "".join(f"GPU {n}: Tesla T4 (UUID: GPU-{n})\n" for n in range(gpus))),
        "dmesg": (0, "nothing"),
        **(answers or {}),
    }

    def run(argv):
        return known.get(" ".join(argv[:2]), known.get(argv[0], (None, "")))

    return gpu_check.Host(str(root), run, load)


def ask(name, machine):
    (one,) = gpu_check.results(machine, [name])
    return one["outcome"], one["message"]


def test_a_host_that_promises_no_gpu_skips(tmp_path):
    assert ask("driver_runs", host(tmp_path, gpus=0)) == ("SKIP", "this host is to have no GPU")


def test_a_promised_gpu_that_is_not_there_fails(tmp_path):
    outcome, message = ask("gpus_on_pci_as_declared", host(tmp_path, gpus=1, gpu_count="2"))
    assert outcome == "FAIL"
    assert "promises 2" in message
    assert "shows 1" in message
    assert "lspci" in message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NO_DRIVER, ["has to run in the kernel", "modprobe nvidia", "has the module 535.104.05"]),
        (MISMATCH, ["one version", "reboot the host"]),
        ((4, "Failed to initialize NVML: Insufficient Permissions"), ["/dev/nvidia*", "container"]),
        ((6, "No devices were found"), ["lspci -d 10de:"]),
        ((-9, ""), ["within 30 seconds", "Xid"]),
        ((None, ""), ["no such command", "playbooks/gpu.yml"]),
        ((255, "Unable to determine the device handle"), ["status 255", "Unable to determine"]),
    ],
)
def test_every_failure_of_nvidia_smi_becomes_its_own_sentence(tmp_path, answer, words):
    outcome, message = ask("driver_runs", host(tmp_path, answers={"nvidia-smi": answer}))
    assert outcome == "FAIL"
    for word in words:
        assert word in message


def test_a_module_for_another_kernel_is_told(tmp_path):
    machine = host(tmp_path, answers={"modinfo": (0, "version: 535.104.05\nvermagic: 5.14.0-1.el9.x86_64 SMP\n")})
    outcome, message = ask("module_for_boot_kernel", machine)
    assert outcome == "FAIL"
    assert "built for 5.14.0-1.el9.x86_64" in message
    assert "dkms install --force" in message


def test_a_boot_kernel_without_module_is_told_before_the_reboot(tmp_path):
    machine = host(tmp_path)
    (tmp_path / f"lib/modules/{KERNEL}/extra/nvidia.ko").unlink()
    outcome, message = ask("module_for_boot_kernel", machine)
    assert outcome == "FAIL"
    assert f"Kernel {KERNEL} starts at the next boot" in message


def test_versions_that_differ_are_listed(tmp_path):
    machine = host(tmp_path, files={"/proc/driver/nvidia/version": RUNNING.replace("535.104.05", "470.82.01")})
    outcome, message = ask("versions_agree", machine)
    assert outcome == "FAIL"
    assert "loaded module 470.82.01" in message
    assert "library 535.104.05" in message
    assert ask("no_reboot_waits", machine)[0] == "FAIL"


def test_versions_that_agree_pass(tmp_path):
    assert ask("versions_agree", host(tmp_path, files={"/proc/driver/nvidia/version": RUNNING})) == (
        "PASS",
        "535.104.05",
    )


def test_nouveau_fails(tmp_path):
    assert ask("nouveau_absent", host(tmp_path, files={"/proc/modules": "nouveau 123 0 - Live 0x0\n"}))[0] == "FAIL"


def test_an_old_driver_fails_for_its_stack(tmp_path):
    outcome, message = ask("driver_new_enough", host(tmp_path, driver_min="550.54"))
    assert outcome == "FAIL"
    assert "550.54 or newer, and 535.104.05" in message


def rows(*lines):
    return {"nvidia-smi": (0, "\n".join(lines) + "\n"), "nvidia-smi -L": (0, "GPU 0: T4 (UUID: x)\n")}


@pytest.mark.parametrize(
    ("name", "line", "outcome", "word"),
    [
        ("persistence", "0, Enabled", "PASS", "on"),
        ("persistence", "0, Disabled", "FAIL", "systemctl enable"),
        ("ecc_errors", "0, 0", "PASS", "GPU 0: 0"),
        ("ecc_errors", "0, 3", "FAIL", "replace the card"),
        ("ecc_errors", "0, [N/A]", "PASS", "N/A"),
        ("retired_pages", "0, Yes", "FAIL", "replace the card"),
        ("pcie_width", "0, 8, 16", "FAIL", "x8 of x16"),
        ("pcie_width", "0, 16, 16", "PASS", "full"),
    ],
)
def test_health(tmp_path, name, line, outcome, word):
    found = ask(name, host(tmp_path, answers=rows(line)))
    assert found[0] == outcome
    assert word in found[1]


def test_an_xid_in_the_log_fails_with_its_number(tmp_path):
    outcome, message = ask(
        "xid", host(tmp_path, answers={"dmesg": (0, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")})
    )
    assert outcome == "FAIL"
    assert "79 at PCI:0000:3b:00" in message


@pytest.mark.parametrize(("status", "outcome"), [(0, "PASS"), (9, "FAIL"), (18, "FAIL")])
def test_nvml(tmp_path, status, outcome):
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


def test_a_wanted_toolkit_that_is_not_there_fails(tmp_path):
    outcome, message = ask("nvcc_version", host(tmp_path, cuda=["12.2"]))
    assert outcome == "FAIL"
    assert "/usr/local/cuda-12.2" in message


def test_nvcc_of_another_version_fails(tmp_path):
    machine = host(
        tmp_path, answers={str(tmp_path / "usr/local/cuda-8.0/bin/nvcc") + " --version": (0, "release 9.0, V9.0.176")}
    )
    (tmp_path / "usr/local/cuda-8.0/bin").mkdir(parents=True)
    assert ask("nvcc_version", machine)[0] == "FAIL"


def test_device_nodes_that_users_may_not_open_fail(tmp_path):
    machine = host(
        tmp_path,
        files={"/proc/driver/nvidia/version": RUNNING, "/dev/nvidia0": "", "/dev/nvidiactl": "", "/dev/nvidia-uvm": ""},
    )
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        os.chmod(tmp_path / "dev" / name, 0o660)
    assert ask("device_nodes", machine)[0] == "FAIL"
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        os.chmod(tmp_path / "dev" / name, 0o666)  # noqa: S103 (what the driver itself sets)
    assert ask("device_nodes", machine)[0] == "PASS"


@pytest.mark.parametrize("python", ["sh"])
def test_it_finds_its_python_and_tells_misuse(python):
    done = subprocess.run([python, str(SCRIPT), "--nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--nonsense" in done.stderr


def test_junit_is_xml_that_escapes(tmp_path):
    text = gpu_check.junit([{"name": "a", "question": "q", "outcome": "FAIL", "message": "1 < 2 & 3"}])
    assert "1 &lt; 2 &amp; 3" in text


RIGHT = [[22.0, 28.0], [49.0, 64.0]]


def look(place="/job:localhost/replica:0/task:0/device:GPU:0", gpus=1, value=RIGHT, error=None, cuda_build=True):
    """What TensorFlow answered, as gpu_check.TENSORFLOW gives it."""
    product = {"value": value, "places": [place], "error": error}
    return {"gpus": [f"/device:GPU:{n}" for n in range(gpus)], "cuda_build": cuda_build, "products": {"TF 1": product}}


def with_tensorflow(machine, answer, said="", hidden=None):
    machine.looks = {False: (answer, said)}
    if hidden is not None:
        machine.looks[True] = (hidden, "")
    return machine


def test_a_product_on_the_gpu_passes(tmp_path):
    machine = with_tensorflow(host(tmp_path), look(), hidden=look("/device:CPU:0", gpus=0))
    for name in ("tensorflow_lists_gpus", "tensorflow_computes_on_gpu", "tensorflow_computes_on_cpu"):
        assert ask(name, machine)[0] == "PASS"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (look("/device:CPU:0"), "was computed on /device:CPU:0"),
        (look(value=[[0.0, 0.0], [0.0, 0.0]]), "it is [[0.0, 0.0]"),
        (look(value=None, error="CUBLAS_STATUS_NOT_INITIALIZED"), "CUBLAS_STATUS_NOT_INITIALIZED"),
        (look(gpus=0), "TensorFlow sees no GPU"),
        (None, "TensorFlow did not come so far: Illegal instruction"),
    ],
)
def test_a_product_that_is_wrong_or_elsewhere_fails(tmp_path, answer, words):
    outcome, message = ask("tensorflow_computes_on_gpu", with_tensorflow(host(tmp_path), answer, "Illegal instruction"))
    assert outcome == "FAIL"
    assert words in message


def test_gpus_that_are_seen_although_they_are_hidden_fail(tmp_path):
    outcome, message = ask("tensorflow_computes_on_cpu", with_tensorflow(host(tmp_path), look(), hidden=look()))
    assert outcome == "FAIL"
    assert "GPUs are seen all the same" in message


def test_where_no_gpu_is_seen_there_is_nothing_to_hide(tmp_path):
    assert (
        ask("tensorflow_computes_on_cpu", with_tensorflow(host(tmp_path), look("/device:CPU:0", gpus=0)))[0] == "PASS"
    )


MISSING = "W dso_loader.cc:55] Could not load dynamic library '%s'; dlerror: %s: cannot open shared object file\n"


@pytest.mark.parametrize(
    ("answer", "said", "words"),
    [
        (
            {},
            MISSING % (("libcudart.so.10.0",) * 2) + MISSING % (("libcudnn.so.7",) * 2),
            ["libcudart.so.10.0, libcudnn.so.7", "cuda_versions"],
        ),
        ({}, "W gpu_device.cc:2256] Cannot dlopen some GPU libraries.", ["does not name them", "ldconfig -p"]),
        (
            {},
            "CUDA driver version is insufficient for CUDA runtime version",
            ["driver 535.104.05 is older", "upgrade_driver.yml"],
        ),
        (
            {},
            "Loaded runtime CuDNN library: 7.1.4 but source was compiled with: 7.4.1.  CuDNN",
            ["cuDNN 7.1.4 is loaded", "7.4.1"],
        ),
        ({"cuda_build": False}, "", ["CPU build", "deeplearning_request"]),
        ({}, "", ["None of the usual causes", "TF_CPP_MIN_LOG_LEVEL=0"]),
    ],
)
def test_the_usual_causes_are_walked(tmp_path, answer, said, words):
    machine = with_tensorflow(host(tmp_path), look(gpus=0, **answer), said)
    outcome, message = ask("tensorflow_lists_gpus", machine)
    assert outcome == "FAIL"
    assert message.startswith("TensorFlow has to list 1 GPUs, and lists 0. ")
    for word in words:
        assert word in message


def test_an_environment_whose_python_is_of_another_system_is_told(tmp_path):
    machine = host(tmp_path)
    directory = tmp_path / "opt/deeplearning/current/bin"
    directory.mkdir(parents=True)
    (directory / "python").symlink_to("python2.7")
    (directory / "python2.7").symlink_to("/opt/no-such-place/bin/python2.7")
    outcome, message = ask("tensorflow_lists_gpus", machine)
    assert outcome == "FAIL"
    assert "made with Python 2.7 and needs it, with its library, at /opt/no-such-place/bin/python2.7" in message
    assert "another system" in message
    assert "deeplearning_request" in message


def test_a_host_without_an_environment_skips_what_is_about_tensorflow(tmp_path):
    assert ask("tensorflow_lists_gpus", host(tmp_path))[0] == "SKIP"


def test_a_container_without_devices_and_a_hiding_variable_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine = with_tensorflow(host(tmp_path, files={"/proc/driver/nvidia/version": RUNNING}), look(gpus=0))
    message = ask("tensorflow_lists_gpus", machine)[1]
    assert "CUDA_VISIBLE_DEVICES= hides the GPUs" in message
    assert "in a container its devices have to be handed in" in message


def test_a_driver_that_does_not_run_comes_first(tmp_path):
    machine = with_tensorflow(host(tmp_path, answers={"nvidia-smi -L": NO_DRIVER}), look(gpus=0))
    assert "lists 0. The NVIDIA driver has to run in the kernel" in ask("tensorflow_lists_gpus", machine)[1]


def test_tensorflow_is_asked_once_for_each_form(tmp_path):
    asked = []
    machine = host(tmp_path, files={"/opt/deeplearning/current/bin/python": ""})
    old = machine.execute

    def execute(argv):
        if argv[0] != "env":
            return old(argv)
        asked.append("CUDA_VISIBLE_DEVICES=" in argv)
        place, gpus = ("/device:CPU:0", 0) if asked[-1] else ("/device:GPU:0", 1)
        return 0, "a warning\n" + gpu_check.ANSWER + json.dumps(look(place, gpus))

    machine.execute = execute
    names = ["tensorflow_lists_gpus", "tensorflow_computes_on_gpu", "tensorflow_computes_on_cpu"]
    assert [one["outcome"] for one in gpu_check.results(machine, names)] == ["PASS"] * 3
    assert asked == [False, True]


def test_without_an_environment_tensorflow_is_a_skip(tmp_path):
    assert ask("tensorflow_lists_gpus", host(tmp_path))[0] == "SKIP"


ENGINE = {"CDSW_ENGINE_ID": "abc123", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"}
ENGINE_DRIVER = "/usr/local/nvidia/lib64"
NO_COMMAND = {"nvidia-smi": (None, ""), "nvidia-smi -L": (None, "")}


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine of CDSW, of another system than its host, with one of its host's two GPUs."""
    for name in list(os.environ):
        if name.startswith(("CDSW_", "CUDA_", "NVIDIA_")) or name in ("LD_LIBRARY_PATH", "KUBERNETES_SERVICE_HOST"):
            monkeypatch.delenv(name)
    for name, value in ENGINE.items():
        monkeypatch.setenv(name, value)

    def engine(gpus=1, library="535.104.05", module="535.104.05", answers=None, loads=0, **expected):
        for number in range(2):  # sysfs is the host's: it shows what was not handed in, too
            write(tmp_path, f"/sys/bus/pci/devices/{number}/vendor", "0x10de\n")
            write(tmp_path, f"/sys/bus/pci/devices/{number}/class", "0x030200\n")
        for name in [*(f"nvidia{number}" for number in range(gpus)), *(["nvidiactl", "nvidia-uvm"] if gpus else [])]:
            write(tmp_path, f"/dev/{name}", "")
        if library:
            for name in ("libcuda.so", "libnvidia-ml.so"):
                write(tmp_path, f"{ENGINE_DRIVER}/{name}.{library}", "")
                (tmp_path / f"{ENGINE_DRIVER}/{name}.1".lstrip("/")).symlink_to(f"{name}.{library}")
        if module:
            write(tmp_path, "/proc/driver/nvidia/version", RUNNING.replace("535.104.05", module))
        wanted = {"gpu_count": "2", "driver": "535.104.05", "driver_min": "525.60.13", **expected}
        write(tmp_path, "/opt/deeplearning/etc/gpu-check.json", json.dumps(wanted))
        listed = "".join(f"GPU {number}: Tesla T4 (UUID: GPU-{number})\n" for number in range(gpus))
        known = {
            "nvidia-smi -L": (0, listed) if gpus else (6, "No devices were found"),
            "ldconfig": (0, ""),
            **(answers or {}),
        }

        def run(argv):
            if argv[1:] and argv[1].startswith("--query-gpu=") and "nvidia-smi" not in known:
                return 0, ", ".join("0" for _ in argv[1].split(",")) + "\n"
            return known.get(" ".join(argv[:2]), known.get(argv[0], (None, "")))

        def load(name):
            # As the loader: by LD_LIBRARY_PATH.
            if not any(
                (tmp_path / f"{one}/{name}".lstrip("/")).exists() for one in ENGINE["LD_LIBRARY_PATH"].split(":")
            ):
                raise OSError(f"{name}: cannot open shared object file")
            return Library(loads)

        return gpu_check.Host(str(tmp_path), run, load)

    return engine


def write(root, path, content):
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


ON_THE_HOST = (
    *(
        "gpus_on_pci_as_declared",
        "module_for_boot_kernel",
        "nouveau_absent",
        "persistence",
        "nvcc_version",
        "cuda_link",
    ),
    *("cdsw_hands_in_this_driver", "xid", "fabric_manager", "no_reboot_waits"),
)


@pytest.mark.parametrize("name", ON_THE_HOST)
def test_in_an_engine_what_only_the_host_knows_is_asked_there(engine, name):
    words = f"this is about the host of this engine, and is asked there: /opt/deeplearning/bin/gpu-check {name}"
    assert ask(name, engine()) == ("SKIP", words)


def test_an_engine_that_is_well_passes_everything_else(engine):
    machine = with_tensorflow(engine(), look(), hidden=look("/device:CPU:0", gpus=0))
    found = {one["name"]: one for one in gpu_check.results(machine, [])}
    assert {name for name, one in found.items() if one["outcome"] == "FAIL"} == set(), found
    skipped = {"linker_finds_cuda", "cudnn_version", "nccl_loads"}  # none is wanted on its host
    assert {name for name, one in found.items() if one["outcome"] == "SKIP"} == {*ON_THE_HOST, *skipped}
    assert found["device_nodes"]["message"] == f"1 GPUs, open for uid {os.getuid()}"
    assert found["versions_agree"]["message"] == "535.104.05"
    assert found["tensorflow_lists_gpus"]["message"] == "1 GPUs"  # of its host's two


def test_an_engine_without_gpus_is_told_as_that(engine):
    none = (6, "No devices were found")
    machine = with_tensorflow(engine(gpus=0, answers={"nvidia-smi": none, "nvidia-smi -L": none}), look(gpus=0))
    for name in ("device_nodes", "driver_runs", "tensorflow_lists_gpus", "tensorflow_computes_on_gpu"):
        outcome, message = ask(name, machine)
        assert outcome == "FAIL"
        assert (
            "This engine was started without GPUs: no /dev/nvidia0 is here. Start a session with one or more" in message
        )
    assert "TensorFlow has to list 2 GPUs, and lists 0." in ask("tensorflow_lists_gpus", machine)[1]


def test_an_engine_on_a_host_without_gpus_skips(engine):
    assert ask("tensorflow_lists_gpus", engine(gpus=0, gpu_count="0")) == ("SKIP", "this host is to have no GPU")


@pytest.mark.parametrize("name", ["versions_agree", "driver_runs", "nvml_reachable", "tensorflow_lists_gpus"])
def test_a_driver_path_of_cdsw_that_was_left_behind_has_its_own_sentence(engine, name):
    machine = engine(library="470.82.01", answers={"nvidia-smi": MISMATCH, "nvidia-smi -L": MISMATCH}, loads=18)
    outcome, message = ask(name, with_tensorflow(machine, look(gpus=0), "kernel version does not match DSO version"))
    assert outcome == "FAIL"
    for word in (
        "this engine has library 470.82.01 in /usr/local/nvidia/lib64, its host module 535.104.05.",
        "NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf",
        "still names the older",
    ):
        assert word in message
    assert message.count("NVIDIA_LIBRARY_PATH") == 1


def test_a_module_that_was_left_behind_needs_the_hosts_reboot(engine):
    message = ask("versions_agree", engine(module="470.82.01"))[1]
    assert "library 535.104.05" in message
    assert "The host still runs the older module: it has to be rebooted" in message


def test_a_driver_that_lies_where_nobody_looks_names_the_variable(engine, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH")
    outcome, message = ask("linker_finds_the_driver", engine())
    assert outcome == "FAIL"
    assert "does not look where it lies, in /usr/local/nvidia/lib64" in message
    assert "Set LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64 (Admin > Engines" in message


def test_a_library_for_32_bits_is_passed_over_as_by_the_loader(engine, tmp_path):
    machine = engine()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (tmp_path / "usr/local/nvidia/lib").mkdir(exist_ok=True)
        (tmp_path / "usr/local/nvidia/lib" / name).write_bytes(b"\x7fELF\x01\x01")
    words = "/usr/local/nvidia/lib64/libcuda.so.1, /usr/local/nvidia/lib64/libnvidia-ml.so.1"
    assert ask("linker_finds_the_driver", machine) == ("PASS", words)


def test_a_library_whose_name_tells_no_version_is_no_verdict(engine, tmp_path):
    machine = engine(library=None)
    write(tmp_path, f"{ENGINE_DRIVER}/libcuda.so.1", "")
    for name in ("versions_agree", "driver_new_enough"):
        outcome, message = ask(name, machine)
        assert outcome == "SKIP"
        assert "libcuda.so.1 tells no version; nvml_reachable asks" in message


def test_an_nvml_of_another_version_beside_the_driver_is_named_by_its_place(engine):
    message = ask("driver_runs", engine(answers={"nvidia-smi": MISMATCH}))[1]
    assert "of another version than the module 535.104.05" in message
    assert "in /usr/local/nvidia/lib64: that one has to go" in message


def test_a_shell_on_a_host_of_cdsw_is_no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("CDSW_HOME", "/opt/cloudera")
    machine = host(tmp_path)
    assert (machine.contained(), machine.engine(), machine.place()) == (False, False, "host")


def test_an_engine_without_the_driver_names_the_setting(engine):
    machine = engine(library=None, answers=NO_COMMAND)
    for name in ("driver_runs", "versions_agree", "linker_finds_the_driver", "nvml_reachable", "driver_new_enough"):
        outcome, message = ask(name, machine)
        assert outcome == "FAIL"
        assert "NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf names no directory with lib64" in message


def test_a_library_of_cuda_comes_with_the_image_or_a_mount(engine):
    outcome, message = ask("linker_finds_cuda", engine(cuda=["10.0"]))
    assert outcome == "FAIL"
    assert "build what holds it into the image, or mount the host's /usr/local/cuda-X.Y" in message


def test_devices_that_the_user_may_not_open_are_told_by_user(engine, monkeypatch):
    monkeypatch.setattr(gpu_check.os, "access", lambda path, mode: not path.endswith("nvidia-uvm"))
    outcome, message = ask("device_nodes", engine())
    assert outcome == "FAIL"
    assert f"This user (uid {os.getuid()}) needs to read and write /dev/nvidia-uvm" in message


def test_other_containers_are_told_in_their_own_words(engine, tmp_path, monkeypatch):
    monkeypatch.delenv("CDSW_ENGINE_ID")
    machine = engine(gpus=0, library="470.82.01")
    assert not machine.contained(), "nothing says that this is a container"
    write(tmp_path, "/.dockerenv", "")
    assert machine.contained()
    assert "docker --gpus" in ask("device_nodes", machine)[1]
    assert "start a new one, or correct what mounts them" in ask("versions_agree", machine)[1]
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert not machine.contained(), "a container that booted systemd is a host of its own"


def test_a_copied_interpreter_without_its_library_is_told_as_that(engine, tmp_path):
    """virtualenv copies Python 2.7 and leaves most of its library where it is."""
    write(tmp_path, "/opt/deeplearning/current/bin/python", "")
    write(tmp_path, "/opt/deeplearning/current/lib/python2.7/orig-prefix.txt", "/usr")
    machine = engine(answers={"env": (1, "ImportError: No module named json\n")})
    for name in ("tensorflow_lists_gpus", "tensorflow_computes_on_cpu"):
        outcome, message = ask(name, machine)
        assert outcome == "FAIL"
        assert "made with Python 2.7 and needs it, with its library, at /usr/bin/python2.7; it is not here" in message
    write(tmp_path, "/usr/bin/python2.7", "")
    assert "TensorFlow did not come so far: ImportError" in ask("tensorflow_lists_gpus", machine)[1]


def test_an_engine_names_the_setting_of_its_image_when_the_python_is_missing(engine, tmp_path):
    directory = tmp_path / "opt/deeplearning/current/bin"
    directory.mkdir(parents=True)
    (directory / "python").symlink_to("/opt/no-such-place/bin/python2.7")
    write(tmp_path, "/usr/bin/python3.11", "")
    write(tmp_path, "/usr/bin/python3.11-config", "")
    message = ask("tensorflow_lists_gpus", engine())[1]
    assert "found /usr/bin/python3.11: this is another system than the host's" in message
    assert "engine images: Project Settings > Engine" in message


def test_an_answer_of_nvidia_smi_that_does_not_fit_the_question_fails(tmp_path):
    outcome, message = ask("pcie_width", host(tmp_path, answers=rows("Field pcie.link is not valid")))
    assert outcome == "FAIL"
    assert "Field pcie.link is not valid" in message


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
    outcome, message = ask("gpus_by_driver_as_declared", machine)
    assert outcome == "FAIL"
    assert "This YARN container was given no GPU" in message


CDSW = "NVIDIA_GPU_ENABLE=true\nNVIDIA_LIBRARY_PATH=%s\n"


@pytest.mark.parametrize(
    ("settings", "outcome", "words"),
    [
        (None, "SKIP", "no host of CDSW"),
        ('NVIDIA_GPU_ENABLE=false\nNVIDIA_LIBRARY_PATH="/var/lib/nvidia"', "SKIP", "NVIDIA_GPU_ENABLE is not true"),
        ("NVIDIA_GPU_ENABLE=true\n# NVIDIA_LIBRARY_PATH=/x", "SKIP", "NVIDIA_LIBRARY_PATH is not set"),
        (CDSW % "/srv/driver/535.104.05", "PASS", "535.104.05 in /srv/driver/535.104.05"),
        (
            CDSW % '"/srv/driver/418.67" # the old one',
            "FAIL",
            "driver 535.104.05, the one that is installed; /srv/driver/418.67 has driver 418.67",
        ),
        (CDSW % "/srv/driver/none", "FAIL", "/srv/driver/none has no libcuda.so"),
    ],
)
def test_the_setting_of_cdsw_has_to_name_the_installed_driver(tmp_path, settings, outcome, words):
    files = {f"/srv/driver/{version}/lib64/libcuda.so.{version}": "" for version in ("418.67", "535.104.05")}
    if settings is not None:
        files["/etc/cdsw/config/cdsw.conf"] = settings
    found = ask("cdsw_hands_in_this_driver", host(tmp_path, files=files))
    assert found[0] == outcome
    assert words in found[1]
