"""From a request to a stack: the named stack that the playbooks install, or versions without a lock, or every reason why not.

    resolution = resolve({"os": "rhel-7.9", "tensorflow": "1.15", "python": "2.7"})
    resolution.status, resolution.name, resolution.stack, resolution.conflicts, resolution.nearest

A request is a mapping of constraints. Of hosts that were read the plan asks named_stacks, and `unmet` if no stack fits them.
Nothing here knows Ansible or touches a host.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hadoop_dl.data.compat import REPOSITORY, Compat, load
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.data.stacks import DIRECTORY, load_stacks, stack_names
from hadoop_dl.resolver.choose_stack import KEYS, ChosenStack, choose_stack, native_pythons
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, shared_tables
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding
from hadoop_dl.resolver.hosts import System, find_system
from hadoop_dl.resolver.named_stacks import (
    Candidate,
    doubts_without_lock,
    fitting,
    locked_cuda,
    requested_system,
    short_name,
    stack_items,
    system_conflict,
)
from hadoop_dl.resolver.request import Misuse, arguments, read_request, texts
from hadoop_dl.resolver.rules.site import ON_MAPR
from hadoop_dl.resolver.suggest import cards, meanings, nearest_requests
from hadoop_dl.resolver.versions import version

__all__ = [
    "Conflict",
    "Finding",
    "HostProfile",
    "Misuse",
    "Resolution",
    "compose",
    "newest_wheel",
    "resolve",
    "unmet",
]
OK, UNSURE, CONFLICT = "ok", "unsure", "conflict"


@dataclass(frozen=True)
class Resolution:
    """The answer. `name`: the stack under stacks/, if it is one; `lock`: the file from which it is installed.

    `unsure`: only data that is not verified contradicts it. It is not ok.
    """

    status: str
    stack: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    nearest: tuple[dict[str, Any], ...] = ()
    nearest_stacks: tuple[str, ...] = ()  # the named stack of each of them; empty if there is none
    name: str = ""
    lock: str = ""
    preferred_python: str = ""  # of the named stack
    carried_cuda: str = ""  # that its lock has as wheels
    pins: dict[str, str] = field(default_factory=dict)
    not_checked: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()  # lines of the inventory that the plan asks for beside the request
    cpu_form: str = ""  # the stack for hosts without GPUs, if those with GPUs get none
    passed_over: tuple[str, ...] = ()  # why stacks of the site do not fit
    newer: str = ""  # a newer named stack that fits too, but does not read HDFS
    driver: str = ""  # the one that was named, and stays
    cards: tuple[str, ...] = ()  # that a name of the request was taken for, where it is not the product's own name
    request: Mapping[str, Any] = field(default_factory=dict)
    unmade: str = ""  # that no stack is made for the operating system, and what these playbooks install there
    # The request with each meaning of a GPU's name, and what that is.
    which: tuple[tuple[dict[str, Any], str], ...] = ()

    @property
    def versions(self) -> dict[str, Any]:
        """The stack with the CUDA that its lock has, which may be newer than the one that TensorFlow was tested with."""
        return {**self.stack, "cuda": self.carried_cuda} if self.carried_cuda else self.stack

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
    def on_mapr(self) -> bool:
        return any(finding.text == ON_MAPR for finding in self.warnings)

    @property
    def problems(self) -> list[str]:
        """The conflicts as sentences for a list of problems."""
        return [conflict.message for conflict in self.conflicts]

    @property
    def next(self) -> list[str]:
        """The next steps: lines for the inventory and commands, in order."""
        if not self.fits:
            return []
        if not self.name:
            return [own_stack(self.stack, self.request, "inventories/SITE")]
        if not self.lock:
            return [f"scripts/stack lock {self.name}"]
        run = "ansible-playbook -i inventories/SITE playbooks/"
        return [
            f"deeplearning_request: {self.inventory}",
            *self.inputs,
            *([f"{run}build_tensorflow.yml  # takes hours"] if self.stack["tensorflow_source"] == "built" else []),
            f"{run}plan.yml",
        ]

    @property
    def inventory(self) -> str:
        """The value of deeplearning_request: a stack's name, or constraints if a Python other than its first one was requested."""
        python = self.stack["python"]
        if python == self.preferred_python or self.status == UNSURE:
            return self.name  # a name accepts the doubt, which constraints do not
        return f'{{tensorflow: "{self.stack["tensorflow"]}", python: "{python}"}}'

    def as_json(self) -> dict[str, Any]:
        return {
            "status": self.status,
            "stack": self.name or None,
            "lock": self.lock or None,
            "versions": {key: self.versions[key] for key in KEYS if key in self.stack},
            "pins": self.pins,
            "next": self.next,
            "not_checked": list(self.not_checked),
            "newer": self.newer or None,
            "warnings": [{**finding.as_json(), "doubt": finding.doubt} for finding in self.warnings],
            "reasons": [finding.as_json() for finding in self.reasons],
            "conflicts": [conflict.as_json() for conflict in self.conflicts],
            "nearest": list(self.nearest),
            "which": [{"request": request, "means": means} for request, means in self.which],
        }


def resolution_of(chosen_stack: ChosenStack, name: str = "", lock: str = "") -> Resolution:
    status = UNSURE if any(finding.doubt for finding in chosen_stack.warnings) else OK
    return Resolution(
        status,
        chosen_stack.stack,
        chosen_stack.reasons,
        chosen_stack.warnings,
        name=name,
        lock=lock,
        pins=chosen_stack.pins,
    )


def named(candidate: Candidate) -> Resolution:
    """The answer for a named stack."""
    path = candidate.lock
    in_project = path and path.is_relative_to(REPOSITORY)
    lock = str(path.relative_to(REPOSITORY) if in_project else path) if path else ""
    resolution = resolution_of(candidate.chosen, candidate.name, lock)
    carried = locked_cuda(path, candidate.name, candidate.python) if path else ""
    return replace(
        resolution, inputs=tuple(candidate.inputs), preferred_python=candidate.stack.pythons[0], carried_cuda=carried
    )


def resolve(request: Mapping[str, Any], suggest: bool = True) -> Resolution:
    """The stack that would be installed: a named one if one meets the request, else the best set without a lock, else every conflict.

    `suggest=False` leaves out the nearest requests that do fit, which take longer than the rest.
    """
    compat = load()
    candidates = fitting(compat, request, None)
    best = named(candidates[0]) if candidates else compose(request, suggest=suggest)
    offers = [(installable(compat, other), other) for other in best.nearest]
    offers.sort(key=lambda offer: not offer[0])
    stays = texts("driver", request["driver"])[0] if best.fits and "driver" in request else ""
    unmet_gpu = best.status != OK and not best.name and "gpu" in request
    return replace(
        best,
        cpu_form=installable(compat, {**request, "gpu": "none"}) if unmet_gpu else "",
        passed_over=() if best.name else tuple(passed_over(compat, request)),
        nearest=tuple(other for _, other in offers),
        nearest_stacks=tuple(name for name, _ in offers),
        not_checked=tuple(not_checked(request)),
        newer=newer_stack(candidates),
        cards=tuple(cards(compat, request)) if best.fits else (),
        which=() if best.fits else tuple(meanings(compat, request)),
        request=request,
        driver=stays if re.fullmatch(r"\d+(\.\d+)+", stays) else "",
        unmade="" if best.name or not best.fits else no_stack_for(compat, request, best.stack),
    )


def described(request: Mapping[str, Any], host: HostProfile | None) -> dict[str, Any]:
    """The request with what is known of the host, for a command that does not see it."""
    known: dict[str, Any] = {}
    if host and host.os:
        known["os"] = host.os
    if host and host.gpus is not None:
        known["gpu"] = list(dict.fromkeys(host.gpus)) or ["none"]
    if host and host.hadoop:
        known["hadoop"] = host.hadoop
    return {**known, **request}


def own_stack(stack: Mapping[str, Any], request: Mapping[str, Any], inventory: str) -> str:
    """The step to a stack that nobody made yet. One with a TensorFlow of its own needs a commit that no answer knows."""
    name = new_name(stack, request)
    if stack["tensorflow_source"] == "built":
        return f"write {inventory}/stacks/{name}.yml as docs/operate/build.md says, then: scripts/stack lock {name} --stacks {inventory}/stacks"
    return f"scripts/stack new {name} --stacks {inventory}/stacks {arguments(request)}"


def new_name(stack: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    """A free name, as those under stacks/ have them: tf2.13-py39-el8."""
    system = find_system(load(), str(request["os"])) if "os" in request else None
    line = ".".join(stack["tensorflow"].split(".")[:2])
    parts = [f"tf{line}", "" if "cuda" in stack else "cpu", f"py{stack['python'].replace('.', '')}"]
    parts.append(short_name(system.key) if isinstance(system, System) and not system.other else "")
    name, taken = "-".join(part for part in parts if part), stack_names()
    return next(free for number in count(1) if (free := f"{name}-{number}" if number > 1 else name) not in taken)


def installable(compat: Compat, request: Mapping[str, Any]) -> str:
    """The stack with a lock that a request gets; empty if none has one."""
    return next((candidate.name for candidate in fitting(compat, request, None)[:1] if candidate.lock), "")


def passed_over(compat: Compat, request: Mapping[str, Any]) -> Iterator[str]:
    """A site's stacks for this system whose versions do not go together: with the first reason."""
    system = requested_system(compat, request, None)
    for stack in load_stacks():
        if stack.directory.resolve() == DIRECTORY.resolve() or stack.base or system_conflict(stack, system):
            continue
        problem = ConstraintProblem(shared_tables(compat), stack_items(compat, stack))
        if not problem.solutions:
            yield f"Your stack {stack.name} is passed over: {conflicts(problem)[0].message}"


def no_stack_for(compat: Compat, request: Mapping[str, Any], stack: Mapping[str, Any]) -> str:
    """A sentence about an operating system that no stack is made for; empty if one is."""
    system = requested_system(compat, request, None)
    if not isinstance(system, System) or any(short_name(system.key) in entry.data["os"] for entry in load_stacks()):
        return ""
    if "cuda" not in stack:
        return f"No stack is made for {system.label}."
    releases = compat.rows("tensorflow", "releases")
    wheels = any(row["version"] == stack["tensorflow"] and row.get("and_cuda") for row in releases)
    cuda = "CUDA as wheels (tensorflow[and-cuda]) and the driver" if wheels else "driver, CUDA and cuDNN"
    return (
        f"No stack is made for {system.label}, and these playbooks install driver and CUDA on RHEL 7, 8 and 9 only. "
        f"It takes {cuda} installed by you."
    )


def newer_stack(candidates: Sequence[Candidate]) -> str:
    """The first stack after the answer that has a newer TensorFlow and gives up HDFS for it."""
    first = (
        version(candidates[0].stack.data["tensorflow"]) if candidates and candidates[0].stack.data.get("hdfs") else None
    )
    later = [candidate for candidate in candidates[1:] if first and version(candidate.stack.data["tensorflow"]) > first]
    return next((candidate.name for candidate in later if not candidate.stack.data.get("hdfs") and candidate.lock), "")


def not_checked(request: Mapping[str, Any]) -> Iterable[str]:
    """Facts that were not known when the answer was computed, and the option that gives each."""
    if not request.get("os"):
        yield "the operating system (glibc, Python, packages of the driver): give --os"
    if not request.get("gpu"):
        yield "the GPUs: give --gpu, or --gpu none"


def without_lock(compat: Compat, problem: ConstraintProblem) -> Resolution:
    chosen = choose_stack(problem)
    doubts = doubts_without_lock(compat, chosen.stack, problem.items)
    return resolution_of(replace(chosen, warnings=(*chosen.warnings, *doubts)))


def compose(
    request: Mapping[str, Any], host: HostProfile | None = None, compat: Compat | None = None, suggest: bool = True
) -> Resolution:
    """The best complete version set for a request, whether or not anybody has made a lock for it."""
    compat_data = compat or load()
    problem = ConstraintProblem(shared_tables(compat_data), read_request(compat_data, request, host))
    if problem.solutions:
        return without_lock(compat_data, problem)

    def fits(other: dict[str, Any]) -> bool:
        """Whether another request is answered without a doubt: what is offered must be sure."""
        trial = ConstraintProblem(shared_tables(compat_data), read_request(compat_data, other, host))
        stacks = trial.solutions and not without_lock(compat_data, trial).ok and fitting(compat_data, other, host)
        return bool(trial.solutions) and (named(stacks[0]) if stacks else without_lock(compat_data, trial)).ok

    near = nearest_requests(problem, request, fits) if suggest else []
    return Resolution(CONFLICT, conflicts=tuple(conflicts(problem)), nearest=tuple(near))


@dataclass(frozen=True)
class Wheel:
    """A TensorFlow that meets a request, its Pythons there, and whether none of them is the operating system's."""

    version: str
    pythons: tuple[str, ...]
    foreign: bool


def newest_wheel(request: Mapping[str, Any], gpu: bool) -> Wheel | None:
    """The newest release with wheels that meet a request without a doubt, for GPUs or for the CPU."""
    compat = load()
    problem = ConstraintProblem(shared_tables(compat), read_request(compat, request))
    builds = [build for build in problem.builds(problem.solutions) if not build.from_source and build.gpu == gpu]
    builds = [build for build in builds if not any(finding.doubt for finding in problem.findings(build))]
    if not builds:
        return None
    newest = max((build.version for build in builds), key=version)
    pythons = sorted({build.python for build in builds if build.version == newest}, key=version)
    natives = native_pythons(problem)
    return Wheel(newest, tuple(pythons), bool(natives) and not natives & set(pythons))


def unmet(request: Mapping[str, Any], host: HostProfile | None = None, compat: Compat | None = None) -> Resolution:
    """Why no named stack meets the constraints on the host, and the stacks that do fit it."""
    compat_data = compat or load()
    message = but_for_spark(compat_data, request, host)
    urls: tuple[str, ...] = ()
    if not message:
        resolution = compose(request, host, compat_data)
        if not resolution.fits:
            return resolution
        stack, urls, known = resolution.stack, resolution.reasons[0].sources, described(request, host)
        message = (
            f"TensorFlow {stack['tensorflow']} on Python {stack['python']} would meet the request, but no stack under stacks/ does. "
            f"Request less, or make one: {own_stack(stack, known, 'INVENTORY')} (INVENTORY is the directory of the inventory). "
            f"Known stacks: {', '.join(stack_names())}."
        )
    near = tuple({"stack": candidate.name} for candidate in fitting(compat_data, {}, host)[:3])
    return Resolution(CONFLICT, conflicts=(Conflict(tuple(sorted(request)), message, urls),), nearest=near)


def but_for_spark(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> str:
    """A sentence about a stack that meets the request, but is not for the site's own Spark; empty if there is none."""
    if host is None or host.spark is None:
        return ""
    beside = fitting(compat, request, replace(host, spark=None))
    if not beside:
        return ""
    return (
        f"{beside[0].name} would meet the request, but is for Spark {beside[0].stack.data['pyspark']}, and spark_home is Spark {host.spark}. "
        "Remove spark_home from the inventory, and jobs use the stack's own Spark; or request less."
    )
