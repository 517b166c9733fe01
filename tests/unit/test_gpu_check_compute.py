"""gpu-check's questions that compute, and what it says where TensorFlow sees no GPU."""

import json
import os
import pwd
import stat
import subprocess
import sys
import time

import gpu_check.causes
import gpu_check.compute
import gpu_check.host
import pytest
from gpu_check import product
from gpu_check.product import ANSWER
from gpu_check_hosts import (
    NO_CUBLAS,
    NO_DRIVER,
    RUNNING,
    Library,
    ask,
    check,
    fails,
    host,
    look,
    results,
    with_tensorflow,
)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (look("/device:CPU:0"), "was computed on /device:CPU:0"),
        (look(value=[[0.0, 0.0], [0.0, 0.0]]), "it is [[0.0, 0.0]"),
        (look(value=None, error="CUBLAS_STATUS_NOT_INITIALIZED"), "CUBLAS_STATUS_NOT_INITIALIZED"),
        (look(gpus=0), "TensorFlow sees no GPU"),
        (None, "TensorFlow failed before it listed devices: Illegal instruction"),
    ],
)
def test_a_product_that_is_wrong_or_elsewhere_fails(tmp_path, answer, words):
    fails("tensorflow_computes_on_gpu", with_tensorflow(host(tmp_path), answer, "Illegal instruction"), words)


def test_gpus_that_are_seen_although_they_are_hidden_fail(tmp_path):
    machine = with_tensorflow(host(tmp_path), look(), hidden=look())
    fails("tensorflow_computes_on_cpu", machine, "GPUs are seen all the same")


def test_where_no_gpu_is_seen_there_is_nothing_to_hide(tmp_path):
    machine = with_tensorflow(host(tmp_path), look("/device:CPU:0", gpus=0))
    assert ask("tensorflow_computes_on_cpu", machine)[0] == "PASS"


MISSING = "W dso_loader.cc:55] Could not load dynamic library '%s'; dlerror: %s: cannot open shared object file\n"
TWO_MISSING = "".join(MISSING % (name, name) for name in ("libcudart.so.10.0", "libcudnn.so.7"))
OLD_DRIVER = "CUDA driver version is insufficient for CUDA runtime version"
OTHER_CUDNN = "Loaded runtime CuDNN library: 7.1.4 but source was compiled with: 7.4.1.  CuDNN"


@pytest.mark.parametrize(
    ("answer", "said", "words"),
    [
        ({}, TWO_MISSING, ["libcudart.so.10.0, libcudnn.so.7", "cuda_versions"]),
        ({}, "W gpu_device.cc:2256] Cannot dlopen some GPU libraries.", ["does not name them", "ldconfig -p"]),
        ({}, OLD_DRIVER, ["driver 535.104.05 is older", "upgrade_driver.yml"]),
        ({}, OTHER_CUDNN, ["cuDNN 7.1.4 is loaded", "7.4.1"]),
        ({"cuda_build": False}, "", ["CPU build", "deeplearning_request"]),
        ({}, "", ["No known cause", "TF_CPP_MIN_LOG_LEVEL=0"]),
    ],
)
def test_the_usual_causes_are_walked(tmp_path, answer, said, words):
    machine = with_tensorflow(host(tmp_path), look(gpus=0, **answer), said)
    fails("tensorflow_lists_gpus", machine, "TensorFlow must list 1 GPUs but lists 0. ", *words)


def test_an_environment_whose_python_is_of_another_system_is_told(tmp_path):
    machine = host(tmp_path)
    directory = tmp_path / "opt/deeplearning/current/bin"
    directory.mkdir(parents=True)
    (directory / "python").symlink_to("python2.7")
    (directory / "python2.7").symlink_to("/opt/no-such-place/bin/python2.7")
    words = "made with Python 2.7 and requires it, with its library, at /opt/no-such-place/bin/python2.7"
    fails("tensorflow_lists_gpus", machine, words, "another system", "deeplearning_request")


WHO = """
import json, os, sys
sys.stderr.write("could not load a library\\n")
print("GPU-CHECK-ANSWER " + json.dumps({
    "user": os.getuid(), "groups": os.getgroups(), "secret": os.environ.get("SECRET"), "level": os.environ["TF_CPP_MIN_LOG_LEVEL"]
}))
"""


@pytest.fixture
def foreign(open_directory, open_python, monkeypatch):
    """A host whose GPUs the group 4242 may open, and whose environment is foreign code."""
    monkeypatch.setenv("SECRET", "root's")
    machine = host(open_directory)
    machine.python, machine.program, machine.execute = "/python", WHO, gpu_check.host.execute
    (open_directory / "python").symlink_to(open_python)
    (open_directory / "dev").mkdir()
    for number in (0, 1):
        node = open_directory / f"dev/nvidia{number}"
        os.mknod(node, stat.S_IFCHR, os.makedev(195, number))
        node.chmod(0o660)
        os.chown(node, 0, 4242)
    return machine


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")


@needs_root
def test_root_asks_tensorflow_as_nobody_with_the_groups_of_the_gpus(foreign):
    uid = pwd.getpwnam("nobody").pw_uid
    expected = {"user": uid, "groups": [4242], "secret": None, "level": "1"}
    answer, printed = gpu_check.compute.tensorflow(foreign)
    assert answer == expected
    assert "could not load a library" in printed
    assert gpu_check.causes.devices(foreign) == []


@needs_root
def test_gpus_that_only_root_may_open_are_named(foreign):
    os.chown(f"{foreign.root}/dev/nvidia1", 0, 0)
    (sentence,) = gpu_check.causes.devices(foreign)
    assert sentence.startswith("Users may not open /dev/nvidia1: look at their rights (NVreg_DeviceFileMode)")


@needs_root
def test_in_a_container_its_user_asks_tensorflow(foreign, monkeypatch):
    monkeypatch.setattr(foreign, "contained", lambda: True)
    assert gpu_check.compute.tensorflow(foreign)[0]["user"] == 0


def test_a_container_without_devices_and_a_hiding_variable_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    machine = with_tensorflow(host(tmp_path, files={"/proc/driver/nvidia/version": RUNNING}), look(gpus=0))
    message = ask("tensorflow_lists_gpus", machine)[1]
    assert "CUDA_VISIBLE_DEVICES= hides the GPUs" in message
    assert "in a container its devices must be handed in" in message


def test_a_driver_that_does_not_run_comes_first(tmp_path):
    machine = with_tensorflow(host(tmp_path, answers={"nvidia-smi -L": NO_DRIVER}), look(gpus=0))
    assert "lists 0. The NVIDIA driver must run in the kernel" in ask("tensorflow_lists_gpus", machine)[1]


def test_tensorflow_is_asked_once_for_each_form(tmp_path):
    cpu_only = []
    machine = host(tmp_path, files={"/opt/deeplearning/current/bin/python": ""})
    old = machine.execute

    def execute(argv, seconds=None, groups=None):
        if argv[0] != "env":
            return old(argv)
        cpu_only.append("CUDA_VISIBLE_DEVICES=" in argv)
        place, gpus = ("/device:CPU:0", 0) if cpu_only[-1] else ("/device:GPU:0", 1)
        return 0, "a warning\n" + ANSWER + json.dumps(look(place, gpus))

    machine.execute = execute
    names = ["tensorflow_lists_gpus", "tensorflow_computes_on_gpu", "tensorflow_computes_on_cpu"]
    assert [check["outcome"] for check in results(machine, names)] == ["PASS"] * 3
    assert cpu_only == [False, True]


def test_an_import_error_of_tensorflow_1_names_the_library(tmp_path):
    message = ask("tensorflow_lists_gpus", with_tensorflow(host(tmp_path), None, NO_CUBLAS))[1]
    assert "It does not find libcublas.so.8.0: install what contains them" in message
    sentence = "TensorFlow failed before it listed devices: ImportError"
    assert f"{sentence}: libcublas.so.8.0: cannot open shared object file" in message


def test_a_convolution_that_fails_is_its_own_question(tmp_path):
    answer = look()
    answer["convolutions"]["TF 1"] = {"value": None, "places": [], "error": "Failed to get convolution algorithm."}
    machine = with_tensorflow(host(tmp_path), answer)
    assert ask("tensorflow_computes_on_gpu", machine)[0] == "PASS"
    fails("tensorflow_convolves_on_gpu", machine, "Failed to get convolution algorithm.")


LISTED = "GPU 0: H100 (UUID: GPU-0)\n  MIG 3g.40gb Device 0: (UUID: MIG-0)\nGPU 1: H100 (UUID: GPU-1)\n"
PART = "  MIG 3g.40gb Device 0: (UUID: MIG-1)\n"


@pytest.mark.parametrize(
    ("listed", "seen", "outcome", "words"),
    [
        (LISTED + PART, 1, "PASS", ""),
        (LISTED + PART, 0, "FAIL", ""),
        (LISTED, 1, "FAIL", "MIG is on for GPU 1, which has no parts"),
    ],
)
def test_a_process_sees_one_part_of_gpus_that_mig_divides(tmp_path, listed, seen, outcome, words):
    answers = {"nvidia-smi -L": (0, listed), "nvidia-smi": (0, "0, Enabled\n1, Enabled\n")}
    machine = with_tensorflow(host(tmp_path, gpus=2, answers=answers), look(gpus=seen))
    machine.named = ["tensorflow_lists_gpus"]
    check(ask("tensorflow_lists_gpus", machine), outcome, words)


CUDA = {"ldconfig": (0, "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1\n")}


@pytest.mark.parametrize(
    ("library", "outcome", "words"),
    [
        (Library(gpus=2), "PASS", "2 GPUs"),
        (Library(gpus=1), "FAIL", "CUDA must list 2 GPUs but lists 1. Run gpu-check gpus_by_driver_as_declared"),
        (Library(refused={"cuInit": 100}), "FAIL", "cuInit returned 100 (no GPU is visible"),
        (Library(refused={"cuInit": 802}), "FAIL", "gpu-check fabric_manager"),
        (Library(gpus=2, refused={"cuMemAlloc_v2": 2}), "FAIL", "GPU 0: cuMemAlloc_v2 returned 2 (out of memory"),
    ],
)
def test_cuda_copies_a_number_to_every_gpu_and_back(tmp_path, library, outcome, words):
    machine = host(tmp_path, gpus=2, answers=CUDA, load=lambda path: library)
    check(ask("cuda_computes", machine), outcome, words)


def test_a_number_that_comes_back_as_another_fails(tmp_path):
    library = Library()
    library.cuMemcpyDtoH_v2 = lambda *arguments: 0
    fails("cuda_computes", host(tmp_path, answers=CUDA, load=lambda path: library), "it returned 0 for")


def test_a_gpu_that_never_answers_ends_after_the_limit(tmp_path, monkeypatch):
    """A call that the kernel holds: the child is abandoned, gpu-check goes on."""
    library = Library()
    library.cuInit = lambda flags: time.sleep(60)
    monkeypatch.setattr(gpu_check.compute, "SLOW", 0.5)
    fails("cuda_computes", host(tmp_path, answers=CUDA, load=lambda path: library), "must answer within")


# As much of TensorFlow 1 as product.py calls. At the end it prints, for each session, whether memory grows.
FAKE_TENSORFLOW = """
import atexit, contextlib, os, types

sessions = []
atexit.register(lambda: print("SESSIONS", sessions, os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH")))
at_import = os.environ.get("TF_FORCE_GPU_ALLOW_GROWTH")
__version__, float32 = "1.15.0", "float"
test = types.SimpleNamespace(is_built_with_cuda=lambda: at_import == "true")
RunOptions = RunMetadata = lambda **options: types.SimpleNamespace(partition_graphs=[])
placeholder = lambda kind: types.SimpleNamespace(set_shape=lambda shape: None)
matmul = lambda left, right: None
device = contextlib.nullcontext
Graph = lambda: types.SimpleNamespace(as_default=contextlib.nullcontext)


class ConfigProto:
    def __init__(self, allow_soft_placement):
        self.gpu_options = types.SimpleNamespace(allow_growth=False)


class Session(contextlib.nullcontext):
    def __init__(self, config=None):
        sessions.append(bool(config and config.gpu_options.allow_growth))

    def __enter__(self):
        return self

    def list_devices(self):
        return []

    def run(self, *arguments):
        return types.SimpleNamespace(tolist=lambda: [[1.0]])
"""


def test_tensorflow_is_never_started_in_a_way_that_takes_all_memory(tmp_path):
    (tmp_path / "tensorflow.py").write_text(FAKE_TENSORFLOW)
    program = [sys.executable, product.__file__]
    environment = {"PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]}
    completed = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert "SESSIONS [True, True] true" in completed.stdout
    assert (
        json.loads(completed.stdout.partition(ANSWER)[2].splitlines()[0])["cuda_build"] is True
    )  # set before the import
