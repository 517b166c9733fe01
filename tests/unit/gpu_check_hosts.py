"""Hosts, engines and answers of TensorFlow for the tests of gpu-check."""

import json

import cuda_stand_in
import trees
from gpu_check.cli import results
from gpu_check.compute import CONVOLUTION, PRODUCT
from gpu_check.host import Host

KERNEL = "5.14.0-427.18.1.el9_4.x86_64"
NO_DRIVER = (9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure …\n")
MISMATCH = (18, "Failed to initialize NVML: Driver/library version mismatch\n")
RUNNING = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n"


class Library:
    """NVML and cuDNN that return this value, and CUDA; `refused` are calls of it that return another status."""

    def __init__(self, value=0, gpus=1, refused=None):
        self.nvmlInit_v2 = self.cudnnGetVersion = lambda: value
        self.cuda = cuda_stand_in.Cuda(cuda_stand_in.cards(gpus), refused)

    def __getattr__(self, name):
        return getattr(self.cuda, name)


def host(root, gpus=1, answers=None, files=None, load=lambda path: Library(0), **expected):
    expectations = {"gpu_count": str(gpus), "driver": "535.104.05", **expected}
    files = {
        **(files or {}),
        "/run/systemd/system/here": "",  # booted: a host, not a container
        "/etc/redhat-release": "",
        "/usr/bin/nvidia-smi": "",
        "/usr/lib64/libcuda.so.535.104.05": "",
        f"/boot/vmlinuz-{KERNEL}": "",
        f"/lib/modules/{KERNEL}/extra/nvidia.ko": "",
        "/opt/deeplearning/etc/gpu-check.json": json.dumps(expectations),
    }
    for number in range(gpus):
        files[f"/sys/bus/pci/devices/{number}/vendor"] = "0x10de\n"
        files[f"/sys/bus/pci/devices/{number}/class"] = "0x030200\n"
    trees.write(root, files)
    command_answers = {
        "uname": (0, KERNEL),
        "rpm": (0, "535.104.05"),
        "modinfo": (0, f"version: 535.104.05\nvermagic: {KERNEL} SMP\n"),
        "nvidia-smi -L": (0, "".join(f"GPU {n}: Tesla T4 (UUID: GPU-{n})\n" for n in range(gpus))),
        "dmesg": (0, "nothing"),
        **(answers or {}),
    }

    def run(argv, seconds=None, groups=None):
        return command_answers.get(" ".join(argv[:2]), command_answers.get(argv[0], (None, "")))

    return Host(str(root), run, load)


def ask(name, machine):
    (answer,) = results(machine, [name])
    return answer["outcome"], answer["message"]


def check(answer, expected, *words):
    """Check the outcome of an answer, and that its message has these words."""
    outcome, message = answer
    assert outcome == expected, message
    for word in words:
        assert word in message, message


def fails(name, machine, *words):
    """Check that the question fails, and that its message has these words."""
    check(ask(name, machine), "FAIL", *words)


def look(place="/job:localhost/replica:0/task:0/device:GPU:0", gpus=1, value=PRODUCT, error=None, cuda_build=True):
    """What TensorFlow answered, as product.py prints it."""
    product = {"value": value, "places": [place], "error": error}
    convolution = {"value": CONVOLUTION, "places": [place], "error": None}
    return {
        "gpus": [f"/device:GPU:{n}" for n in range(gpus)],
        "cuda_build": cuda_build,
        "products": {"TF 1": product},
        "convolutions": {"TF 1": convolution},
    }


def with_tensorflow(machine, answer, said="", hidden=None):
    machine.looks = {False: (answer, said)}
    if hidden is not None:
        machine.looks[True] = (hidden, "")
    return machine


# What importing TensorFlow 1.4 says on a host without CUDA 8.0's libraries (its own text, shortened in the middle).
NO_CUBLAS = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
ImportError: libcublas.so.8.0: cannot open shared object file: No such file or directory


Failed to load the native TensorFlow runtime.

See https://www.tensorflow.org/install/install_sources#common_installation_problems

for some common reasons and solutions.  Include the entire stack trace
above this error message when asking for help.
"""
