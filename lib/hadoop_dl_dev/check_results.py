"""Results of a check's step: the count of tests in its JUnit file, and the lines of its log that say why it failed."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

# How pytest and Ansible begin the line that says what failed; molecule repeats only that its playbook did.
CAUSE = re.compile(r"(E  |FAILED |UNEXPECTED SUCCESS on |ERROR tests/|fatal: |failed: |Error: )")
MARGIN = re.compile(r"^(\x1b\[[0-9;]*m|[│ ])+|\x1b\[[0-9;]*m")  # molecule's, around what Ansible prints


@dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_junit(path: Path) -> Count:
    """Read what pytest counted."""
    count = Count()
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):  # noqa: S314 - written by our own pytest
        total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        count.add(Count(total - failed - skipped, failed, skipped))
    return count


def causes(log: Path, matches: int = 8, after: int = 3, alone: int = 30, width: int = 400) -> list[str]:
    """Find the lines of a log that say why its step failed, each with what follows it; if none does, its last lines.

    alone: how many lines follow the only one: a result of Ansible has its words (msg, stderr) about 20 lines below its first line.
    """
    plain = (MARGIN.sub("", line).rstrip() for line in log.read_text(errors="replace").splitlines())
    text = [line for line in plain if line]
    hits = [number for number, line in enumerate(text) if CAUSE.match(line)][-matches:] or [len(text) - 8]
    numbers = sorted(
        {n for number in hits for n in range(max(number, 0), number + 1 + (after if len(hits) > 1 else alone))}
    )
    return [text[number][:width] for number in numbers if number < len(text)]
