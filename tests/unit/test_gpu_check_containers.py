"""gpu-check in an engine of CDSW and in other containers: another system than the host's, with some of its GPUs."""

import json
import os
import shutil

import gpu_check.driver
import pytest
from gpu_check.host import Host
from gpu_check_hosts import MISMATCH, RUNNING, Library, ask, check, fails, host, look, results, with_tensorflow
from trees import write

ENGINE = {"CDSW_ENGINE_ID": "abc123", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64"}
ENGINE_DRIVER = "/usr/local/nvidia/lib64"  # up to CDSW 1.5
LOADER = "/usr/lib/x86_64-linux-gnu"  # from CDSW 1.9
CELLS = {"index": "0", "gpu_bus_id": "00000000:3B:00.0", "gpu_recovery_action": "None"}
NO_COMMAND = {"nvidia-smi": (None, ""), "nvidia-smi -L": (None, "")}


@pytest.fixture
def engine(tmp_path, monkeypatch):
    """An engine of CDSW, of another system than its host, with one of its host's two GPUs."""
    for name in list(os.environ):
        if name.startswith(("CDSW_", "CUDA_", "NVIDIA_")) or name in ("LD_LIBRARY_PATH", "KUBERNETES_SERVICE_HOST"):
            monkeypatch.delenv(name)
    for name, value in ENGINE.items():
        monkeypatch.setenv(name, value)

    def engine(
        gpus=1, library="535.104.05", module="535.104.05", answers=None, loads=0, place=ENGINE_DRIVER, **expected
    ):
        files = {}
        for number in range(2):  # sysfs is the host's: it shows what was not handed in, too
            base = f"/sys/bus/pci/devices/{number}"
            files |= {f"{base}/vendor": "0x10de\n", f"{base}/class": "0x030200\n"}
        nodes = [*(f"nvidia{number}" for number in range(gpus)), *(["nvidiactl", "nvidia-uvm"] if gpus else [])]
        libraries = ("libcuda.so", "libnvidia-ml.so") if library else ()
        files |= {f"/dev/{name}": "" for name in nodes} | {f"{place}/{name}.{library}": "" for name in libraries}
        if module:
            files["/proc/driver/nvidia/version"] = RUNNING.replace("535.104.05", module)
        settings = {"gpu_count": "2", "driver": "535.104.05", "driver_min": "525.60.13", **expected}
        write(tmp_path, {**files, "/opt/deeplearning/etc/gpu-check.json": json.dumps(settings)})
        for name in libraries:
            (tmp_path / f"{place}/{name}.1".lstrip("/")).symlink_to(f"{name}.{library}")
        listing = "".join(f"GPU {number}: Tesla T4 (UUID: GPU-{number})\n" for number in range(gpus))
        outputs = {
            "nvidia-smi -L": (0, listing) if gpus else (6, "No devices were found"),
            "ldconfig": (0, ""),
            **(answers or {}),
        }

        def run(argv, seconds=None):
            if argv[1:] and argv[1].startswith("--query-gpu=") and "nvidia-smi" not in outputs:
                fields = argv[1].partition("=")[2].split(",")
                return 0, ", ".join(CELLS.get(field, "[N/A]") for field in fields) + "\n"
            return outputs.get(" ".join(argv[:2]), outputs.get(argv[0], (None, "")))

        def load(name):
            # As the loader: by LD_LIBRARY_PATH, then in its own directory.
            places = (*ENGINE["LD_LIBRARY_PATH"].split(":"), LOADER)
            if not any((tmp_path / f"{place}/{name}".lstrip("/")).exists() for place in places):
                raise OSError(f"{name}: cannot open shared object file")
            return Library(loads, gpus)

        return Host(str(tmp_path), run, load)

    return engine


ON_THE_HOST = (
    *(
        "gpus_on_pci_as_declared",
        "module_for_boot_kernel",
        "nouveau_absent",
        "persistence",
        "nvcc_version",
        "cuda_link",
    ),
    *("cdsw_hands_in_this_driver", "package_files", "xid", "fabric_manager", "topology", "no_reboot_waits"),
    *("dcgm_diagnosis", "dcgm_medium_diagnosis"),
)


@pytest.mark.parametrize("name", ON_THE_HOST)
def test_in_an_engine_what_only_the_host_knows_is_asked_there(engine, name):
    words = f"host-level check of this engine; run it on the host: /opt/deeplearning/bin/gpu-check {name}"
    assert ask(name, engine()) == ("SKIP", words)


def test_an_engine_that_is_well_passes_everything_else(engine):
    machine = with_tensorflow(engine(), look(), hidden=look("/device:CPU:0", gpus=0))
    checks = {check["name"]: check for check in results(machine, [])}
    assert {name for name, check in checks.items() if check["outcome"] == "FAIL"} == set(), checks
    skipped_names = {
        "linker_finds_cuda",
        "cudnn_version",
        "nccl_loads",
        "vgpu_licensed",
        "pcie_width",
    }  # its host has none
    assert {name for name, check in checks.items() if check["outcome"] == "SKIP"} == {*ON_THE_HOST, *skipped_names}
    assert checks["device_nodes"]["message"] == f"1 GPUs, open for uid {os.getuid()}"
    assert checks["versions_agree"]["message"] == "535.104.05"
    assert checks["tensorflow_lists_gpus"]["message"] == "1 GPUs"  # of its host's two


def test_an_engine_without_gpus_is_told_as_that(engine):
    none = (6, "No devices were found")
    machine = with_tensorflow(engine(gpus=0, answers={"nvidia-smi": none, "nvidia-smi -L": none}), look(gpus=0))
    words = "This engine was started without GPUs: no /dev/nvidia0 is here. Start a session with one or more"
    for name in ("device_nodes", "driver_runs", "tensorflow_lists_gpus", "tensorflow_computes_on_gpu"):
        fails(name, machine, words)
    assert "TensorFlow must list 2 GPUs but lists 0." in ask("tensorflow_lists_gpus", machine)[1]


@pytest.mark.parametrize("name", ["versions_agree", "driver_runs", "nvml_reachable", "tensorflow_lists_gpus"])
def test_a_driver_path_of_cdsw_that_was_left_behind_has_its_own_sentence(engine, name):
    machine = engine(library="470.82.01", answers={"nvidia-smi": MISMATCH, "nvidia-smi -L": MISMATCH}, loads=18)
    answer = ask(name, with_tensorflow(machine, look(gpus=0), "kernel version does not match DSO version"))
    place = "this engine has library 470.82.01 in /usr/local/nvidia/lib64, its host module 535.104.05."
    check(answer, "FAIL", place, "NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf", "still names the older")
    assert answer[1].count("NVIDIA_LIBRARY_PATH") == 1


def test_an_engine_from_cdsw_1_9_has_the_driver_where_the_loader_looks(engine, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH")
    machine = engine(place=LOADER)
    assert ask("versions_agree", machine) == ("PASS", "535.104.05")
    assert ask("linker_finds_the_driver", machine) == ("PASS", f"{LOADER}/libcuda.so.1, {LOADER}/libnvidia-ml.so.1")


def test_a_driver_without_its_soname_is_linked_as_cloudera_says(engine, tmp_path):
    machine = engine(place=LOADER)
    (tmp_path / f"{LOADER}/libcuda.so.1".lstrip("/")).unlink()
    path = f"{LOADER}/libcuda.so.535.104.05"
    fails("linker_finds_the_driver", machine, f"has the driver only as {path}. Link it: ln -s {path}")


def test_an_engine_from_cdsw_1_6_has_no_path_to_correct(engine):
    machine = engine(place=LOADER, library="470.82.01", answers={"nvidia-smi": MISMATCH, "nvidia-smi -L": MISMATCH})
    message = ask("versions_agree", machine)[1]
    assert f"this engine has library 470.82.01 in {LOADER}, its host module 535.104.05" in message
    assert "From CDSW 1.6 there is no path to correct" in message
    assert "NVIDIA_LIBRARY_PATH" not in message


def test_a_module_that_was_left_behind_needs_the_hosts_reboot(engine):
    message = ask("versions_agree", engine(module="470.82.01"))[1]
    assert "library 535.104.05" in message
    assert "The host still runs the older module: reboot it" in message


def test_a_driver_that_lies_where_nobody_looks_names_the_variable(engine, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_PATH")
    way_out = "Set LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64 (Admin > Engines"
    words = "does not search where it is, in /usr/local/nvidia/lib64"
    fails("linker_finds_the_driver", engine(), words, way_out)


def test_a_library_for_32_bits_is_passed_over_as_by_the_loader(engine, tmp_path):
    machine = engine()
    for name in ("libcuda.so.1", "libnvidia-ml.so.1"):
        (tmp_path / "usr/local/nvidia/lib").mkdir(exist_ok=True)
        (tmp_path / "usr/local/nvidia/lib" / name).write_bytes(b"\x7fELF\x01\x01")
    words = "/usr/local/nvidia/lib64/libcuda.so.1, /usr/local/nvidia/lib64/libnvidia-ml.so.1"
    assert ask("linker_finds_the_driver", machine) == ("PASS", words)


def test_a_library_whose_name_tells_no_version_is_no_verdict(engine, tmp_path):
    machine = engine(library=None)
    write(tmp_path, {f"{ENGINE_DRIVER}/libcuda.so.1": ""})
    for name in ("versions_agree", "driver_new_enough"):
        check(ask(name, machine), "SKIP", "libcuda.so.1 has no version; nvml_reachable checks")


def test_an_nvml_of_another_version_beside_the_driver_is_named_by_its_place(engine):
    message = ask("driver_runs", engine(answers={"nvidia-smi": MISMATCH}))[1]
    assert "of another version than the module 535.104.05" in message
    assert "in /usr/local/nvidia/lib64: remove that one" in message


def test_a_shell_on_a_host_of_cdsw_is_no_engine(tmp_path, monkeypatch):
    monkeypatch.setenv("CDSW_HOME", "/opt/cloudera")
    machine = host(tmp_path)
    assert (machine.contained(), machine.engine(), machine.place()) == (False, False, "host")


def test_an_engine_without_the_driver_names_the_setting(engine):
    machine = engine(library=None, answers=NO_COMMAND)
    words = "up to CDSW 1.5, NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf (or in Cloudera Manager) names no"
    for name in ("driver_runs", "versions_agree", "linker_finds_the_driver", "nvml_reachable", "driver_new_enough"):
        fails(name, machine, words, "from 1.6 there is no path to set")


def test_a_library_of_cuda_comes_with_the_image_or_a_mount(engine):
    words = "build what holds it into the image, or mount the host's /usr/local/cuda-X.Y"
    fails("linker_finds_cuda", engine(cuda=["10.0"]), words)


def test_devices_that_the_user_may_not_open_are_told_by_user(engine, monkeypatch):
    monkeypatch.setattr(gpu_check.driver.os, "access", lambda path, mode: not path.endswith("nvidia-uvm"))
    fails("device_nodes", engine(), f"This user (uid {os.getuid()}) must be able to read and write /dev/nvidia-uvm")


def test_other_containers_are_told_in_their_own_words(engine, tmp_path, monkeypatch):
    monkeypatch.delenv("CDSW_ENGINE_ID")
    machine = engine(gpus=0, library="470.82.01")
    assert not machine.contained(), "nothing says that this is a container"
    write(tmp_path, {"/.dockerenv": ""})
    assert machine.contained()
    assert "docker --gpus" in ask("device_nodes", machine)[1]
    assert "start a new one, or correct what mounts them" in ask("versions_agree", machine)[1]
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    assert not machine.contained(), "a container that booted systemd is a host of its own"


def test_a_copied_interpreter_without_its_library_is_told_as_that(engine, tmp_path):
    """virtualenv copies Python 2.7 and leaves most of its library where it is."""
    current = "/opt/deeplearning/current"
    write(tmp_path, {f"{current}/bin/python": "", f"{current}/lib/python2.7/orig-prefix.txt": "/usr"})
    machine = engine(answers={"env": (1, "ImportError: No module named json\n")})
    words = "made with Python 2.7 and requires it, with its library, at /usr/bin/python2.7; it is not here"
    for name in ("tensorflow_lists_gpus", "tensorflow_computes_on_cpu"):
        fails(name, machine, words)
    write(tmp_path, {"/usr/bin/python2.7": ""})
    assert "TensorFlow failed before it listed devices: ImportError" in ask("tensorflow_lists_gpus", machine)[1]


def test_an_engine_names_the_setting_of_its_image_when_the_python_is_missing(engine, tmp_path):
    directory = tmp_path / "opt/deeplearning/current/bin"
    directory.mkdir(parents=True)
    (directory / "python").symlink_to("/opt/no-such-place/bin/python2.7")
    write(tmp_path, {"/usr/bin/python3.11": "", "/usr/bin/python3.11-config": ""})
    message = ask("tensorflow_lists_gpus", engine())[1]
    assert "found /usr/bin/python3.11: this is another system than the host's" in message
    assert "engine images: Project Settings > Engine" in message


def test_an_engine_without_an_environment_is_told_to_mount_only_what_is_not_mounted(engine, tmp_path):
    machine = engine()
    words = "no environment is installed here (/opt/deeplearning/current/bin/python)"
    assert ask("tensorflow_lists_gpus", machine) == ("SKIP", words)
    shutil.rmtree(tmp_path / "opt")
    assert ask("tensorflow_lists_gpus", machine)[1].endswith("; mount /opt/deeplearning of its host")
