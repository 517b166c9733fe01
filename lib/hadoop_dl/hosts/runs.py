"""Runs of the playbooks: who runs what, since when and from where, and whether a run that left its lock on a host still lives.

A lock identifies the controller by digests that are salted with the run's id: only those who know the controller recognise it.
"""

from __future__ import annotations

import getpass
import hashlib
import os
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hadoop_dl.data.terminal import printable

SILENT = 24 * 3600  # seconds without a renewal after which a run of another controller counts as dead
STARTED = 19  # the time of a process's start among the fields of /proc/PID/stat behind its name, in parentheses
# The processes of a whole machine: any other set is a container's (linux/proc_ns.h).
FIRST_PROCESSES = "pid:[4026531836]"
LONGEST = 80  # characters of one value in a message


def line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()[0].strip()
    except (OSError, IndexError):
        return ""


def machine() -> dict[str, str]:
    """As the module run_lock answers about a host, so that the controller is recognised."""
    try:
        processes = os.readlink("/proc/self/ns/pid")
    except OSError:
        processes = ""
    return {"boot": line("/proc/sys/kernel/random/boot_id"), "processes": processes}


def controller() -> dict[str, str]:
    """The values that identify this controller; they are stored nowhere else."""
    return {**machine(), "system": line("/etc/machine-id")}


def started(pid: int) -> str:
    """When a process started, in ticks since the system did; empty if there is none, or no /proc."""
    fields = line(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[STARTED] if len(fields) > STARTED else ""


def digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def identified(own: Mapping[str, str], salt: str) -> dict[str, str]:
    """A controller as the lock of the run with this id has it; empty for what is not known, or means nothing in a container."""
    whole = own["processes"] == FIRST_PROCESSES
    return {
        "place": digest(salt, own["boot"], own["processes"]) if own["boot"] else "",
        "boot": digest(salt, own["boot"]) if own["boot"] else "",
        "system": digest(salt, own["system"]) if own["system"] and whole else "",  # images of containers share one
    }


def this_run(pid: int, playbook: str, note: str = "", variables: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The run whose main process is `pid`. variables: AWX names job, template and user in extra variables (awx_job_id, …)."""
    awx, own, name = variables or {}, controller(), socket.gethostname()
    job = f"AWX job {awx['awx_job_id']} of {awx.get('awx_job_template_name')}" if awx.get("awx_job_id") else ""
    salt = digest("run", name, own["boot"], own["processes"], str(pid), started(pid))
    return {
        "id": salt,
        "who": str(awx.get("awx_user_name") or os.environ.get("SUDO_USER") or getpass.getuser()),
        "controller": name,
        "job": job,
        **identified(own, salt),
        "pid": str(pid),
        "started": started(pid),
        "playbook": playbook,
        "note": note,
        "since": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def dead(run: Mapping[str, Any], own: Mapping[str, str], silent: int, job: str = "") -> str:
    """Why the run that was found is dead, in a few words; empty if it lives or its state is unknown.

    own: this controller. silent: seconds since the last renewal, by the host's monotonic clock. job: of this run.
    """
    identity = identified(own, str(run.get("id")))
    if identity["place"] and run.get("place") == identity["place"]:  # its process decides, however old the lock is
        pid = str(run.get("pid"))
        lives = pid.isdecimal() and len(pid) < 10 and started(int(pid)) == run.get("started", "") != ""
        return "" if lives else f"process {short(pid)} is gone"
    if job and run.get("job") == job:
        return f"{job} was started again"
    if identity["system"] and run.get("system") == identity["system"] and run.get("boot") != identity["boot"]:
        return f"{short(run.get('controller'))} was restarted since"
    return f"it was last heard of {silent // 3600} hours ago" if silent > SILENT else ""


def short(value: Any) -> str:
    """A value that a host answered, as messages show it."""
    return " ".join(printable(str(value)[:LONGEST]).split())


def told(run: Mapping[str, Any]) -> str:
    """A run as messages describe it."""
    if "who" not in run:
        return "an unidentified run"
    user, playbook, name, since = (short(run.get(key)) for key in ("who", "playbook", "controller", "since"))
    place = short(run["job"]) if run.get("job") else f"process {short(run.get('pid'))}"
    return f"{user} with {playbook} from {name} since {since} ({place})"


def is_controller(host: Mapping[str, Any], own: Mapping[str, str]) -> bool:
    """Whether a host is the machine that runs Ansible."""
    return bool(own["boot"]) and (host.get("boot"), host.get("processes")) == (own["boot"], own["processes"])
