"""Which stack under stacks/ a host gets: only those have locks, so only those can be installed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from hadoop_dl.data import stacks as stack_files
from hadoop_dl.data.compat import Compat
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.data.stacks import Stack
from hadoop_dl.resolver.choose_stack import ChosenStack, choose_stack
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, shared_tables
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.hosts import System, Unknown, find_system
from hadoop_dl.resolver.request import Item, read_request
from hadoop_dl.resolver.rules.tensorflow import system_pythons
from hadoop_dl.resolver.versions import version

EXACT = (
    "tensorflow",
    "cuda",
    "cudnn",
    "nccl",
    "keras",
    "tensorflow_io",
    "tensorflowonspark",
    "pyspark",
    "bazel",
    "gcc",
)
PLAIN = ("tensorflow_package", "tensorflow_source", "driver_branch", "driver_module", "python", "java")

BY_HOST = ("driver_min", "driver_module")  # keys of the driver that a host's GPUs decide
READERS = ("hdfs", "kafka")
OWN = (*EXACT, *PLAIN, "glibc_min")  # keys of a request that a stack's file has
PARTS = (
    ("tensorflow", "tensorflow_package", "tensorflow_source"),
    ("driver_branch", "driver_module"),
    ("pyspark", "java"),
)


@dataclass
class Candidate:
    """A named stack against a host: what is wrong with it there, or the versions that the host gets and what to know."""

    name: str
    python: str = ""
    conflicts: tuple[Conflict, ...] = ()
    problem: ConstraintProblem | None = None

    @cached_property
    def stack(self) -> Stack:
        return stack_files.load_stack(self.name)

    @cached_property
    def chosen(self) -> ChosenStack:
        """The versions, with the driver that this host's GPUs require; computed on first use."""
        if self.problem is None:
            return ChosenStack()
        found = choose_stack(self.problem, self.problem.mask(self.problem.all))
        content = {**self.stack.data, "python": self.python}
        content |= {key: found.stack[key] for key in BY_HOST if key in found.stack}
        return replace(found, stack=content, reasons=tuple(self.reason(one, content) for one in found.reasons))

    def reason(self, finding: Finding, content: Mapping[str, Any]) -> Finding:
        """A reason for the stack's own value: its lock may need more than TensorFlow does, such as a newer glibc."""
        key, _, value = finding.text.partition(":")[0].partition(" ")
        own = content.get(key)
        if key not in OWN or not isinstance(own, str) or own == value:
            return finding
        return Finding(f"{key} {own}: as {self.name} has it", tuple(content["sources"][:2]))

    @cached_property
    def doubtful(self) -> bool:
        return any(finding.doubt for finding in self.chosen.warnings)

    @property
    def lock(self) -> Path | None:
        """The lock that it is installed from; None where it was not made yet."""
        path = self.stack.lock_path(self.python)
        return path if path.is_file() else None


def as_request(stack: Mapping[str, Any]) -> dict[str, Any]:
    """A stack file as a request: all its versions, exactly. Proprietary kernel modules give way to GPUs that need the open ones."""
    wanted = {name: stack[name] for name in (*EXACT, *PLAIN) if name in stack}
    if wanted.get("driver_module") == "proprietary":
        del wanted["driver_module"]
    return wanted | {name: True for name in READERS if stack.get(name)}


def short_name(key: str) -> str:
    """`el7` for rhel7, as stack files and the host reader write it."""
    return re.sub(r"^rhel", "el", key)


def system_conflict(stack: Stack, system: System | Unknown | None) -> list[Conflict]:
    """A stack is locked and tested for some operating systems; it is refused on others."""
    made_for = stack.data["os"]
    if not isinstance(system, System) or short_name(system.key) in made_for:
        return []
    return [
        Conflict(
            ("os",),
            f"{stack.name} is made for {', '.join(made_for)}, but the host has {system.label}. Choose a stack for it: scripts/stack list",
            tuple(stack.data["sources"][:2]),
        )
    ]


@lru_cache(maxsize=256)
def stack_items(compat: Compat, name: str) -> list[Item]:
    """A stack file's versions as items of a request; read once, because every host is compared with every stack."""
    return read_request(compat, as_request(stack_files.load_stack(name).data))


def pythons_for(stack: Stack, asked: Iterable[Item] = ()) -> list[str]:
    """A stack's Pythons that a request admits, the preferred one first."""
    pins = [item for item in asked if item.key == "python"]
    return [python for python in stack.pythons if all(item.accepts(python) for item in pins)]


def python_for(stack: Stack, host: HostProfile | None, asked: Iterable[Item] = ()) -> str:
    """The first of these Pythons that the host has; the preferred one where it has none or was not read."""
    pythons = pythons_for(stack, asked)
    there = [text for text in pythons if host is None or host.pythons is None or text in host.pythons]
    return (there or pythons)[0]


def try_stack(compat: Compat, name: str, host: HostProfile | None) -> Candidate:
    """One named stack on a host, with everything that is wrong with it there."""
    stack = stack_files.load_stack(name)
    refused = system_conflict(stack, find_system(compat, host.os) if host and host.os else None)
    problem = ConstraintProblem(shared_tables(compat), read_request(compat, {}, host) + stack_items(compat, name))
    mask = problem.mask(problem.all)
    if refused or not mask:
        return Candidate(name, conflicts=tuple([*refused, *(conflicts(problem) if not mask else ())]))
    return Candidate(name, python_for(stack, host), problem=problem)


def part_conflicts(compat: Compat, name: str, host: HostProfile) -> list[Conflict]:
    """Why a named stack does not fit a host, part by part: a stack is consistent in itself, so any conflict comes from the host.

    A request for all versions at once would also list how they depend on each other.
    """
    complete = ConstraintProblem(shared_tables(compat), read_request(compat, {}, host) + stack_items(compat, name))
    if complete.mask(complete.all):
        return []
    exact = as_request(stack_files.load_stack(name).data)
    found: list[Conflict] = []
    for part in PARTS:
        asked = {key: exact[key] for key in part if key in exact}
        if not asked:
            continue
        problem = ConstraintProblem(shared_tables(compat), read_request(compat, asked, host))
        found += conflicts(problem) if not problem.mask(problem.all) else []
    return found


def has_requested(stack: Stack, asked: Sequence[Item]) -> bool:
    """Whether the stack's file has everything that was requested: what it leaves out is not installed."""
    content = stack.data
    for item in asked:
        if item.key in READERS and item.flag and not content.get(item.key):
            return False
        if item.key == "python" and not pythons_for(stack, asked):
            return False
        if item.key in OWN and item.specs:
            there = content.get(item.key)
            if not any(item.accepts(value) for value in (there if isinstance(there, list) else [there])):
                return False
    return True


def requested_system(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> System | Unknown | None:
    given = request.get("os") or (host.os if host else None)
    return find_system(compat, str(given)) if given else None


def candidates(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> list[Candidate]:
    """The named stacks that meet a request on a host, in no order."""
    system = requested_system(compat, request, host)
    asked = read_request(compat, request, replace(host, pythons=None) if host else None)
    found = []
    for name in stack_files.stack_names():
        stack = stack_files.load_stack(name)
        if system_conflict(stack, system) or stack.base:
            continue  # A stack with packages of the site is chosen by its name only.
        if not has_requested(stack, asked):
            continue
        problem = ConstraintProblem(shared_tables(compat), asked + stack_items(compat, name))
        if problem.mask(problem.all):
            found.append(Candidate(name, python_for(stack, host, asked), problem=problem))
    return found


def fitting(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> list[Candidate]:
    """The named stacks that meet a request on a host, the best first. resolve and the plan both take this order."""
    bare = host is not None and host.gpus == ()
    return ordered(compat, request, host, candidates(compat, request, host), bare)


def ordered(
    compat: Compat, request: Mapping[str, Any], host: HostProfile | None, fits: Iterable[Candidate], bare: bool
) -> list[Candidate]:
    """Candidates, the best first.

    With a lock before without, a prebuilt TensorFlow before a build, the form for the GPUs (`bare`: that for none) before the
    other, no doubt before a doubt, a Python that the host or its operating system has before another, with
    TensorFlowOnSpark before without, and then the newest.
    """
    system = requested_system(compat, request, host)
    there: Sequence[str] | None = host.pythons if host else None
    if there is None and isinstance(system, System):
        there = system_pythons(shared_tables(compat).catalog, system)

    def rank(candidate: Candidate) -> tuple[Any, ...]:
        content = candidate.stack.data
        parts = tuple(-number for number in version(content["tensorflow"]).release)
        return (
            candidate.lock is None,
            content["tensorflow_source"] == "built",
            ("cuda" in content) is bare,
            candidate.doubtful,
            there is not None and candidate.python not in there,
            "tensorflowonspark" not in content,
            parts,
            candidate.name,
        )

    return sorted(fits, key=rank)
