"""Runs of the playbooks: who runs what, since when and from where, and whether a run that left its lock on a host has ended here."""

import getpass
import os
import socket
import uuid
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host.host_lock import machine

from hadoop_dl.data.terminal import printable

STARTED = 19  # the time of a process's start among the fields of /proc/PID/stat behind its name, in parentheses
LONGEST = 80  # characters of one value in a message


def started(pid: int) -> str:
    """When a process started, in ticks since the system did; empty if there is none, or no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return fields[STARTED] if len(fields) > STARTED else ""


def this_run(pid: int, playbook: str, note: str = "") -> dict[str, str]:
    """The run whose main process is `pid`; every task of it has the same id."""
    return {
        "id": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{socket.gethostname()} {machine()} {pid} {started(pid)}")),
        "who": os.environ.get("SUDO_USER") or getpass.getuser(),
        "controller": socket.gethostname(),
        "machine": machine(),
        "pid": str(pid),
        "started": started(pid),
        "playbook": playbook,
        "note": note,
        "since": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC"),
    }


def has_ended(run: Mapping[str, Any]) -> bool:
    """Whether the run was one of this machine, since its start, and its process is gone. Of another machine nothing is known."""
    pid = str(run.get("pid"))
    if not machine() or run.get("machine") != machine():
        return False
    return not (pid.isdecimal() and len(pid) < 10 and started(int(pid)) == run.get("started", "") != "")


def short(value: Any) -> str:
    """A value that a host answered, as messages show it."""
    return " ".join(printable(str(value)[:LONGEST]).split())


def told(run: Mapping[str, Any]) -> str:
    """A run as messages describe it."""
    if "who" not in run:
        return "an unidentified run"
    user, playbook, name, since, pid = (
        short(run.get(key)) for key in ("who", "playbook", "controller", "since", "pid")
    )
    return f"{user} with {playbook} from {name} since {since} (process {pid})"
