"""A stopwatch, medians with their spread, and tables in Markdown, for benchmarks and documents."""

import os
import resource
import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PAUSE = 0.5  # seconds between two looks at the memory


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, and of processor time of this process and of the programs that it ran."""

    wall: float
    cpu: float
    memory: int = 0
    """MB, of programs at their highest; shared memory counts once."""


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


def of_programs(play: Callable[[], object]) -> Cost:
    """What the programs cost that this function runs, and those that they leave to the first process of a namespace, which this one is (ssh's masters)."""
    ended, peak, others = threading.Event(), [0], programs()

    def watch() -> None:
        while not ended.wait(PAUSE):
            peak[0] = max(peak[0], sum(map(memory, programs() - others)))

    watcher = threading.Thread(target=watch)
    began, processors = time.monotonic(), children()
    watcher.start()
    try:
        play()
    finally:
        ended.set()
        watcher.join()
    time.sleep(PAUSE)  # ssh's masters end when they are told to
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return Cost(time.monotonic() - began, children() - processors, peak[0] // 1024)


def children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def programs() -> set[int]:
    """All processes that have this one's root directory, and so are none of a light host's."""
    pids = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "root") == "/":
                pids.add(int(entry.name))
    return pids


def memory(pid: int) -> int:
    """Of a process in KB: its own, and its part of what several share."""
    with suppress(OSError, IndexError):
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
        return int(text.partition("\nPss:")[2].split()[0])
    return 0
