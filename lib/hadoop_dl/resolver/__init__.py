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
from hadoop_dl.resolver.install import fitting, try_stack
from hadoop_dl.resolver.nearest import nearest
from hadoop_dl.resolver.problem import Problem, engine
from hadoop_dl.resolver.request import Misuse, read_request

__all__ = [
    "Conflict",
    "Finding",
    "HostFacts",
    "Misuse",
    "Resolution",
    "choose",
    "mixed_cluster",
    "resolve",
    "resolve_many",
]
Request = str | Mapping[str, Any]


@dataclass(frozen=True)
class Resolution:
    """The answer. `name` is the stack under stacks/ that it is, where it is one."""

    status: str
    stack: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    nearest: tuple[dict[str, Any], ...] = ()
    name: str = ""

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
            "reasons": [
                *[said(finding) for finding in self.reasons],
                *[f"warning: {said(finding)}" for finding in self.warnings],
            ],
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

    For a stack's name the answer is that stack, with the one Python that the host gets.
    `suggest=False` leaves out the nearest requests that do fit, which take longer than the rest.
    """
    data = compat or load()
    if isinstance(request, str):
        return resolve_name(request, host, data)
    problem = Problem(engine(data), read_request(data, request, host))
    mask = problem.mask(problem.all)
    if mask:
        stack, reasons, warnings, _ = answer(problem, mask)
        return Resolution("ok", stack, tuple(reasons), tuple(warnings))

    def fits(other: dict[str, Any]) -> bool:
        trial = Problem(engine(data), read_request(data, other, host))
        return bool(trial.mask(trial.all))

    near = nearest(data, problem, request, fits) if suggest else []
    return Resolution("conflict", conflicts=tuple(conflicts(problem)), nearest=tuple(near))


def resolve_name(name: str, host: HostFacts | None, compat: Compat) -> Resolution:
    """A named stack on a host; on one that it does not fit, the names of those that do are the nearest."""
    stack_files.load_stack(name)
    candidate = try_stack(compat, name, host)
    if not candidate.conflicts:
        return Resolution("ok", candidate.stack, (), candidate.warnings, name=name)
    near = [{"stack": other.name} for other in fitting(compat, {}, host)[:3]]
    return Resolution("conflict", conflicts=candidate.conflicts, nearest=tuple(near))


def choose(request: Request, host: HostFacts | None = None, compat: Compat | None = None) -> Resolution:
    """What to install: the named stack for a request on a host. `name` is its name, `stack` its file's content.

    Every other version set could be installed too, but has no lock; that is a conflict which says what to do.
    """
    data = compat or load()
    if isinstance(request, str):
        return resolve_name(request, host, data)
    found = fitting(data, request, host)
    if found:
        best = found[0]
        return Resolution("ok", best.stack, (), best.warnings, name=best.name)
    resolution = resolve(request, host, data)
    if not resolution.ok:
        return resolution
    stack = resolution.stack
    message = (
        f"TensorFlow {stack['tensorflow']} on Python {stack['python']} would meet the request, and no stack under stacks/ that has a lock does. "
        f"Ask for less, or add stacks/NAME.yml with these versions and run scripts/stack lock NAME. There are: {', '.join(stack_files.stack_names())}."
    )
    near = tuple({"stack": other.name} for other in fitting(data, {}, host)[:3])
    return Resolution(
        "conflict", conflicts=(Conflict(tuple(sorted(request)), message, resolution.reasons[0].sources),), nearest=near
    )


def resolve_many(
    requests: Iterable[tuple[Request, HostFacts | None]], compat: Compat | None = None
) -> list[Resolution]:
    """One answer for each host, in order. Hosts with the same request and facts share it."""
    known: dict[Any, Resolution] = {}
    found = []
    for request, host in requests:
        key = (request if isinstance(request, str) else repr(sorted(request.items())), host)
        if key not in known:
            known[key] = choose(request, host, compat)
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
