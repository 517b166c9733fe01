"""What the benchmarks share: a stopwatch, medians with their spread, and tables in Markdown."""

import resource
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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


def medians(costs: Sequence[Cost]) -> str:
    """The medians of seconds by the clock, and in brackets of processor time."""
    wall, processor = (statistics.median(getattr(cost, name) for cost in costs) for name in ("wall", "cpu"))
    return f"{wall:.1f} ({processor:.1f})"


def spread(values: Iterable[float], digits: int) -> str:
    """Median, and the least and the greatest in brackets."""
    numbers = list(values)
    median, least, most = (f"{value:.{digits}f}" for value in (statistics.median(numbers), min(numbers), max(numbers)))
    return f"{median} ({least} - {most})"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)
