"""gpu-check as a data scientist runs it in an engine of CDSW: another system than the host's, another user, /opt/deeplearning only to read.

The engine is a container of Debian's image with the settings that an engine of CDSW 1.1 to 1.5 has (from 1.9 the driver is in /usr/lib/x86_64-linux-gnu:
tests/unit/test_gpu_check_containers.py); its GPUs are the demo's stand-in
nvidia-smi, the driver's libraries small ones that load and answer a number, the module's version a file. There are no
devices, so TensorFlow must not see a GPU, and the answer says why.
"""

import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hadoop_dl.data import programs
from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.shell import run

DRIVER, OLDER = "418.67", "410.104"  # the stand-in's own, and the one before it
USER = "8536:8536"  # cdsw
STAND_IN = images.DATA / "gpu/files/nvidia-smi"
ENVIRONMENT = {
    "CDSW_ENGINE_ID": "engine",
    "HOME": "/home/cdsw",
    "LD_LIBRARY_PATH": "/usr/local/nvidia/lib:/usr/local/nvidia/lib64",
    "NVIDIA_SMI_STAND_IN": "/usr/local/nvidia/nvidia-smi-stand-in.json",
}
# Only root of a container may put a file under /proc, where the kernel module of a real host tells its version.
MODULE = (
    "mount -t tmpfs none /proc/driver && mkdir /proc/driver/nvidia && "
    f"echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Sun Apr  7' > /proc/driver/nvidia/version"
)
MISMATCH = "#!/bin/sh\necho 'Failed to initialize NVML: Driver/library version mismatch'\nexit 18\n"

WITHOUT_GPUS = "This engine was started without GPUs: no /dev/nvidia0 is here."
NO_PYTHON = (
    "TensorFlow's environment was made with Python 2.7 and requires it, with its library, at /usr/bin/python2.7; "
    "it is not here, found /usr/bin/python3.11: this is another system than the host's."
)
CPU_BUILD = "This is TensorFlow's CPU build: "
# By the system of the demo's nodes: the engine's has RHEL 9's Python, and not RHEL 7's. The stack for el9 is one for the CPU.
TENSORFLOW = {
    "el9": {
        "tensorflow_lists_gpus": ("FAIL", f"TensorFlow must list 2 GPUs but lists 0. {CPU_BUILD}"),
        "tensorflow_computes_on_gpu": (
            "FAIL",
            f"The product must be computed on GPU:0, but TensorFlow sees no GPU. {CPU_BUILD}",
        ),
        "tensorflow_convolves_on_gpu": (
            "FAIL",
            f"The convolution must be computed on GPU:0, but TensorFlow sees no GPU. {CPU_BUILD}",
        ),
        "tensorflow_computes_on_cpu": ("PASS", "TF 1, TF 2"),
    },
    "el7": {
        "tensorflow_lists_gpus": ("FAIL", NO_PYTHON),
        "tensorflow_computes_on_gpu": ("FAIL", NO_PYTHON),
        "tensorflow_convolves_on_gpu": ("FAIL", NO_PYTHON),
        "tensorflow_computes_on_cpu": ("FAIL", NO_PYTHON),
    },
}


def docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    return run("docker", *arguments, check=check)


def driver_directory(root: Path, version: str) -> Path:
    """What NVIDIA_LIBRARY_PATH names on a host: the driver's files of one version."""
    target = root / version
    for name in ("bin", "lib64"):
        (target / name).mkdir(parents=True)
    shutil.copy(STAND_IN, target / "bin")
    shutil.copy(images.DATA / "fixtures/nvidia-smi/nvidia-smi-stand-in.json", target)
    no_device, answer = "cuInit=100", "nvmlInit_v2=0"
    if version != DRIVER:
        (target / "bin" / "nvidia-smi").write_text(MISMATCH, encoding="utf-8")
        no_device, answer = "cuInit=803", "nvmlInit_v2=18"
    for name, function in (("libcuda.so", no_device), ("libnvidia-ml.so", answer)):
        library = target / "lib64" / f"{name}.{version}"
        elf = images.REPOSITORY / "demo/gpu/files/elf.py"
        subprocess.run([sys.executable, str(elf), "library", str(library), f"{name}.1", function], check=True)
        (target / "lib64" / f"{name}.1").symlink_to(library.name)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755)
    return target


def files_of_the_gpu_layer() -> bytes:
    """What the role gpu_check installs on a host with a driver; the demo's nodes have none."""
    expected = {"gpu_count": "2", "driver": DRIVER, "persistence": True}
    content = {
        "bin/gpu-check": programs.pack(images.REPOSITORY / "roles/gpu_check/files/gpu-check"),
        "etc/gpu-check.json": json.dumps(expected).encode(),
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(f"deeplearning/{name}")
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


@pytest.fixture(scope="module")
def mounted(cluster) -> Iterator[str]:
    """A container that is never started and owns a volume: a copy of a data node's /opt/deeplearning, to be mounted."""
    name = f"{cluster.name}-deeplearning"
    docker("rm", "--force", "--volumes", name, check=False)  # of a run that was killed
    label = f"{nodes.LABEL}={cluster.name}"  # scripts/demo down removes it with the cluster
    docker("create", "--name", name, "--label", label, "--volume", "/opt/deeplearning", images.ensure("debian12"))
    try:
        source = subprocess.Popen(
            ["docker", "cp", f"{cluster.container('data1')}:/opt/deeplearning", "-"], stdout=subprocess.PIPE
        )
        subprocess.run(["docker", "cp", "-", f"{name}:/opt"], stdin=source.stdout, check=True)
        assert source.wait() == 0
        subprocess.run(["docker", "cp", "-", f"{name}:/opt"], input=files_of_the_gpu_layer(), check=True)
        yield name
    finally:
        docker("rm", "--force", "--volumes", name)


@contextmanager
def engine_with(cluster, mounted: str, driver: Path) -> Iterator[str]:
    name = f"{cluster.name}-engine-{driver.name}"
    docker("rm", "--force", name, check=False)
    docker(
        *("run", "--detach", "--name", name, "--label", f"{nodes.LABEL}={cluster.name}", "--network", "none"),
        *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"),
        *("--volumes-from", f"{mounted}:ro", "--volume", f"{driver}:/usr/local/nvidia:ro"),
        *("--tmpfs", "/home/cdsw:uid=8536,gid=8536"),
        *(word for key, value in ENVIRONMENT.items() for word in ("--env", f"{key}={value}")),
        *(images.ensure("debian12"), "sleep", "infinity"),
    )
    try:
        docker("exec", name, "sh", "-c", MODULE)
        yield name
    finally:
        docker("rm", "--force", name)


def ask(engine: str, *questions: str) -> tuple[int, dict[str, tuple[str, str]]]:
    completed = docker(
        "exec", "--user", USER, engine, "/opt/deeplearning/bin/gpu-check", "--json", *questions, check=False
    )
    assert completed.returncode in (0, 1), completed.stdout + completed.stderr
    return completed.returncode, {
        answer["name"]: (answer["outcome"], answer["message"]) for answer in json.loads(completed.stdout)
    }


@pytest.fixture(scope="module")
def engine(cluster, mounted, tmp_path_factory) -> Iterator[str]:
    directory = driver_directory(tmp_path_factory.mktemp("nvidia_driver"), DRIVER)
    with engine_with(cluster, mounted, directory) as name:
        yield name


@pytest.fixture(scope="module")
def asked(engine) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit status, and every answer."""
    return ask(engine)


def test_it_is_asked_as_in_an_engine(engine, shell):
    command = "id -u; . /etc/os-release; echo $ID; touch /opt/deeplearning/bin/x 2>&1; command -v nvidia-smi rpm dkms || echo none"
    user, system, error, paths = docker("exec", "--user", USER, engine, "sh", "-c", command).stdout.splitlines()
    assert user == "8536"
    assert "Read-only file system" in error
    assert paths == "none"
    assert system not in shell("data1", ". /etc/os-release; echo $ID $ID_LIKE")[1].split()


@pytest.mark.parametrize(
    "question",
    [
        *("gpus_on_pci_as_declared", "module_for_boot_kernel", "nouveau_absent", "persistence", "nvcc_version"),
        *("cdsw_hands_in_this_driver", "cuda_link", "xid", "fabric_manager", "no_reboot_waits"),
    ],
)
def test_what_only_the_host_knows_is_asked_there(asked, question):
    words = f"host-level check of this engine; run it on the host: /opt/deeplearning/bin/gpu-check {question}"
    assert asked[1][question] == ("SKIP", words)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("gpus_by_driver_as_declared", "2 GPUs"),
        ("driver_runs", "it answers"),
        ("versions_agree", DRIVER),
        ("linker_finds_the_driver", "/usr/local/nvidia/lib64/libcuda.so.1, /usr/local/nvidia/lib64/libnvidia-ml.so.1"),
        ("nvml_reachable", "it answers"),
        ("compute_mode", "GPU 0: Default; GPU 1: Default"),
    ],
)
def test_the_driver_that_was_handed_in_is_asked(asked, question, answer):
    assert asked[1][question] == ("PASS", answer)


def test_devices_that_were_not_handed_in_are_told(asked):
    outcome, message = asked[1]["device_nodes"]
    assert outcome == "FAIL"
    assert message.startswith(f"{WITHOUT_GPUS} Start a session with one or more")


def test_the_driver_is_asked_to_compute_without_tensorflow(asked):
    """The library is there and loads; it has no device."""
    outcome, message = asked[1]["cuda_computes"]
    assert outcome == "FAIL"
    assert message.startswith("CUDA must start but does not: cuInit returned 100 (no GPU is visible")
    assert WITHOUT_GPUS in message


@pytest.mark.parametrize("question", list(TENSORFLOW["el9"]))
def test_tensorflow_is_asked_in_the_engine(asked, cluster, question):
    outcome, words = TENSORFLOW[cluster.image][question]
    assert asked[1][question][0] == outcome, asked[1][question]
    assert asked[1][question][1].startswith(words)


def test_nothing_else_fails_and_the_exit_status_says_that_something_did(asked, cluster):
    expected_failures = {
        "device_nodes",
        "cuda_computes",
        *(name for name, (outcome, _) in TENSORFLOW[cluster.image].items() if outcome == "FAIL"),
    }
    assert {name for name, (outcome, _) in asked[1].items() if outcome == "FAIL"} == expected_failures
    assert asked[0] == 1


def test_a_driver_path_that_names_the_older_version_is_told_as_that(cluster, mounted, tmp_path):
    """The driver was upgraded on the host, NVIDIA_LIBRARY_PATH of cdsw.conf was not."""
    questions = ("versions_agree", "driver_runs", "gpus_by_driver_as_declared", "nvml_reachable")
    with engine_with(cluster, mounted, driver_directory(tmp_path, OLDER)) as name:
        status, answers = ask(name, *questions)
    assert status == 1
    words = f"this engine has library {OLDER} in /usr/local/nvidia/lib64, its host module {DRIVER}. The driver was changed on the host, and NVIDIA_LIBRARY_PATH in /etc/cdsw/config/cdsw.conf"
    for question in questions:
        assert answers[question][0] == "FAIL"
        assert words in answers[question][1]
