"""The stack for a request that can be met: the newest TensorFlow that is left, and the best choice of every part."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.resolver.findings import Finding, sources
from hadoop_dl.resolver.hosts import System
from hadoop_dl.resolver.parts import Choice
from hadoop_dl.resolver.problem import Problem
from hadoop_dl.resolver.rules.tensorflow import cpu_features, loading_findings, system_pythons
from hadoop_dl.resolver.universe import Core
from hadoop_dl.resolver.versions import version

KEYS = (
    "tensorflow",
    "tensorflow_package",
    "tensorflow_source",
    "python",
    "cuda",
    "cudnn",
    "nccl",
    "driver_min",
    "driver_branch",
    "driver_module",
    "bazel",
    "gcc",
    "keras",
    "tensorflow_io",
    "tensorflowonspark",
    "pyspark",
    "java",
    "glibc_min",
    "cpu_features",
    "hdfs",
    "kafka",
)


def native_pythons(problem: Problem) -> set[str]:
    """The Pythons that the operating system itself brings."""
    return {
        python
        for item in problem.items
        if isinstance(item.thing, System)
        for python in system_pythons(problem.universe, item.thing)
    }


def without_gpu(problem: Problem) -> bool:
    """Whether the host was read and has no GPU: then a CPU build is the better choice."""
    return any(isinstance(item.thing, HostProfile) and item.thing.gpus == () for item in problem.items)


def preferred(problem: Problem, mask: int) -> Core:
    """A wheel before a build, a Python of the operating system before another, then the newest; nothing doubtful if there is a way.

    For GPUs unless the host was read and has none.
    """
    natives, cpu = native_pythons(problem), without_gpu(problem)
    cores = list(problem.cores(mask))
    cores = [core for core in cores if not core.built] or cores
    place = {text: number for number, text in enumerate(dict.fromkeys(core.version for core in cores))}

    def rank(core: Core) -> tuple[Any, ...]:
        package = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu").index(core.package)
        foreign = bool(natives) and core.python not in natives
        built_cuda = core.gpu and not core.tested
        return foreign, place[core.version], core.gpu == cpu, built_cuda, package if core.gpu else -package, core.index

    ordered = sorted(cores, key=rank)
    alike = [core for core in ordered if core.gpu == ordered[0].gpu]  # a doubt about CUDA is no reason for a CPU build
    return next((core for core in alike if not any(one.doubt for one in problem.findings(core))), ordered[0])


def pins(core: Core) -> dict[str, str]:
    """Limits that a wheel needs beside it and does not state itself, by package."""
    if core.built:
        return {}
    own = core.release.get("requires") or {}
    return {name: text for name, text in core.line["extra_pins"].items() if not narrower(str(own.get(name, "")), text)}


def narrower(stated: str, limit: str) -> bool:
    """Whether what a wheel states already keeps below a limit."""
    top = re.search(r"<=?(\d[\d.]*)", limit)
    tops = re.findall(r"<=?(\d[\d.]*\d)|~=(\d+)\.", stated.partition("|")[0].partition(";")[0])
    return top is not None and any(version(upper) <= version(top[1]) for upper, _ in tops if upper)


def core_choice(problem: Problem, core: Core, mask: int) -> Choice:
    """The values that belong to the TensorFlow itself."""
    features, row = cpu_features(problem.universe, core)
    values: dict[str, Any] = {
        "tensorflow": core.version,
        "tensorflow_package": core.package,
        "tensorflow_source": core.source,
        "python": core.python,
        "cuda": core.cuda,
        "nccl": core.nccl,
        "glibc_min": core.glibc_min,
        "cpu_features": list(features) or None,
    }
    choice = Choice({key: value for key, value in values.items() if value is not None})
    say = choice.reasons.append
    cores = list(problem.cores(mask))
    say(
        Finding(
            f"tensorflow {core.version}: the newest that fits the request{' on a Python of the operating system' if native_pythons(problem) else ''}",
            sources(core.release),
        )
    )
    how = "no wheel fits the request, so it is built" if core.built else "a wheel on PyPI fits"
    if core.built and any(item.key == "tensorflow_source" for item in problem.items):
        how = "requested"
    say(Finding(f"tensorflow_source {core.source}: {how}", sources(core.release)))
    form = f"built for CUDA {core.cuda}" if core.gpu else "the CPU form"
    say(Finding(f"tensorflow_package {core.package}: {form}", sources(core.release)))
    pythons = sorted({other.python for other in cores if other.version == core.version}, key=version)
    native = core.python in native_pythons(problem)
    say(
        Finding(
            f"python {core.python}: {'of the operating system' if native else 'the newest'}, among {', '.join(pythons)}",
            sources(core.release),
        )
    )
    if core.cuda:
        toolkit = problem.universe.toolkits[core.cuda]
        said = (
            "what the wheel is linked for"
            if not core.built
            else "tested for this line"
            if core.tested
            else "built so by others"
        )
        say(Finding(f"cuda {core.cuda}: {said}", sources(core.line, toolkit)))
        if not core.tested:
            choice.warnings.append(
                Finding(
                    f"TensorFlow {core.name} was tested with CUDA {core.line['cuda']}; a build with CUDA {core.cuda} is outside the tested configurations",
                    sources(problem.universe.other_cuda(core), core.line),
                    False,
                )
            )
    if core.nccl:
        say(Finding(f"nccl {core.nccl}: the and-cuda extra asks for {core.line['nccl']}", sources(core.line)))
    if core.glibc_min:
        say(Finding(f"glibc_min {core.glibc_min}: the newest symbol version in the wheel", sources(core.line)))
    if row and features:
        say(Finding(f"cpu_features {', '.join(features)}: compiled into the wheel", sources(row)))
    if core.built and not any(item.key in ("tensorflow_source", "bazel", "gcc") for item in problem.items):
        said = f"No wheel fits this request: TensorFlow {core.version} must be built from source, on a build host, for hours"
        choice.warnings.append(Finding(said, sources(core.line), False))
    choice.warnings += [finding for finding in problem.findings(core) if not finding.refuses]
    return choice


@dataclass(frozen=True)
class Answer:
    """The stack, the reason for each of its values, what to know about it, and the limits that pip needs."""

    stack: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    pins: dict[str, str] = field(default_factory=dict)
    built: bool = False


def answer(problem: Problem, mask: int) -> Answer:
    """The best stack among the TensorFlows of a set."""
    core = preferred(problem, mask)
    choices = [core_choice(problem, core, mask)]
    for place, part in enumerate(problem.engine.parts):
        own = problem.of_part(part, problem.all)
        choice = problem.choice(place, part.classify(core), core, own)
        if choice is not None:
            choices.append(choice)
        # The site speaks about this core, not about the first of its class.
        if part.level == "site" and own:
            said = part.best(core, [problem.items[number] for number in sorted(own)])
            choices[-1] = said or Choice()
    values = {key: value for choice in choices for key, value in choice.values.items()}
    stack = {key: values[key] for key in KEYS if key in values}
    reasons = [finding for choice in choices for finding in choice.reasons]
    reasons.sort(key=lambda finding: order(finding.text))
    warnings = list(dict.fromkeys(finding for choice in choices for finding in choice.warnings))
    read_by = [name for name in ("hdfs", "kafka") if stack.get(name) and core.line[name]["prebuilt"]]
    warnings += loading_findings(problem.universe, core, read_by, problem.items)
    if (
        not core.gpu
        and not any(item.key == "gpu" and item.absent for item in problem.items)
        and not without_gpu(problem)
    ):
        asked = any(item.key == "tensorflow_package" or (item.key == "cuda" and item.absent) for item in problem.items)
        if not asked:
            warnings.append(
                Finding(
                    f"Only the CPU form of TensorFlow {core.version} fits this request", sources(core.release), False
                )
            )
    return Answer(stack, tuple(reasons), tuple(warnings), pins(core), core.built)


def order(text: str) -> int:
    name = text.split(" ")[0]
    return KEYS.index(name) if name in KEYS else len(KEYS)
