"""Which stack under stacks/ a host gets: only those have locks, so only those can be installed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from hadoop_dl.data.compat import Compat
from hadoop_dl.data.host_facts import HostProfile
from hadoop_dl.data.locks import read_lock
from hadoop_dl.data.stacks import Stack, load_stacks
from hadoop_dl.resolver.choose_stack import KEYS, ChosenStack, choose_stack
from hadoop_dl.resolver.constraint_problem import ConstraintProblem, shared_tables
from hadoop_dl.resolver.explain import Conflict, conflicts
from hadoop_dl.resolver.findings import Finding, sources
from hadoop_dl.resolver.gpus import Gpu
from hadoop_dl.resolver.hosts import Hadoop, System, Unknown, find_system
from hadoop_dl.resolver.request import Item, make_item, read_request
from hadoop_dl.resolver.rules.tensorflow import native, system_pythons
from hadoop_dl.resolver.versions import cc, version

BY_HOST = ("driver_min", "driver_branch", "driver_module")  # keys of the driver that a host decides
READERS = ("hdfs", "kafka")
EXACT = tuple(key for key in KEYS if key not in ("driver_min", "driver_branch", "glibc_min", "cpu_features", *READERS))
OWN = (*EXACT, "glibc_min")  # keys of a request that a stack's file has
PARTS = (
    ("tensorflow", "tensorflow_package", "tensorflow_source"),
    ("driver_module",),
    ("pyspark", "java"),
)


@dataclass
class Candidate:
    """A named stack against a host: what is wrong with it there, or the versions that the host gets and what to know."""

    stack: Stack
    python: str = ""
    conflicts: tuple[Conflict, ...] = ()
    problem: ConstraintProblem | None = None

    @property
    def name(self) -> str:
        return self.stack.name

    @cached_property
    def chosen(self) -> ChosenStack:
        """The versions, with the driver that this host's GPUs require; computed on first use."""
        if self.problem is None:
            return ChosenStack()
        running = any(item.host_fact == "driver" for item in self.problem.items)
        problem = self.problem if running else self.without_driver(self.problem)
        pick = choose_stack(problem)
        content = {**self.stack.data, "python": self.python}
        content |= {key: pick.stack[key] for key in BY_HOST if key in pick.stack}
        return replace(pick, stack=content, reasons=tuple(self.reason(finding, content) for finding in pick.reasons))

    @property
    def inputs(self) -> list[str]:
        """Lines for the inventory that the plan asks for beside the request."""
        if self.problem is None or "cuda" not in self.stack.data:
            return []
        lines = []
        items = self.problem.items
        installed = any(item.key == "driver" or item.host_fact == "driver" for item in items)
        if not installed and any(isinstance(item.subject, Gpu) and item.subject.subnet_manager for item in items):
            lines.append(
                "nvidia_driver_version: none  # install driver, fabric manager and nvlsm by NVIDIA's guide first"
            )
        if any(isinstance(item.subject, Gpu) and item.subject.virtual for item in items):
            lines.append("nvidia_driver_version: none  # install the vGPU's guest driver and its licence first")
        return lines

    @cached_property
    def needs_newer_driver(self) -> bool:
        """Whether the driver that runs on the host is too old for it."""
        subjects = [item.subject for item in self.problem.items] if self.problem else []
        running = next((host.driver for host in subjects if isinstance(host, HostProfile) and host.driver), "")
        return bool(running) and version(running) < version(self.chosen.stack.get("driver_min", "0"))

    @cached_property
    def driver(self) -> dict[str, Any]:
        """The driver for the plan: the branch does not depend on the driver that runs."""
        driver_values = {key: self.chosen.stack[key] for key in BY_HOST if key in self.chosen.stack}
        if self.problem and "driver_branch" in driver_values:
            driver_values["driver_branch"] = choose_stack(self.without_driver(self.problem)).stack["driver_branch"]
        return driver_values

    def without_driver(self, problem: ConstraintProblem) -> ConstraintProblem:
        """The same for a host on which no driver runs. If no branch was requested, the stack's own comes first."""
        items = [item for item in problem.items if item.host_fact != "driver"]
        branch = self.stack.data.get("driver_branch")
        if branch and not any(item.key in ("driver", "driver_branch") for item in items):
            preferred = make_item(problem.catalog.compat, "driver_branch", str(branch))
            tried = ConstraintProblem(problem.tables, [*items, preferred])
            if tried.solutions:  # else its cards need an older branch
                return tried
        return ConstraintProblem(problem.tables, items)

    def reason(self, finding: Finding, content: Mapping[str, Any]) -> Finding:
        """A reason for the stack's own value: its lock may need more than TensorFlow does, such as a newer glibc."""
        key, _, value = finding.text.partition(":")[0].partition(" ")
        own = content.get(key)
        if key not in OWN or not isinstance(own, str) or own == value:
            return finding
        return Finding(f"{key} {own}: as {self.name} has it", tuple(content["sources"][:2]))

    @cached_property
    def has_untried_spark(self) -> bool:
        """Whether it has a Spark that was not run on this Hadoop."""
        hadoops = (
            [item.subject for item in self.problem.items if isinstance(item.subject, Hadoop)] if self.problem else []
        )
        return any(hadoop.is_untried(self.stack.data.get("pyspark", "0")) for hadoop in hadoops)

    @cached_property
    def doubtful(self) -> bool:
        return any(finding.doubt for finding in self.chosen.warnings)

    @property
    def lock(self) -> Path | None:
        """The lock that it is installed from; None if it was not made yet."""
        path = self.stack.lock_path(self.python)
        return path if path.is_file() else None


def as_request(stack: Mapping[str, Any]) -> dict[str, Any]:
    """A stack file as a request: all its versions, exactly. Proprietary kernel modules give way to GPUs that need the open ones."""
    request = {name: stack[name] for name in EXACT if name in stack}
    if request.get("driver_module") == "proprietary":
        del request["driver_module"]
    return request | {name: True for name in READERS if stack.get(name)}


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
def stack_items(compat: Compat, stack: Stack) -> list[Item]:
    """A stack file's versions as items of a request; read once, because every host is compared with every stack."""
    return as_items(compat, as_request(stack.data))


def as_items(compat: Compat, request: Mapping[str, Any]) -> list[Item]:
    """The items of a stack's request. What it can read is not what the site's file system must be."""
    items = read_request(compat, request)
    return [replace(item, levels=("tensorflow_io",)) if item.key == "hdfs" else item for item in items]


@lru_cache(maxsize=256)
def locked_cuda(path: Path, stack: str, python: str) -> str:
    """The CUDA, as major.minor, that a lock has as wheels; empty if it has none."""
    return read_lock(path, stack, python).cuda if path.is_file() else ""


def beyond(
    compat: Compat, cuda: str, tensorflow: str, items: Iterable[Item]
) -> tuple[list[Gpu], Mapping[str, Any], Mapping[str, Any]]:
    """The GPUs for which neither this TensorFlow's wheel nor this CUDA has machine code; and the rows of both."""
    catalog = shared_tables(compat).catalog
    toolkit = catalog.toolkits.get(cuda)
    line = next((row for row in catalog.lines if tensorflow.startswith(f"{row['line']}.")), None)
    if toolkit is None or line is None:
        return [], {}, {}
    gpus = [item.subject for item in items if isinstance(item.subject, Gpu)]
    return [gpu for gpu in gpus if gpu.capability > cc(toolkit["nvcc_max_cc"]) and not native(line, gpu)], toolkit, line


def doubts_without_lock(compat: Compat, stack: Mapping[str, Any], items: Iterable[Item]) -> list[Finding]:
    """GPUs beyond the CUDA of versions without a lock: a lock must have a newer one, and nobody made it yet."""
    late, toolkit, line = beyond(compat, stack.get("cuda", ""), stack["tensorflow"], items)
    toolkits = shared_tables(compat).catalog.toolkits
    notes = []
    for gpu in late:
        later = [text for text, row in toolkits.items() if cc(row["nvcc_max_cc"]) >= gpu.capability]
        least = min(later, key=version, default="")
        capability = ".".join(str(part) for part in gpu.capability)
        text = f"CUDA {stack['cuda']} ends at capability {toolkit['nvcc_max_cc']}, but {gpu.name} has {capability}"
        text += f": lock the wheels of CUDA {least} or later, with a cuDNN for it" if least else ""
        notes.append(Finding(text, sources(toolkit, line), refuses=False, doubt=True))
    return notes


def lock_conflicts(compat: Compat, stack: Stack, python: str, items: Iterable[Item]) -> list[Conflict]:
    """GPUs for which the wheel has no machine code, and the CUDA libraries that the lock pins have none either."""
    cuda = locked_cuda(stack.lock_path(python), stack.name, python)
    late, toolkit, line = beyond(compat, cuda, stack.data["tensorflow"], items)
    return [
        Conflict(
            ("gpu",),
            f"{stack.name} has no code for {gpu.name}: its lock has CUDA {cuda}, which ends at capability {toolkit['nvcc_max_cc']}",
            sources(toolkit, line),
        )
        for gpu in late
    ]


def pythons_for(stack: Stack, items: Iterable[Item] = ()) -> list[str]:
    """A stack's Pythons that a request admits, the preferred one first."""
    pins = [item for item in items if item.key == "python"]
    return [python for python in stack.pythons if all(item.accepts(python) for item in pins)]


def known_pythons(compat: Compat, system: System | Unknown | None, host: HostProfile | None) -> Sequence[str] | None:
    """The Pythons of the host, or those that its operating system's vendor has; None if neither is known."""
    if host and host.pythons is not None:
        return host.pythons
    return system_pythons(shared_tables(compat).catalog, system) if isinstance(system, System) else None


def python_for(stack: Stack, available_pythons: Sequence[str] | None, items: Iterable[Item] = ()) -> str:
    """The first of the stack's Pythons that is there; the preferred one if none is, or if that is not known."""
    pythons = pythons_for(stack, items)
    return next((text for text in pythons if available_pythons is None or text in available_pythons), pythons[0])


def try_stack(compat: Compat, stack: Stack, host: HostProfile | None) -> Candidate:
    """One named stack on a host, with everything that is wrong with it there."""
    system = requested_system(compat, {}, host)
    python = python_for(stack, known_pythons(compat, system, host))
    refusals = system_conflict(stack, system)
    problem = ConstraintProblem(shared_tables(compat), read_request(compat, {}, host) + stack_items(compat, stack))
    refusals += lock_conflicts(compat, stack, python, problem.items) if problem.solutions else conflicts(problem)
    if refusals:
        return Candidate(stack, conflicts=tuple(refusals))
    return Candidate(stack, python, problem=problem)


def part_conflicts(compat: Compat, stack: Stack, host: HostProfile) -> list[Conflict]:
    """Why a named stack does not fit a host, part by part: a stack is consistent in itself, so any conflict comes from the host.

    A request for all versions at once would also list how they depend on each other.
    """
    complete = ConstraintProblem(shared_tables(compat), read_request(compat, {}, host) + stack_items(compat, stack))
    if complete.solutions:
        return lock_conflicts(compat, stack, python_for(stack, host.pythons), complete.items)
    exact = as_request(stack.data)
    refusals: list[Conflict] = []
    for part in PARTS:
        subset = {key: exact[key] for key in part if key in exact}
        if not subset:
            continue
        problem = ConstraintProblem(shared_tables(compat), read_request(compat, {}, host) + as_items(compat, subset))
        refusals += conflicts(problem) if not problem.solutions else []
    return refusals


def has_requested(stack: Stack, items: Sequence[Item]) -> bool:
    """Whether the stack's file has everything that was requested: what it leaves out is not installed."""
    content = stack.data
    for item in items:
        if item.key in READERS and item.flag and not content.get(item.key):
            return False
        if item.key == "python" and not pythons_for(stack, items):
            return False
        if item.key in OWN and item.specs:
            own = content.get(item.key)
            own = ["proprietary", "open"] if (item.key, own) == ("driver_module", "proprietary") else own  # a default
            if not any(item.accepts(value) for value in (own if isinstance(own, list) else [own])):
                return False
    return True


def requested_system(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> System | Unknown | None:
    system_name = request.get("os") or (host.os if host else None)
    return find_system(compat, str(system_name)) if system_name else None


def candidates(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> list[Candidate]:
    """The named stacks that meet a request on a host, in no order."""
    system = requested_system(compat, request, host)
    items = read_request(compat, request, replace(host, pythons=None) if host else None)
    host_pythons = known_pythons(compat, system, host)
    matches = []
    for stack in load_stacks():
        if system_conflict(stack, system) or stack.base:
            continue  # A stack with packages of the site is chosen by its name only.
        python = python_for(stack, host_pythons, items) if pythons_for(stack, items) else ""
        carried = locked_cuda(stack.lock_path(python), stack.name, python) if python else ""
        # A stack whose lock has another CUDA than TensorFlow's own is that CUDA's as well.
        asked = [
            item for item in items if not (item.key == "cuda" and item.specs and carried and item.accepts(carried))
        ]
        if not has_requested(stack, asked):
            continue
        problem = ConstraintProblem(shared_tables(compat), asked + stack_items(compat, stack))
        if problem.solutions and not lock_conflicts(compat, stack, python, items):
            matches.append(Candidate(stack, python, problem=problem))
    return matches


def fitting(compat: Compat, request: Mapping[str, Any], host: HostProfile | None) -> list[Candidate]:
    """The named stacks that meet a request on a host, the best first. resolve and the plan both take this order."""
    bare = host is not None and host.gpus == ()
    return ordered(compat, request, host, candidates(compat, request, host), bare)


def ordered(
    compat: Compat, request: Mapping[str, Any], host: HostProfile | None, fits: Iterable[Candidate], bare: bool
) -> list[Candidate]:
    """Candidates, the best first.

    bare: only those for hosts without GPUs. With a lock before without, a prebuilt TensorFlow before a build, the form for the GPUs before the
    other, one for the driver that runs before one that needs a newer, no doubt before a doubt, a Python that the host or its operating system has before another, on a Hadoop
    cluster one that reads HDFS before one that does not, with TensorFlowOnSpark before without, a Spark that was run on the Hadoop before another, then the newest, and with the CUDA that TensorFlow was tested with before another.
    """
    system = requested_system(compat, request, host)
    host_pythons = known_pythons(compat, system, host)
    cluster = bool(request.get("hadoop") or (host and host.hadoop))

    def rank(candidate: Candidate) -> tuple[Any, ...]:
        content = candidate.stack.data
        parts = tuple(-number for number in version(content["tensorflow"]).release)
        return (
            candidate.lock is None,
            content["tensorflow_source"] == "built",
            "cuda" not in content,
            candidate.needs_newer_driver,
            candidate.doubtful,
            host_pythons is not None and candidate.python not in host_pythons,
            cluster and not content.get("hdfs"),
            "tensorflowonspark" not in content,
            candidate.has_untried_spark,
            parts,
            locked_cuda(candidate.stack.lock_path(candidate.python), candidate.name, candidate.python)
            not in ("", content.get("cuda")),
            candidate.name,
        )

    return sorted((fit for fit in fits if not (bare and "cuda" in fit.stack.data)), key=rank)
