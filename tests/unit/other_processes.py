"""Processes beside a test: one that has ended, one that lasts, and the wait for what one of them does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def wait_until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
