"""The stack for a request that can be met: the newest remaining TensorFlow, and the best choice of every part."""

import re
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.builds import TensorflowBuild
from hadoop_dl.resolver.constraint_problem import ConstraintProblem
from hadoop_dl.resolver.findings import Finding, sources, warning
from hadoop_dl.resolver.hosts import System
from hadoop_dl.resolver.parts import Choice
from hadoop_dl.resolver.request import COMPONENTS
from hadoop_dl.resolver.rules.tensorflow import cpu_features, loading_findings, system_pythons
from hadoop_dl.resolver.versions import version

# Of an answer.
KEYS = tuple(name for name in COMPONENTS if name not in ("driver", "yarn_gpu", "cdsw"))


def native_pythons(problem: ConstraintProblem) -> set[str]:
    """The Pythons of the operating system's own packages."""
    return {
        python
        for item in problem.items
        if isinstance(item.subject, System)
        for python in system_pythons(problem.catalog, item.subject)
    }


def without_gpu(problem: ConstraintProblem) -> bool:
    """Whether the host was read and has no GPU: then a CPU build is the better choice."""
    return any(isinstance(item.subject, HostProfile) and item.subject.gpus == () for item in problem.items)


def preferred(problem: ConstraintProblem) -> TensorflowBuild:
    """A wheel before a build from source, a Python of the operating system before another, then the newest; without doubts if possible.

    With CUDA, unless the host was read and has no GPU.
    """
    natives, cpu = native_pythons(problem), without_gpu(problem)
    builds = list(problem.builds(problem.solutions))
    builds = [build for build in builds if not build.from_source] or builds
    place = {text: number for number, text in enumerate(dict.fromkeys(build.version for build in builds))}

    def rank(build: TensorflowBuild) -> tuple[Any, ...]:
        package = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu").index(build.package)
        foreign = bool(natives) and build.python not in natives
        built_cuda = build.gpu and not build.tested
        return (
            foreign,
            place[build.version],
            build.gpu == cpu,
            built_cuda,
            package if build.gpu else -package,
            build.index,
        )

    ordered = sorted(builds, key=rank)
    # A doubt about a build with CUDA does not make a CPU build the better choice.
    alike = [build for build in ordered if build.gpu == ordered[0].gpu]
    return next((build for build in alike if not any(finding.doubt for finding in problem.findings(build))), ordered[0])


def pins(build: TensorflowBuild) -> dict[str, str]:
    """Version limits that pip needs for a wheel and that its metadata lacks, by package."""
    if build.from_source:
        return {}
    own = build.release.get("requires") or {}
    return {name: text for name, text in build.line["extra_pins"].items() if not narrower(str(own.get(name, "")), text)}


def narrower(requirement: str, limit: str) -> bool:
    """Whether the wheel's own requirement has this upper limit or a lower one."""
    top = re.search(r"<=?(\d[\d.]*)", limit)
    tops = re.findall(r"<=?(\d[\d.]*\d)|~=(\d+)\.", requirement.partition("|")[0].partition(";")[0])
    return top is not None and any(version(upper) <= version(top[1]) for upper, _ in tops if upper)


def build_choice(problem: ConstraintProblem, build: TensorflowBuild) -> Choice:
    """The values of the TensorFlow build itself."""
    features, row = cpu_features(problem.catalog, build)
    values: dict[str, Any] = {
        "tensorflow": build.version,
        "tensorflow_package": build.package,
        "tensorflow_source": build.source,
        "python": build.python,
        "cuda": build.cuda,
        "nccl": build.nccl,
        "glibc_min": build.glibc_min,
        "cpu_features": list(features) or None,
    }
    choice = Choice({key: value for key, value in values.items() if value is not None})
    say = choice.reasons.append
    say(
        Finding(
            f"tensorflow {build.version}: the newest that fits the request{' on a Python of the operating system' if native_pythons(problem) else ''}",
            sources(build.release),
        )
    )
    reason = "no wheel fits the request, so it is built" if build.from_source else "a wheel on PyPI fits"
    if build.from_source and any(item.key == "tensorflow_source" for item in problem.items):
        reason = "requested"
    say(Finding(f"tensorflow_source {build.source}: {reason}", sources(build.release)))
    form = f"built for CUDA {build.cuda}" if build.gpu else "the CPU form"
    say(Finding(f"tensorflow_package {build.package}: {form}", sources(build.release)))
    candidates = problem.builds(problem.solutions)
    pythons = sorted({candidate.python for candidate in candidates if candidate.version == build.version}, key=version)
    native = build.python in native_pythons(problem)
    say(
        Finding(
            f"python {build.python}: {'of the operating system' if native else 'the newest'}, among {', '.join(pythons)}",
            sources(build.release),
        )
    )
    if build.cuda:
        toolkit = problem.catalog.toolkits[build.cuda]
        text = (
            "what the wheel is linked for"
            if not build.from_source
            else "tested for this line"
            if build.tested
            else "built so by others"
        )
        say(Finding(f"cuda {build.cuda}: {text}", sources(build.line, toolkit)))
        if not build.tested:
            choice.warnings.append(
                warning(
                    f"TensorFlow {build.name} was tested with CUDA {build.line['cuda']}; a build with CUDA {build.cuda} is outside the tested configurations",
                    sources(problem.catalog.other_cuda(build), build.line),
                )
            )
    if build.nccl:
        say(Finding(f"nccl {build.nccl}: the and-cuda extra requires {build.line['nccl']}", sources(build.line)))
    if build.glibc_min:
        say(Finding(f"glibc_min {build.glibc_min}: the newest symbol version in the wheel", sources(build.line)))
    if row and features:
        say(Finding(f"cpu_features {', '.join(features)}: compiled into the wheel", sources(row)))
    if build.from_source and not any(item.key in ("tensorflow_source", "bazel", "gcc") for item in problem.items):
        text = f"No wheel fits this request: TensorFlow {build.version} must be built from source, on a build host, for hours"
        choice.warnings.append(warning(text, sources(build.line)))
    choice.warnings += [finding for finding in problem.findings(build) if not finding.refuses]
    return choice


@dataclass(frozen=True)
class ChosenStack:
    """The stack, the reason for each of its values, what to know about it, and the limits that pip needs."""

    stack: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    pins: dict[str, str] = field(default_factory=dict)
    built: bool = False


def choose_stack(problem: ConstraintProblem) -> ChosenStack:
    """The best stack of a request that can be met."""
    build = preferred(problem)
    choices = [build_choice(problem, build)]
    for place, part in enumerate(problem.tables.parts):
        own = problem.own[place]
        choice = problem.choice(place, build, own)
        if choice is not None:
            choices.append(choice)
        # The site's messages are about this build, not about the first one of its class.
        if part.level == "site" and own:
            site_choice = part.best(build, [problem.items[number] for number in sorted(own)])
            choices[-1] = site_choice or Choice()
    values = {key: value for choice in choices for key, value in choice.values.items()}
    stack = {key: values[key] for key in KEYS if key in values}
    reasons = [finding for choice in choices for finding in choice.reasons]
    reasons.sort(key=lambda finding: order(finding.text))
    warnings = list(dict.fromkeys(finding for choice in choices for finding in choice.warnings))
    read_by = [name for name in ("hdfs", "kafka") if stack.get(name) and build.line[name]["prebuilt"]]
    warnings += loading_findings(problem.catalog, build, read_by, problem.items)
    if (
        not build.gpu
        and not any(item.key == "gpu" and item.absent for item in problem.items)
        and not without_gpu(problem)
    ):
        on_cpu = any(item.key == "tensorflow_package" or (item.key == "cuda" and item.absent) for item in problem.items)
        if not on_cpu:
            warnings.append(
                warning(f"Only the CPU form of TensorFlow {build.version} fits this request", sources(build.release))
            )
    return ChosenStack(stack, tuple(reasons), tuple(warnings), pins(build), build.from_source)


def order(text: str) -> int:
    name = text.split(" ")[0]
    return KEYS.index(name) if name in KEYS else len(KEYS)
