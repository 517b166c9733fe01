"""Locks: the exact wheels of a stack, and source distributions that have a recipe (source_wheels), one per line with its sha256. lock_maker.py writes them.

    # component: tensorflow
    numpy==1.16.6 --hash=sha256:6de5…  # numpy-1.16.6-cp27-cp27mu-manylinux1_x86_64.whl 17045104

is a line that pip reads as it stands. The comment (file name, size) lets the mirror know a file without an index.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host import lockfile, source_wheels

COMPONENTS = ("pip", "tensorflow", "keras", "tensorflowonspark")


def canonicalize_name(name: str) -> str:
    return str(lockfile.canonical(name))


class StackError(ValueError):
    """A stack or a lock that is missing, damaged or cannot be made; the message says which and what to do."""


@dataclass(frozen=True)
class Entry:
    """One artifact of a lock."""

    component: str
    project: str
    version: str
    sha256: str
    name: str
    size: int

    def line(self) -> str:
        return f"{self.project}=={self.version} --hash=sha256:{self.sha256}  # {self.name} {self.size}"


@dataclass(frozen=True)
class Lock:
    """A lock as its file has it."""

    stack: str
    python: str
    text: str
    entries: tuple[Entry, ...]

    @cached_property
    def digest(self) -> str:
        """12 hex digits that name the environment: they change with any artifact, the Python or the stack's name."""
        return hashlib.sha256(f"{self.text}\n{self.python}\n{self.stack}".encode()).hexdigest()[:12]

    @cached_property
    def components(self) -> tuple[str, ...]:
        return tuple(name for name in COMPONENTS if any(entry.component == name for entry in self.entries))

    @cached_property
    def cuda(self) -> str:
        """The CUDA, as major.minor, that it has as wheels; empty if it has none."""
        runtimes = (entry.version for entry in self.entries if re.match(r"nvidia[-_]cuda[-_]runtime", entry.project))
        return ".".join(next(runtimes, "").split(".")[:2])

    def component(self, name: str) -> str:
        """That component's section: a requirements file of its own. Empty if the stack has no such component."""
        lines = [entry.line() for entry in self.entries if entry.component == name]
        return "\n".join([f"# component: {name}", *lines]) + "\n" if lines else ""

    def section_digest(self, name: str) -> str:
        """The component's sha256, as hosts write it down beside what they installed (the module locked_packages)."""
        return hashlib.sha256(self.component(name).encode()).hexdigest()

    @property
    def artifacts(self) -> list[dict[str, Any]]:
        return [
            {
                "folder": "wheels",
                "name": entry.name,
                "project": entry.project,
                "sha256": entry.sha256,
                "size": entry.size,
            }
            for entry in self.entries
        ]


def source_problem(name: str, sha256: str) -> str:
    """Why a source distribution cannot be in a lock; empty for one with a recipe, and for a wheel."""
    try:
        if not source_wheels.is_wheel(name):
            source_wheels.recipe_of(name, sha256)
    except source_wheels.NoWheel as problem:
        return str(problem)
    return ""


def parse_lock(text: str, stack: str, python: str, origin: str = "the lock") -> Lock:
    """Read a lock; every line must name exactly one artifact with its hash."""
    entries: list[Entry] = []
    problems: list[str] = []
    for number, component, line, match in lockfile.lines(text):
        if line.startswith("#") and component not in COMPONENTS:
            problems.append(f"line {number}: component {component} is not one of {', '.join(COMPONENTS)}")
        elif not line.startswith("#") and (not match or not component):
            problems.append(f"line {number}: {line[:60]!r} is not 'project==version --hash=sha256:…  # file size'")
        elif match:
            project, version, sha256, file, size = match.groups()
            entries.append(Entry(component, project, version, sha256, file, int(size)))
    projects = [canonicalize_name(entry.project) for entry in entries]
    problems += [problem for entry in entries if (problem := source_problem(entry.name, entry.sha256))]
    problems += [f"{name} is in it twice" for name in sorted({p for p in projects if projects.count(p) > 1})]
    if not entries:
        problems.append("it has no artifact")
    if problems:
        raise StackError(f"{origin} cannot be used: {'; '.join(problems)}. Write it again: scripts/stack lock {stack}")
    return Lock(stack, python, text, tuple(entries))


def read_lock(path: Path, stack: str, python: str) -> Lock:
    if not path.is_file():
        raise StackError(f"{stack} requires the lock {path}, but it is missing. Write it: scripts/stack lock {stack}")
    return parse_lock(path.read_text(encoding="utf-8"), stack, python, str(path))
