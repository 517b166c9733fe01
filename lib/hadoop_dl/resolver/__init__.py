"""From a request to a stack: the named stack that the playbooks install, or versions without a lock, or every reason why not.

    resolution = resolve({"tensorflow": "1.15", "python": "2.7"}, facts.profile)
    resolution.status, resolution.name, resolution.stack, resolution.conflicts, resolution.nearest

A request is a mapping of constraints, or the name of a stack under stacks/. Nothing here knows Ansible or touches a host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hadoop_dl.data import stacks as stack_files
from hadoop_dl.data.compat import Compat, load
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.choose_stack import KEYS, ChosenStack, choose_stack, native_pythons
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, shared_tables
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.named_stacks import Candidate, fitting, try_stack
from hadoop_dl.resolver.request import Misuse, read_request
from hadoop_dl.resolver.suggest import nearest_requests
from hadoop_dl.resolver.versions import version

__all__ = [
    "Conflict",
    "Finding",
    "HostProfile",
    "Misuse",
    "Resolution",
    "choose",
    "compose",
    "newest_wheel",
    "resolve",
    "unmet",
]
Request = str | Mapping[str, Any]
OK, UNSURE, CONFLICT = "ok", "unsure", "conflict"


@dataclass(frozen=True)
class Resolution:
    """The answer. `name` is the stack under stacks/ that it is, where it is one; `lock` the file that it is installed from.

    `unsure`: only data that is not verified contradicts it. It is not ok.
    """

    status: str
    stack: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    nearest: tuple[dict[str, Any], ...] = ()
    name: str = ""
    lock: str = ""
    pins: dict[str, str] = field(default_factory=dict)
    not_checked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return self.status == OK

    @property
    def fits(self) -> bool:
        """Whether there is a stack, sure or not."""
        return self.status != CONFLICT

    @property
    def doubts(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.warnings if finding.doubt)

    @property
    def problems(self) -> list[str]:
        """The conflicts as sentences for a list of problems."""
        return [conflict.message for conflict in self.conflicts]

    @property
    def next(self) -> list[str]:
        """What to do with the answer: lines for the inventory and commands, in order."""
        if not self.fits:
            return []
        if not self.name:
            return ["write stacks/NAME.yml with these versions (docs/stacks.md)", "scripts/stack lock NAME"]
        if not self.lock:
            return [f"scripts/stack lock {self.name}"]
        return [f"deeplearning_request: {self.inventory}", "ansible-playbook -i inventories/SITE playbooks/plan.yml"]

    @property
    def inventory(self) -> str:
        """The value of deeplearning_request: a stack's name, or constraints if a Python other than its first one was requested."""
        python = self.stack["python"]
        if python == stack_files.load_stack(self.name).pythons[0]:
            return self.name
        return f'{{tensorflow: "{self.stack["tensorflow"]}", python: "{python}"}}'

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "stack": self.name or None,
            "lock": self.lock or None,
            "versions": {key: self.stack[key] for key in KEYS if key in self.stack},
            "pins": self.pins,
            "next": self.next,
            "not_checked": list(self.not_checked),
            "warnings": [{**finding.as_json(), "doubt": finding.doubt} for finding in self.warnings],
            "reasons": [finding.as_json() for finding in self.reasons],
            "conflicts": [conflict.as_json() for conflict in self.conflicts],
            "nearest": list(self.nearest),
        }


def resolution_of(found: ChosenStack, name: str = "", lock: str = "") -> Resolution:
    status = UNSURE if any(finding.doubt for finding in found.warnings) else OK
    return Resolution(status, found.stack, found.reasons, found.warnings, name=name, lock=lock, pins=found.pins)


def named(candidate: Candidate) -> Resolution:
    """The answer for a named stack."""
    path = candidate.lock
    lock = str(path.relative_to(path.parents[2])) if path else ""
    return resolution_of(candidate.chosen, candidate.name, lock)


def resolve(
    request: Request, host: HostProfile | None = None, compat: Compat | None = None, suggest: bool = True
) -> Resolution:
    """What would be installed: a named stack if one meets the request, else the best set without a lock, else every conflict.

    `suggest=False` leaves out the nearest requests that do fit, which take longer than the rest.
    """
    data = compat or load()
    if isinstance(request, str):
        return resolve_name(request, host, data)
    found = fitting(data, request, host)
    best = on_host(named(found[0]), host) if found else compose(request, host, data, suggest)
    return replace(best, not_checked=tuple(not_checked(request, host)))


def on_host(resolution: Resolution, host: HostProfile | None) -> Resolution:
    """A named stack whose Python is missing on the host is still the answer: the conflict names the Python to install."""
    stack = resolution.stack
    if host is None or host.pythons is None or stack["python"] in host.pythons:
        return resolution
    message = (
        f"{resolution.name} needs Python {stack['python']} on the host, which has {', '.join(host.pythons) or 'none'}. "
        f"Install python{stack['python']} there."
    )
    conflict = Conflict(("python",), message, tuple(stack["sources"][:2]))
    return replace(resolution, status=CONFLICT, conflicts=(conflict,))


def not_checked(request: Mapping[str, Any], host: HostProfile | None) -> Iterable[str]:
    """What was not known when the answer was computed, and the option that gives it."""
    if not request.get("os") and not (host and host.os):
        yield "the operating system (glibc, Python, packages of the driver): give --os"
    if not request.get("gpu") and (host is None or host.gpus is None):
        yield "the GPUs: give --gpu, or --gpu none"


def compose(
    request: Mapping[str, Any], host: HostProfile | None = None, compat: Compat | None = None, suggest: bool = True
) -> Resolution:
    """The best complete version set for a request, whether or not anybody has made a lock for it."""
    data = compat or load()
    problem = ConstraintProblem(shared_tables(data), read_request(data, request, host))
    mask = problem.mask(problem.all)
    if mask:
        return resolution_of(choose_stack(problem, mask))

    def fits(other: dict[str, Any]) -> bool:
        trial = ConstraintProblem(shared_tables(data), read_request(data, other, host))
        return bool(trial.mask(trial.all))

    near = nearest_requests(problem, request, fits) if suggest else []
    return Resolution(CONFLICT, conflicts=tuple(conflicts(problem)), nearest=tuple(near))


@dataclass(frozen=True)
class Wheel:
    """A TensorFlow that meets a request, its Pythons there, and whether none of them is the operating system's."""

    version: str
    pythons: tuple[str, ...]
    foreign: bool


def newest_wheel(request: Mapping[str, Any], gpu: bool, compat: Compat | None = None) -> Wheel | None:
    """The newest release with wheels that meet a request without a doubt, for GPUs or for the CPU."""
    data = compat or load()
    problem = ConstraintProblem(shared_tables(data), read_request(data, request))
    builds = [
        build for build in problem.builds(problem.mask(problem.all)) if not build.from_source and build.gpu == gpu
    ]
    builds = [build for build in builds if not any(finding.doubt for finding in problem.findings(build))]
    if not builds:
        return None
    newest = max((build.version for build in builds), key=version)
    pythons = sorted({build.python for build in builds if build.version == newest}, key=version)
    natives = native_pythons(problem)
    return Wheel(newest, tuple(pythons), bool(natives) and not natives & set(pythons))


def resolve_name(name: str, host: HostProfile | None, compat: Compat) -> Resolution:
    """A named stack on a host; on one that it does not fit, the names of those that do are the nearest."""
    stack_files.load_stack(name)
    candidate = try_stack(compat, name, host)
    if not candidate.conflicts:
        return named(candidate)
    near = [{"stack": other.name} for other in fitting(compat, {}, host)[:3]]
    return Resolution(CONFLICT, conflicts=candidate.conflicts, nearest=tuple(near))


def choose(request: Request, host: HostProfile | None = None, compat: Compat | None = None) -> Resolution:
    """What to install: resolve's answer, but a set without a lock is a conflict which says what to do."""
    resolution = resolve(request, host, compat)
    return resolution if resolution.name else without_stack(request, resolution, host, compat)


def unmet(request: Mapping[str, Any], host: HostProfile | None = None, compat: Compat | None = None) -> Resolution:
    """The answer of choose() for a caller that already knows that no named stack meets the constraints on the host."""
    return without_stack(request, compose(request, host, compat), host, compat)


def without_stack(
    request: Request, resolution: Resolution, host: HostProfile | None = None, compat: Compat | None = None
) -> Resolution:
    """An answer without a name as a conflict, with the stacks that do fit the host."""
    if not resolution.fits:
        return resolution
    stack = resolution.stack
    message = (
        f"TensorFlow {stack['tensorflow']} on Python {stack['python']} would meet the request, but no stack under stacks/ does. "
        f"Request less, or add stacks/NAME.yml with these versions and run scripts/stack lock NAME. "
        f"Known stacks: {', '.join(stack_files.stack_names())}."
    )
    near = tuple({"stack": other.name} for other in fitting(compat or load(), {}, host)[:3])
    conflict = Conflict(tuple(sorted(request)), message, resolution.reasons[0].sources)
    return Resolution(CONFLICT, conflicts=(conflict,), nearest=near)
