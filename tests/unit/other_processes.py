"""Processes beside a test: one that has ended, one that lasts, one with signals as in a terminal, those with some words."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any


def ended() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


@contextmanager
def lasting(**options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A process that lasts as long as the block."""
    with subprocess.Popen(["/bin/sleep", "600"], **options) as process:
        try:
            yield process
        finally:
            process.kill()


def as_in_a_terminal() -> None:
    """A shell's background commands ignore SIGINT, and those of nohup SIGHUP: what a test starts must not depend on how the tests were started."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def having(words: str) -> list[int]:
    """The processes whose command line has these words."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended
            if words.encode() in path.read_bytes():
                pids.append(int(path.parent.name))
    return pids


def kill(words: str) -> None:
    for pid in having(words):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
