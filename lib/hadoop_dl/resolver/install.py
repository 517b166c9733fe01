"""Which stack under stacks/ a host gets: only those have locks, so only those can be installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from hadoop_dl import stacks as stack_files
from hadoop_dl.compat import Compat
from hadoop_dl.resolver.answer import answer
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.hosts import HostFacts, System, Unknown, find_system
from hadoop_dl.resolver.problem import Problem, engine
from hadoop_dl.resolver.request import Item, read_request
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


@dataclass(frozen=True)
class Candidate:
    """A named stack against a host. `stack` is its file's content, with the one Python that the host gets."""

    name: str
    stack: dict[str, Any] = field(default_factory=dict)
    said: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    problem: Problem | None = None

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What to know about it; worked out when it is asked for."""
        if self.problem is None:
            return self.said
        return tuple(answer(self.problem, self.problem.mask(self.problem.all))[2])


def constraints(stack: Mapping[str, Any]) -> dict[str, Any]:
    """A stack file as a request: all its versions, exactly."""
    wanted = {name: stack[name] for name in (*EXACT, *PLAIN) if name in stack}
    return wanted | {name: True for name in ("hdfs", "kafka") if stack.get(name)}


def short_name(key: str) -> str:
    """`el7` for rhel7, as stack files and the node reader write it."""
    return re.sub(r"^rhel", "el", key)


def system_conflict(name: str, system: System | Unknown | None) -> list[Conflict]:
    """A stack is made, locked and proved for some operating systems; on another it is not even tried."""
    made_for = stack_files.load_stack(name).data["os"]
    if not isinstance(system, System) or short_name(system.key) in made_for:
        return []
    return [
        Conflict(
            ("os",),
            f"{name} is made for {', '.join(made_for)}, and the host runs {system.label}. Choose a stack for it: scripts/stack list",
            tuple(stack_files.load_stack(name).data["sources"][:2]),
        )
    ]


@lru_cache(maxsize=256)
def stack_items(compat: Compat, name: str) -> list[Item]:
    """A stack file's versions as items of a request; read once, because every host is compared with every stack."""
    return read_request(compat, constraints(stack_files.load_stack(name).data))


def with_python(name: str, host: HostFacts | None) -> dict[str, Any]:
    """A stack's content with the first of its Pythons that the host has."""
    stack = stack_files.load_stack(name)
    there = [text for text in stack.pythons if host is None or host.pythons is None or text in host.pythons]
    return {**stack.data, "python": (there or stack.pythons)[0]}


def try_stack(compat: Compat, name: str, host: HostFacts | None) -> Candidate:
    """One named stack on a host, with everything that is wrong with it there, or what to know about it."""
    refused = system_conflict(name, find_system(compat, host.os) if host and host.os else None)
    problem = Problem(engine(compat), read_request(compat, {}, host) + stack_items(compat, name))
    mask = problem.mask(problem.all)
    if refused or not mask:
        return Candidate(name, conflicts=tuple([*refused, *(conflicts(problem) if not mask else ())]))
    return Candidate(name, with_python(name, host), tuple(answer(problem, mask)[2]))


def fitting(compat: Compat, request: Mapping[str, Any], host: HostFacts | None) -> list[Candidate]:
    """The named stacks that meet a request on a host, the best first: the form for the host's GPUs, then the newest."""
    given = request.get("os") or (host.os if host else None)
    system, asked = find_system(compat, given) if given else None, read_request(compat, request, host)
    found = []
    for name in stack_files.stack_names():
        if system_conflict(name, system):
            continue
        problem = Problem(engine(compat), asked + stack_items(compat, name))
        if problem.mask(problem.all):
            found.append(Candidate(name, with_python(name, host), problem=problem))
    cpu = host is not None and host.gpus == ()

    def rank(candidate: Candidate) -> tuple[Any, ...]:
        built = candidate.stack["tensorflow_source"] == "built"
        parts = tuple(-number for number in version(candidate.stack["tensorflow"]).release)
        spark = "tensorflowonspark" not in candidate.stack
        return built, ("cuda" in candidate.stack) is cpu, spark, parts, candidate.name

    return sorted(found, key=rank)
