"""One host's request against one host's facts: which stack, which Python, which environment, or what is wrong.

The resolver decides whether a set fits a host. Hosts that are alike are judged once in a plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from hadoop_dl.data import extras, stacks
from hadoop_dl.data.built import Record
from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostFacts, HostProfile
from hadoop_dl.data.locks import Lock
from hadoop_dl.data.stacks import Stack

if TYPE_CHECKING:
    from hadoop_dl.resolver.named_stacks import Candidate

Json = dict[str, Any]
ENVIRONMENT_GROUPS = ("data_nodes", "edge_nodes", "cdsw_hosts")  # their hosts run jobs or sessions
INPUTS = ("deeplearning_request", "deeplearning_extra_packages")  # the variables that decide what a host gets
verdicts: dict[str, Json] = {}  # of this plan, by the request and the facts that decide


@dataclass
class Target:
    """The stack and environment of a host. Without a stack it gets no environment. `interpreter`: the Python that the lock is for."""

    stack: Stack | None = None
    lock: Lock | None = None
    namer: Lock | None = None  # the lock that names the environment; of two forms, that for GPUs
    python: str = ""
    interpreter: str = ""
    record: Record | None = None  # the wheel that the site built for it
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def environment(self) -> str:
        """The directory's name, <stack>-<digest>."""
        return f"{self.namer.stack}-{self.namer.digest}" if self.namer else ""

    @property
    def parts(self) -> tuple[str, ...]:
        """The roles of the environment for which the lock has packages."""
        return self.lock.components if self.lock else ()

    @property
    def data(self) -> Json:
        """The stack's file, as the plan publishes it."""
        return self.stack.data if self.stack else {}

    @property
    def part(self) -> Json:
        """The inputs of the environment's roles, in the host's `plan`."""
        return {
            "stack": self.published,
            "python": self.python,
            "interpreter": self.interpreter,
            "environment": self.environment,
            "parts": list(self.parts),
        }

    @property
    def published(self) -> Json:
        """The same with what the site's own wheel is made of, for the report of verify."""
        return {**self.data, "built": self.record.describe()} if self.record else self.data

    @cached_property
    def stack_text(self) -> str:
        """The stack as sorted JSON, as digests have it."""
        return json.dumps(self.data, sort_keys=True, default=str)


def target_for(variables: Mapping[str, Any], facts: HostFacts, groups: Sequence[str], name: str = "") -> Target:
    """The host's deeplearning_request on this host, with every reason why it does not fit.

    name: the stack that constraints mean on all hosts which ask the same; without it, the best one for this host.
    """
    target = Target()
    if not set(ENVIRONMENT_GROUPS) & set(groups):
        return target
    request = variables.get("deeplearning_request")
    if not request or not isinstance(request, (str, Mapping)):
        target.problems.append(unset_sentence())
        return target
    admitted: Sequence[str] | None = None
    driver: Json | None = None
    if isinstance(request, Mapping):
        names, problems = ([name], []) if name else stacks_for(request, [facts.profile])
        target.problems += problems
        if not names:
            return target
        answer = verdict(dict(request), facts.profile)
        admitted, driver = answer["pythons"][names[0]], answer["drivers"][names[0]]
        request = names[0]
    try:
        request = extras.requested_name(request, variables.get("deeplearning_extra_packages"))
        named_stack = stacks.load_stack(request)
        stack = (None if facts.nvidia.count else named_stack.without_gpus) or named_stack
    except (stacks.UnknownStack, extras.ExtrasError) as error:
        target.problems.append(str(error))
        return target
    target.stack = stack
    if facts.os.short not in stack.data["os"]:
        target.problems.append(
            f"{stack.name} is made for {', '.join(stack.data['os'])}, but the host runs {facts.os.name}. "
            "Choose a stack for it: grep '^os:' stacks/*.yml"
        )
    else:
        judged = verdict(stack, facts.profile)
        # The GPUs of this host may need a newer driver than CUDA does, another branch, or the open kernel modules.
        driver = judged.get("driver", {}) if driver is None else driver
        target.stack = replace(stack, data={**stack.data, **driver})
        target.problems += [f"{stack.name}: {sentence}" for sentence in judged["problems"]]
        target.warnings += judged["warnings"]
    admitted = stack.pythons if admitted is None else admitted
    usable = [python for python in admitted if python in facts.pythons]
    if not usable:
        target.problems.append(
            f"{stack.name} requires Python {' or '.join(admitted)} on the host, but there is "
            f"{', '.join(sorted(facts.pythons)) or 'none'}. Install python{admitted[0]} from the operating system's repositories."
        )
        return target
    target.python, target.interpreter = usable[0], facts.pythons[usable[0]]
    target.record = stack.record(target.python)
    if target.record or not stack.is_built:  # there is no environment before there is a wheel
        target.lock, target.namer = locked(stack, target.python), locked(named_stack, target.python)
    return target


def unset_sentence() -> str:
    return (
        'deeplearning_request must be the name of a stack, or constraints such as {tensorflow: "1.15", python: "2.7"}, '
        f"but is not set. Known stacks: {', '.join(stacks.stack_names())}. Set it in group_vars/all."
    )


@cache
def locked(stack: Stack, python: str) -> Lock:
    """A stack's lock, read once for all hosts."""
    return stack.lock(python)


def stacks_for(request: Mapping[str, Any], profiles: Iterable[HostProfile]) -> tuple[list[str], list[str]]:
    """The named stacks that meet these constraints on all of these hosts, the best first; or why there is none.

    A host with GPUs speaks first: what fits it comes in its order, if it fits the others too. If none has GPUs,
    only forms for the CPU count, as they do for `resolve --gpu none`.
    """
    ordered = sorted(profiles, key=lambda profile: not profile.gpus)
    judged = [verdict(dict(request), profile) for profile in ordered]
    problems = sorted({sentence for answer in judged for sentence in answer["problems"]})
    if problems or not judged:
        return [], problems
    form = "gpu" if ordered[0].gpus else "cpu"
    problems = [] if form == "gpu" else sorted({text for answer in judged for text in answer["cpu_problems"]})
    names = [name for name in judged[0]["names"][form] if all(name in answer["names"][form] for answer in judged)]
    return ([], problems) if problems else (names, [])


def verdict(request: Stack | Json, profile: HostProfile) -> Json:
    """The resolver's verdict on a request on a host: {"problems": [...], "warnings": [...]}."""
    key = json.dumps([request.name if isinstance(request, Stack) else request, vars(profile)], sort_keys=True)
    if key not in verdicts:
        verdicts[key] = judge(request, profile)
    return verdicts[key]


def judge(request: Stack | Json, profile: HostProfile) -> Json:
    from hadoop_dl import resolver  # a plan without an environment does not load it
    from hadoop_dl.resolver import named_stacks
    from hadoop_dl.resolver.request import read_request

    # A Python that the host lacks is reported once, by target_for, with the package to install.
    host = replace(profile, pythons=None)
    compat = load()
    if isinstance(request, Stack):
        cpu_warnings: list[str] = []
        if host.gpus and "cuda" not in request.data:
            cpu_warnings = [
                f"{request.name} is for the CPU and the host has GPUs, which TensorFlow does not use. "
                "Choose a stack for GPUs to use them: scripts/stack list"
            ]
            host = replace(host, gpus=None)
        problems = sentences(conflict.message for conflict in named_stacks.part_conflicts(compat, request, host))
        if problems:
            return {"driver": {}, "problems": problems, "warnings": cpu_warnings}
        fit = named_stacks.try_stack(compat, request, host)
        warnings = cpu_warnings + sentences(finding.text for finding in fit.chosen.warnings)
        return {"driver": fit.driver, "problems": [clash.message for clash in fit.conflicts], "warnings": warnings}
    try:
        all_items = read_request(compat, request)
        meeting = named_stacks.candidates(compat, request, profile)
        fits = [fit for fit in meeting if not fit.doubtful]
        if meeting and not fits:
            return {"names": {}, "problems": [unsure_sentence(meeting[0])], "warnings": []}
        if fits:
            names = {
                form: [fit.name for fit in named_stacks.ordered(compat, request, profile, fits, bare=form == "cpu")]
                for form in ("gpu", "cpu")
            }
            needed = not (profile.gpus or names["cpu"])  # a cluster without any GPU gets these
            cpu_problems = resolver.unmet({**request, "gpu": "none"}, host, compat).problems if needed else []
            pythons = {fit.name: named_stacks.pythons_for(fit.stack, all_items) for fit in fits}
            drivers = {fit.name: fit.driver for fit in fits}
            return {
                "names": names,
                "pythons": pythons,
                "drivers": drivers,
                "cpu_problems": cpu_problems,
                "problems": [],
                "warnings": [],
            }
        answer = resolver.unmet(request, host, compat)
    except resolver.Misuse as error:
        return {"names": {}, "problems": [str(error)], "warnings": []}
    near = [", ".join(f"{key}={value}" for key, value in nearest_request.items()) for nearest_request in answer.nearest]
    suffix = f" Nearest that fits: {'; or '.join(near[:2])}." if near else ""
    return {"names": {}, "problems": [sentence + suffix for sentence in answer.problems], "warnings": []}


def unsure_sentence(candidate: Candidate) -> str:
    """Constraints choose only what is sure; who requests a stack by its name has accepted the doubt."""
    doubts = "; ".join(finding.text for finding in candidate.chosen.warnings if finding.doubt)
    name = candidate.name
    return f"{name} meets the request, but this is not sure: {doubts}. To accept it set deeplearning_request: {name}"


def sentences(texts: Iterable[str]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(texts))
