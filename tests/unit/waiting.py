"""Every wait of a test has a limit."""

import time
from collections.abc import Callable
from typing import Any


def until(question: Callable[[], Any], seconds: float = 60, what: str = "") -> Any:
    """Ask again until the answer is true, and return it. After the limit the test fails with `what`."""
    end = time.monotonic() + seconds
    while not (answer := question()):
        assert time.monotonic() < end, what
        time.sleep(0.1)
    return answer
