"""The GPUs of one executor. Spark runs this in the executor's container and reads {"name": "gpu", "addresses": ["0"]}.

A GPU counts if its device opens here and no other executor of this host holds its lock: if YARN isolates GPUs, the first
decides, else the second. A process of this file keeps the locks until the executor's JVM ends; the kernel releases them.
"""

from __future__ import absolute_import, division, print_function

import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

LIMIT = 60  # seconds for all of it: an nvidia-smi that hangs must not hold the job
PATIENCE = 20  # of them for GPUs that the executor before has not released yet
PLACES = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin"  # of nvidia-smi, where PATH has none
DEVICE = "/dev/nvidia%s"
# Recovery actions after which new work may start (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt).
USABLE = ("None", "N/A", "Not Supported", "Drain P2P")
NO_RESET = ("No", "N/A", "Not Supported", "Requested functionality has been deprecated")
OWN = "deeplearning-programs/gpus"  # the executor's GPUs, for the nvidia-smi beside it
# Seconds of a clock that nobody sets. Python 2.7 has no time.monotonic; times(2) counts from the start of the system as well.
clock = getattr(time, "monotonic", lambda: os.times()[4])


def device(gpu):
    """The device path of a GPU, or "" and why it is no GPU for a job: what nvidia-smi -x -q prints of one that is lost or waits for a reset."""
    minor = (gpu.findtext("minor_number") or "").strip()
    if not re.match(r"[0-9]{1,4}\Z", minor):
        return "", "has no minor number (%s)" % (minor or "nothing")
    action = (gpu.findtext("gpu_recovery_action") or "None").strip()
    if action not in USABLE:
        return "", "must be recovered first (%s)" % action
    reset = (gpu.findtext("gpu_reset_status/reset_required") or "No").strip()
    if reset not in NO_RESET:
        return "", "must be reset first (%s)" % reset
    return DEVICE % minor, None


def devices(text):
    """device() of the GPUs, in nvidia-smi's order, which is that of CUDA_DEVICE_ORDER=PCI_BUS_ID."""
    return [device(gpu) for gpu in ElementTree.fromstring(text).iter("gpu")]  # noqa: S314 (the driver's own answer)


def ask_driver():
    variables = dict(os.environ, PATH=os.environ.get("PATH", "") + ":" + PLACES)
    process = subprocess.Popen(["nvidia-smi", "-x", "-q"], stdout=subprocess.PIPE, env=variables)
    output = process.communicate()[0]
    if process.returncode:
        raise ValueError("nvidia-smi ended with status %d" % process.returncode)
    return output


def lock(path):
    """A descriptor that holds the GPU, or None and why not."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (IOError, OSError) as error:
        return None, "%s cannot be opened (%s)" % (path, os.strerror(error.errno))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (IOError, OSError) as error:
        os.close(descriptor)
        in_use = error.errno in (errno.EAGAIN, errno.EACCES)
        return None, "%s %s" % (path, "belongs to another executor" if in_use else os.strerror(error.errno))
    return descriptor, None


def take(found, number):
    """found: of devices(). Indexes and descriptors of so many GPUs, or no GPU at all; and why the others are not free."""
    gpus, reasons = [], []
    for index, (path, fault) in enumerate(found):
        if len(gpus) < number:
            descriptor, reason = (None, "GPU %d %s" % (index, fault)) if fault else lock(path)
            if reason:
                reasons.append(reason)
            else:
                gpus.append((index, descriptor))
    if len(gpus) < number:
        for _, descriptor in gpus:
            os.close(descriptor)
        gpus = []
    return gpus, reasons


def started(pid):
    """When a process started, in the kernel's ticks: with it a number that is used again is noticed. None: it ended."""
    try:
        with open("/proc/%d/stat" % pid) as handle:
            fields = handle.read().rpartition(")")[2].split()
    except (IOError, OSError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def hold(pid):
    """Keep the locks in a process of its own until this one ends. It stays in the container, and YARN ends it with it."""
    begin = started(pid)
    if os.fork():
        return
    silence = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):  # Spark reads this file's output to its end
        os.dup2(silence, descriptor)
    signal.alarm(0)
    while begin is not None and started(pid) == begin:
        time.sleep(0.5)
    os._exit(0)


def main(number, executor):
    """number: GPUs of the executor. executor: the process that they belong to."""
    signal.alarm(LIMIT)
    end = clock() + PATIENCE
    try:
        found = devices(ask_driver())
    except (IOError, OSError, ValueError, ElementTree.ParseError) as error:
        found, reasons = [], ["nvidia-smi gives no GPUs: %s" % error]
    else:
        gpus, reasons = take(found, number)
        while not gpus and len(found) >= number and clock() < end:
            time.sleep(1)
            gpus, reasons = take(found, number)
        if gpus:
            if os.path.isdir(os.path.dirname(OWN)):
                with open(OWN, "w") as output:
                    output.write(" ".join(str(index) for index, _ in gpus))
            hold(executor)
            print(json.dumps({"name": "gpu", "addresses": [str(index) for index, _ in gpus]}))
            return 0
    # Spark quotes its output in an error. What it says otherwise is in the log only where Spark logs more than warnings.
    sys.stdout.write(
        "tfos-gpus: %d GPU%s required on %s, but nvidia-smi lists %d here%s.\n"
        % (
            number,
            " is" if number == 1 else "s are",
            socket.gethostname(),
            len(found),
            "".join("; " + reason for reason in reasons),
        )
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(int(os.environ["TFOS_GPUS"]), os.getppid()))
