"""Which stack under stacks/ a host gets: only those have locks, so only those can be installed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl import stacks as stack_files
from hadoop_dl.compat import Compat
from hadoop_dl.resolver.answer import answer
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.hosts import HostFacts, System, find_system
from hadoop_dl.resolver.problem import Problem, engine
from hadoop_dl.resolver.request import read_request
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
    warnings: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()


def constraints(stack: Mapping[str, Any]) -> dict[str, Any]:
    """A stack file as a request: all its versions, exactly."""
    wanted = {name: stack[name] for name in (*EXACT, *PLAIN) if name in stack}
    return wanted | {name: True for name in ("hdfs", "kafka") if stack.get(name)}


def short_name(key: str) -> str:
    """`el7` for rhel7, as stack files and the node reader write it."""
    return re.sub(r"^rhel", "el", key)


def system_conflict(compat: Compat, name: str, made_for: list[str], given: str | None) -> list[Conflict]:
    """A stack is made, locked and proved for some operating systems; on another it is not even tried."""
    system = find_system(compat, given) if given else None
    if not isinstance(system, System) or short_name(system.key) in made_for:
        return []
    return [
        Conflict(
            ("os",),
            f"{name} is made for {', '.join(made_for)}, and the host runs {system.label}. Choose a stack for it: scripts/stack list",
            tuple(stack_files.load_stack(name).data["sources"][:2]),
        )
    ]


def try_stack(
    compat: Compat, name: str, request: Mapping[str, Any], host: HostFacts | None, explain: bool
) -> Candidate:
    """One named stack, together with what else was asked for, on a host. Conflicts are only worked out to be shown."""
    data = stack_files.load_stack(name).data
    given = request.get("os") or (host.os if host else None)
    refused = system_conflict(compat, name, data["os"], given)
    items = read_request(compat, request, host) + read_request(compat, constraints(data))
    problem = Problem(engine(compat), items)
    mask = problem.mask(problem.all)
    if not mask:
        found = conflicts(problem) if explain else [Conflict((), "", ())]
        return Candidate(name, conflicts=tuple([*refused, *found]))
    if refused:
        return Candidate(name, conflicts=tuple(refused))
    _, _, warnings, core = answer(problem, mask)
    pythons = list(stack_files.load_stack(name).pythons)
    # The first of the stack's Pythons that the host has; the resolver would take the newest.
    there = [text for text in pythons if host is None or host.pythons is None or text in host.pythons]
    return Candidate(name, {**data, "python": (there or [core.python])[0]}, tuple(warnings))


def fitting(compat: Compat, request: Mapping[str, Any], host: HostFacts | None) -> list[Candidate]:
    """The named stacks that meet a request on a host, the best first: the form for the host's GPUs, then the newest."""
    found = [try_stack(compat, name, request, host, explain=False) for name in stack_files.stack_names()]
    found = [candidate for candidate in found if not candidate.conflicts]
    cpu = host is not None and host.gpus == ()

    def rank(candidate: Candidate) -> tuple[Any, ...]:
        built = candidate.stack["tensorflow_source"] == "built"
        parts = tuple(-number for number in version(candidate.stack["tensorflow"]).release)
        spark = "tensorflowonspark" not in candidate.stack
        return built, ("cuda" in candidate.stack) is cpu, spark, parts, candidate.name

    return sorted(found, key=rank)
