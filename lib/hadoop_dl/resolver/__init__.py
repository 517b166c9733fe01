"""Requests into stacks: the newest complete version set that fits, or everything that is wrong with the request.

    resolution = resolve({"tensorflow": "1.15", "python": "2.7"}, HostFacts.from_node(node))
    resolution.ok, resolution.stack, resolution.conflicts, resolution.nearest

A request is a mapping of constraints, or the name of a stack under stacks/. Nothing here knows Ansible or touches a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl import stacks as stack_files
from hadoop_dl.compat import Compat, load
from hadoop_dl.resolver.answer import answer
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.hosts import HostFacts
from hadoop_dl.resolver.nearest import nearest
from hadoop_dl.resolver.problem import Problem, engine
from hadoop_dl.resolver.request import Misuse, read_request

__all__ = ["Conflict", "Finding", "HostFacts", "Misuse", "Resolution", "mixed_cluster", "resolve", "resolve_many"]
Request = str | Mapping[str, Any]


@dataclass(frozen=True)
class Resolution:
    """The answer. `named` are the stacks under stacks/ that meet the request, the best first: only those can be installed."""

    status: str
    stack: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    nearest: tuple[dict[str, Any], ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def problems(self) -> list[str]:
        """The conflicts as sentences for a list of problems."""
        return [conflict.message for conflict in self.conflicts]

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "stack": self.stack,
            "reasons": [said(finding) for finding in self.reasons],
            "warnings": [said(finding) for finding in self.warnings],
            "conflicts": [conflict.as_json() for conflict in self.conflicts],
            "nearest": list(self.nearest),
        }


def said(finding: Finding) -> str:
    """A finding on one line, with the first place where it is written."""
    return f"{finding.text} ({finding.sources[0]})" if finding.sources else finding.text


def resolve(
    request: Request, host: HostFacts | None = None, compat: Compat | None = None, suggest: bool = True
) -> Resolution:
    """The newest stack that meets the request on that host, or every reason why there is none.

    `suggest=False` leaves out the nearest requests that do fit, which take longer than the rest.
    """
    data = compat or load()
    wanted = constraints(stack_files.load_stack(request).data) if isinstance(request, str) else dict(request)
    problem = Problem(engine(data), read_request(data, wanted, host))
    mask = problem.mask(problem.all)
    if mask:
        stack, reasons, warnings, _ = answer(problem, mask)
        return Resolution("ok", stack, tuple(reasons), tuple(warnings))

    def fits(other: dict[str, Any]) -> bool:
        trial = Problem(engine(data), read_request(data, other, host))
        return bool(trial.mask(trial.all))

    near = nearest(data, problem, wanted, fits) if suggest else []
    return Resolution("conflict", conflicts=tuple(conflicts(problem)), nearest=tuple(near))


def constraints(stack: Mapping[str, Any]) -> dict[str, Any]:
    """A stack file as a request: all its versions, exactly."""
    exact = (
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
    plain = ("tensorflow_package", "tensorflow_source", "driver_branch", "driver_module", "python", "java")
    wanted = {name: stack[name] for name in (*exact, *plain) if name in stack}
    wanted |= {name: True for name in ("hdfs", "kafka") if stack.get(name)}
    return wanted


def resolve_many(
    requests: Iterable[tuple[Request, HostFacts | None]], compat: Compat | None = None
) -> list[Resolution]:
    """One answer for each host, in order. Hosts with the same request and facts share it."""
    known: dict[Any, Resolution] = {}
    found = []
    for request, host in requests:
        key = (request if isinstance(request, str) else repr(sorted(request.items())), host)
        if key not in known:
            known[key] = resolve(request, host, compat)
        found.append(known[key])
    return found


def mixed_cluster(environments: Mapping[str, str]) -> list[str]:
    """Say that hosts of one TensorFlowOnSpark job would have several environments; an empty list means one.

    `environments` maps a host of the job (its driver and executors) to the name of its environment.
    """
    hosts: dict[str, list[str]] = {}
    for host, environment in sorted(environments.items()):
        hosts.setdefault(environment, []).append(host)
    if len(hosts) < 2:
        return []
    listed = "; ".join(
        f"{name} on {', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''}"
        for name, names in sorted(hosts.items())
    )
    return [
        f"A TensorFlowOnSpark job needs one environment on its driver and all executors, and its hosts would have {len(hosts)}: {listed}. "
        "Give all of them the same request, or run the job on hosts of one environment."
    ]
