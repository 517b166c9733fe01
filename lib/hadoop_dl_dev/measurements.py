"""What the benchmarks share: a stopwatch, rounds in fresh interpreters, medians with their spread, and tables in Markdown."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, and of processor time of this process and of the programs that it ran."""

    wall: float
    cpu: float


def now() -> Cost:
    usages = [resource.getrusage(target) for target in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Cost(time.monotonic(), sum(usage.ru_utime + usage.ru_stime for usage in usages))


def since(began: Cost) -> Cost:
    end = now()
    return Cost(end.wall - began.wall, end.cpu - began.cpu)


def fresh_round(module: str, *arguments: object) -> dict[str, Any]:
    """The line of JSON that `once` of a module of this package prints in an interpreter of its own."""
    code = f"import sys; from hadoop_dl_dev import {module}; {module}.once(*sys.argv[1:])"
    command = [sys.executable, "-I", "-c", code, *map(str, arguments)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return answer


def spread(values: Iterable[float], digits: int = 0) -> str:
    """Median, and the least and the greatest in brackets."""
    numbers = list(values)
    median, least, most = (f"{value:.{digits}f}" for value in (statistics.median(numbers), min(numbers), max(numbers)))
    return f"{median} ({least} - {most})"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)
