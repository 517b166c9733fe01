"""Runs of the playbooks: who runs what, since when and from where, and whether a run that left its lock on a host still lives."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path

LONGEST = 24 * 3600  # seconds; an older lock is of a dead run, wherever it ran: no task may take longer than four hours
STARTED = 19  # the time of a process's start among the fields of /proc/PID/stat behind its name, in parentheses


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


def started(pid: int) -> str:
    """When a process started, in ticks since the system did; empty where there is none, or no /proc."""
    fields = line(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[STARTED] if len(fields) > STARTED else ""


def this_run(pid: int, playbook: str, note: str = "") -> dict[str, str]:
    """The run whose main process is `pid`."""
    name, system = socket.gethostname(), machine()
    since = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    return {
        "id": f"{name}/{system['boot']}/{system['processes']}/{pid}/{started(pid)}",
        "who": os.environ.get("SUDO_USER") or getpass.getuser(),
        "controller": name,
        "system": line("/etc/machine-id"),
        **system,
        "pid": str(pid),
        "started": started(pid),
        "playbook": playbook,
        "note": note,
        "since": since,
    }


def dead(found: Mapping[str, str], own: Mapping[str, str], age: int) -> str:
    """Why the run that was found is dead, in a few words; empty where it lives or its state is unknown."""
    if age > LONGEST:
        return f"it took the host {age // 3600} hours ago"
    if (found.get("boot"), found.get("processes")) == (own["boot"], own["processes"]):
        pid = found.get("pid", "")
        lives = pid.isdigit() and started(int(pid)) == found.get("started", "") != ""
        return "" if lives else f"process {pid or 'unknown'} is gone"
    if found.get("system") and found.get("system") == own["system"] and found.get("boot") != own["boot"]:
        return f"{found.get('controller')} was restarted since"
    return ""


def told(found: Mapping[str, str]) -> str:
    """A run as messages describe it."""
    if "who" not in found:
        return "a run of which nothing is known"
    return f"{found['who']} with {found.get('playbook')} from {found.get('controller')} since {found.get('since')} (process {found.get('pid')})"


def is_controller(host: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Whether a host is the machine that runs Ansible."""
    return bool(own["boot"]) and (host.get("boot"), host.get("processes")) == (own["boot"], own["processes"])
