# -*- coding: utf-8 -*-
"""Why TensorFlow does not see GPUs that are there, or fails before it looks for them."""

import os
import re

from gpu_check.sentences import how_to_install, no_gpus, no_library, smi_problem, two_versions


def last_error(output):
    """The line of a traceback that names the error; TensorFlow 1 prints advice below it."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt): ", line)]
    return ((errors or lines or ["it printed nothing"])[-1])[:300]


def missing_libraries(host, output):
    """Sentences about libraries that TensorFlow names, or does not name."""
    missing = set(re.findall(r"Could not load dynamic library '([^']+)'", output))
    missing |= set(re.findall(r"ImportError: (lib\S+): cannot open shared object file", output))
    if host.contained():
        missing = set(name for name in missing if not name.startswith("libcuda.so"))  # the driver's, reported before
    if missing:
        words = "It does not find %s: " + how_to_install(
            host,
            "install what contains them (cuda_versions, cudnn_versions; libcuda.so.1 is the driver's) and run ldconfig.",
        )
        return [words % ", ".join(sorted(missing))]
    if "Cannot dlopen some GPU libraries" in output:
        return [
            "It does not find some GPU libraries and does not name them: "
            + how_to_install(host, "compare its CUDA with ldconfig -p | grep -e cudart -e cudnn -e cublas.")
        ]
    return []


def versions(host, output):
    """Sentences about versions that do not go together."""
    texts = []
    if "driver version is insufficient" in output:
        texts.append(
            "The driver %s is older than its CUDA requires: playbooks/upgrade_driver.yml."
            % (host.library() or "of this host")
        )
    for loaded, built in sorted(
        set(re.findall(r"Loaded runtime CuDNN library: (\S+) but source was compiled with: (\S+?)\.?\s", output))
    ):
        texts.append("cuDNN %s is loaded, and it was compiled with %s: correct cudnn_versions." % (loaded, built))
    return texts


def may_open(host, path, status):
    """Whether the user who asks may; if root asks, whether users may, or a group of theirs."""
    if not host.gives_up_root():
        return os.access(host.root + path, os.R_OK | os.W_OK)
    return status.st_mode & 0o006 == 0o006 or (status.st_gid != 0 and status.st_mode & 0o060 == 0o060)


def devices(host):
    """Sentences about device nodes, MIG and variables that hide GPUs."""
    texts = []
    nodes = host.nodes()
    closed = [path for path, status in nodes if not may_open(host, path, status)]
    if closed:
        texts.append(
            "%s may not open %s: look at their rights (NVreg_DeviceFileMode), and at the container's device rules."
            % ("Users" if host.gives_up_root() else "This user", ", ".join(closed))
        )
    bare = host.undivided()
    if bare:
        texts.append(
            "MIG is on for GPU %s, which has no parts, so that CUDA finds nothing there: make some (nvidia-smi mig -cgi …), or turn it off (nvidia-smi -i %s -mig 0)."
            % (", ".join(bare), ",".join(bare))
        )
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        if os.environ.get(name) in ("", "-1", "none", "void"):
            texts.append("%s=%s hides the GPUs from this process." % (name, os.environ[name]))
    if host.contained() and not nodes:
        texts.append(no_gpus(host))
    elif host.loaded() and not nodes:
        texts.append(
            "The driver runs but /dev/nvidia* are missing: in a container its devices must be handed in (YARN's GPU plugin, CDSW's GPU setting, docker --gpus); outside, nvidia-modprobe -c 0 -u."
        )
    return texts


def causes(host, look, tensorflow_output):
    """The usual causes in the order in which they hide each other."""
    texts = []
    status, output = host.run("nvidia-smi", "-L")
    if status != 0:
        texts.append(smi_problem(host, status, output))
    if look and not look["cuda_build"]:
        texts.append(
            "This is TensorFlow's CPU build: request a stack without -cpu- in its name (deeplearning_request)."
        )
    if host.contained() and status == 0:
        if not host.reached("libcuda.so.1"):
            texts.append(no_library(host, "libcuda.so.1"))
        elif host.loaded() and two_versions(host):
            texts.append(two_versions(host))
    texts += missing_libraries(host, tensorflow_output) + versions(host, tensorflow_output) + devices(host)
    if look is None:
        texts.append("TensorFlow failed before it listed devices: %s" % last_error(tensorflow_output))
    return " ".join(
        texts or ["No known cause was detected: import TensorFlow with TF_CPP_MIN_LOG_LEVEL=0 and read what it prints."]
    )
