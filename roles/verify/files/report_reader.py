"""Read a host for the report in one round: what the plan reads, the health and the use of its GPUs, and when it was changed. One JSON line.

Python 2.7 and 3, standard library only, reads and never writes. The action plugin report_facts pipes it, packed with its
helpers and gpu-check's questions (hadoop_dl.hosts.host_script), into the host's Python.
"""

import json
import os
import sys

from ansible.module_utils.hadoop_dl_host import gpu_use, host_reader, processes
from gpu_check.cli import results
from gpu_check.host import ETC, Host

HEALTH_TIMEOUT = 100  # seconds for all questions; a driver that hangs takes 30 of them
USE_TIMEOUT = 40  # seconds for the GPUs' processes, and for YARN's applications

# Only questions that disturb no job: none computes, loads a library or reads whole packages. The width of the PCIe links is
# left out because an idle GPU may narrow its own.
ALWAYS = ("gpus_on_pci_as_declared", "no_reboot_waits", "nouveau_absent", "xid")
WITH_DRIVER = ("gpus_by_driver_as_declared", "versions_agree", "driver_new_enough", "persistence", "compute_mode")
WITH_DRIVER += ("ecc_errors", "retired_pages", "inforom", "throttling", "recovery_action", "fabric_manager", "topology")
WITH_DRIVER += ("vgpu_licensed",)


def ask(machine):
    """What gpu-check answers; a driver that does not answer is asked nothing more."""
    answers = list(results(machine, ("driver_runs",)))
    names = ALWAYS if answers[0]["outcome"] == "FAIL" else ALWAYS + WITH_DRIVER
    return answers + list(results(machine, names))


def health(nvidia, installed, machine=Host):
    """The answers about this host's GPUs, or why there are none; both None if it has neither GPUs nor gpu-check.

    installed: whether it has gpu-check, as a host does whose GPU does not show any more.
    """
    if not (nvidia["gpus"] or nvidia["listed"] or installed):
        return {"results": None, "problem": None}
    try:
        return {"results": processes.limited(lambda: ask(machine()), HEALTH_TIMEOUT), "problem": None}
    except processes.Late as late:
        return {"results": None, "problem": "gpu-check gave %s. Look for processes in state D on the host" % late}
    except Exception as error:  # the rest of the host is still worth a row
        lines = str(error).strip().splitlines() or [error.__class__.__name__]
        return {"results": None, "problem": "gpu-check failed: %s" % lines[-1]}


def use(results, machine=Host):
    """The applications that compute on this host's GPUs; None if it cannot tell, also if it shows no GPU. results: of gpu-check."""
    if "driver_runs" not in [result["name"] for result in results or () if result["outcome"] == "PASS"]:
        return None
    try:
        return processes.limited(lambda: gpu_use.busy(machine()), USE_TIMEOUT)
    except Exception:  # gpu-check names sick GPUs; a memory that hangs holds who reads its process's environment
        return None


def holders(node, names):
    """What the ResourceManager here answers about GPUs, and why it does not."""
    directories = host_reader.Reader().configurations(node["hadoop"], names)
    try:
        return processes.limited(lambda: gpu_use.holders(directories), USE_TIMEOUT)
    except Exception as failure:
        return None, "%s" % failure


def main(names=(), asks_yarn=False):
    """asks_yarn: this is a host of YARN's masters."""
    try:
        node = processes.limited(lambda: host_reader.read(names=names), host_reader.READ_TIMEOUT)
        gpu_health = health(node["nvidia"], os.path.exists(ETC + "/gpu-check.json"))
        answer = {"facts": node, "health": gpu_health, "times": host_reader.times()}
        answer["busy"] = use(gpu_health["results"])
        answer["holders"], answer["yarn_problem"] = holders(node, names) if asks_yarn else (None, None)
    except processes.Late as late:
        answer = {"late": host_reader.LATE % late}
    sys.stdout.write(json.dumps(answer, sort_keys=True) + "\n")
