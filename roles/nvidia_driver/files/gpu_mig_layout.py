#!/bin/sh
# Finds a Python for the script that follows: RHEL 7 has 2.7, RHEL 8 keeps one in libexec.
# fmt: off
''''exec "$(for p in /usr/bin/python3 /usr/libexec/platform-python /usr/bin/python2.7 /usr/bin/python; do [ -x $p ] && echo $p && break; done)" "$0" "$@" # '''
# fmt: on

"""Make the MIG instances of /opt/deeplearning/etc/mig-layout.json. Prints `changed` when it changed something.

Refuses while a process uses a GPU whose layout would change. Exit status 0: as written; 1: not, and the text says why.
"""

import json
import re
import subprocess
import sys

LAYOUT = "/opt/deeplearning/etc/mig-layout.json"


class Problem(Exception):
    pass


def smi(*arguments):
    """Status and output of nvidia-smi."""
    process = subprocess.Popen(("nvidia-smi",) + arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.communicate()[0].decode("utf-8", "replace")
    return process.returncode, output


def must(*arguments):
    status, output = smi(*arguments)
    if status != 0:
        raise Problem("nvidia-smi %s ended with status %d: %s" % (" ".join(arguments), status, output.strip()))
    return output


def mode(gpu):
    return must("-i", gpu, "--query-gpu=mig.mode.current", "--format=csv,noheader").strip()


def profiles(gpu):
    """Names of the instances that are there, such as 3g.20gb."""
    status, output = smi("mig", "-i", gpu, "-lgi")
    return re.findall(r"MIG\s+(\d+g\.\d+gb(?:\+\S+)?)", output) if status == 0 else []


def busy(gpu):
    answer = must("-i", gpu, "--query-compute-apps=pid,process_name", "--format=csv,noheader")
    return [line for line in answer.splitlines() if line.strip() and "No running" not in line]


def lay_out(gpu, wanted):
    """True when something changed."""
    if mode(gpu) == "[N/A]":
        raise Problem(
            "GPU %s has to be able to do MIG for this layout, and it is not. Take it out of nvidia_driver_mig_layout."
            % gpu
        )
    if mode(gpu) == "Enabled" and sorted(profiles(gpu)) == sorted(wanted):
        return False
    if busy(gpu):
        raise Problem(
            "GPU %s has to be idle for its layout to change, and these use it: %s. Let them end."
            % (gpu, "; ".join(busy(gpu)))
        )
    if mode(gpu) != "Enabled":
        must("-i", gpu, "-mig", "1")
    if profiles(gpu):
        smi("mig", "-i", gpu, "-dci")  # fails where there is no compute instance, which is fine
        must("mig", "-i", gpu, "-dgi")
    if wanted:
        must("mig", "-i", gpu, "-cgi", ",".join(wanted), "-C")
    if mode(gpu) != "Enabled" or sorted(profiles(gpu)) != sorted(wanted):
        raise Problem(
            "GPU %s has to have %s, and has %s. A reset may be pending: nvidia-smi -i %s --gpu-reset, or a reboot."
            % (gpu, wanted, profiles(gpu), gpu)
        )
    return True


def main():
    with open(LAYOUT) as handle:
        layout = json.load(handle)
    try:
        changed = [entry["gpu"] for entry in layout if lay_out(str(entry["gpu"]), entry["profiles"])]
    except (Problem, OSError) as problem:
        sys.stderr.write("gpu-mig-layout: %s\n" % problem)
        return 1
    sys.stdout.write("changed: GPU %s\n" % ", ".join(map(str, changed)) if changed else "as written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
