"""The nvidia-smi that the containers of a job find first: TensorFlowOnSpark's questions are answered with the executor's own GPUs.

TensorFlowOnSpark takes what nvidia-smi lists as free, whatever YARN gave. Version 1.4 starts it whenever TensorFlow was built with CUDA, also where there
is none (get_gpus in gpu_info.py of 1.4.4 and 2.2.5). All other questions go to the host's own.
"""

from __future__ import absolute_import, division, print_function

import os
import re
import subprocess
import sys

LIST = ["--list-gpus"]
BUSY = ["--format=csv,noheader,nounits", "--query-compute-apps=gpu_uuid"]
OWN = "gpus"  # beside this program: the indexes that discovery.py locked
PLACES = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin"  # of the host's, where PATH has none
LINE = "GPU %s: NVIDIA GPU (UUID: GPU-%s)"  # get_gpus reads the second and the sixth word, which is not the UUID with other names
# If no GPU is its own, version 1.4 gets indexes that hide all from CUDA, as many as a script may ask for: it then computes on the CPU, as a TensorFlow
# without CUDA does there. Later versions do so by themselves.
HIDES_ALL, MOST = "-1", 16


def of_host(program):
    """The host's own nvidia-smi; None without one."""
    for directory in (os.environ.get("PATH", "") + ":" + PLACES).split(":"):
        path = os.path.join(directory, "nvidia-smi")
        if os.access(path, os.X_OK) and not os.path.samefile(path, program):
            return path
    return None


def lists_none(path):
    """Whether that one says that there is no GPU, as in a container of YARN that was given none."""
    process = subprocess.Popen([path] + LIST, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return bool(re.match(r"No devices (?:were )?found", process.communicate()[0].decode("utf-8", "replace")))


def own_gpus(program, host_program):
    """Indexes of the executor's GPUs; None if the host's nvidia-smi decides, because the job said nothing about GPUs."""
    path = os.path.join(os.path.dirname(program), OWN)
    if os.path.exists(path):
        with open(path) as handle:
            return handle.read().split()
    leaves_it = "TFOS_GPUS" not in os.environ and host_program and not lists_none(host_program)
    return None if leaves_it else []


def main(program, version, arguments):
    host_program = of_host(program)
    gpus = own_gpus(program, host_program) if arguments in (LIST, BUSY) else None
    if gpus is None and host_program:
        os.execv(host_program, [host_program] + arguments)  # noqa: S606 (no shell is wanted)
    if gpus is None:
        return 127  # as the shell, if a command is missing
    if not gpus and version != "1":
        print("No devices were found")
        return 6
    if not gpus:
        sys.stderr.write(
            "tfos-submit: this executor has no GPU of its own (--gpus), so TensorFlow computes on the CPU.\n"
        )
    if arguments == LIST:
        print("\n".join(LINE % (index, index) for index in gpus or [HIDES_ALL] * MOST))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
