"""Answers of scripts/stack as people read them: what to install, what to do next, what is wrong."""

from collections.abc import Iterable, Mapping
from typing import Any

from hadoop_dl.data.compat import load
from hadoop_dl.data.stacks import Stack
from hadoop_dl.resolver import Conflict, Finding, Resolution
from hadoop_dl.resolver.explain import together
from hadoop_dl.resolver.request import arguments
from hadoop_dl.resolver.versions import listed, version


def summary(stack: Mapping[str, Any], on_mapr: bool = False) -> str:
    """The versions of a stack in one sentence. on_mapr: where no HDFS is."""
    parts = [
        f"TensorFlow {stack['tensorflow']} ({stack['tensorflow_package']}) on Python {texts(stack['python'], 'or')}"
    ]
    if stack.get("tensorflow_source") == "built":
        tools = [f"{tool} {stack[tool]}" for tool in ("bazel", "gcc") if tool in stack]
        parts[0] += ", built from source" + (f" ({', '.join(tools)})" if tools else "")
    parts += [
        f"{name} {stack[key]}" for key, name in (("cuda", "CUDA"), ("cudnn", "cuDNN"), ("nccl", "NCCL")) if key in stack
    ]
    for key, name in (
        ("keras", "Keras"),
        ("tensorflow_io", "tensorflow-io"),
        ("tensorflowonspark", "TensorFlowOnSpark"),
    ):
        parts += [f"{name} {stack[key]}"] if key in stack else []
    if "pyspark" in stack:
        java = f" (Java {texts(stack['java'], 'or')})" if stack.get("java") else ""
        parts.append(f"Spark {stack['pyspark']}{java}")
    hdfs = [] if on_mapr else ["HDFS"] * bool(stack.get("hdfs"))
    read = hdfs + ["Kafka"] * bool(stack.get("kafka"))
    return ", ".join(parts) + (f"; reads {listed(read)}" if read else "; reads neither HDFS nor Kafka")


def texts(value: Any, last: str = "and") -> str:
    return listed(value, last) if isinstance(value, (list, tuple)) else str(value)


def needs(stack: Mapping[str, Any], pins: Mapping[str, str], driver: str = "") -> list[str]:
    """The requirements of a stack on the host and pip; `driver` is the one that stays there."""
    requirements = []
    if "driver_min" in stack and driver:
        old = version(driver) < version(stack["driver_min"])  # it knows some of the cards that a name means
        requirements.append(
            f"driver: your {driver} stays" if old else f"driver: {stack['driver_min']} or newer: your {driver} stays"
        )
    elif "driver_min" in stack:
        module = f", {stack['driver_module']} kernel modules" if "driver_module" in stack else ""
        branch = str(stack.get("driver_branch", "any"))
        requirements.append(f"driver: {stack['driver_min']} or newer, branch {branch}{maintained(branch)}{module}")
    else:
        requirements.append("driver: none, this is the form for hosts without GPUs")
    host = [f"glibc {stack['glibc_min']}"] if "glibc_min" in stack else []
    host += [f"a CPU with {listed(stack['cpu_features'])}"] if stack.get("cpu_features") else []
    requirements += [f"host: {' and '.join(host)}"] if host else []
    requirements += [f"pip: {', '.join(f'{name}{limit}' for name, limit in pins.items())}"] if pins else []
    return requirements


def maintained(branch: str) -> str:
    """Until when NVIDIA maintains a driver branch, if it says so and that day has not come."""
    row = next((row for row in load().rows("drivers", "branches") if row["branch"] == branch), {})
    return f" (until {row['eol']})" if row.get("eol") and not row["is_eol"] else ""


def answer_text(resolution: Resolution, explain: bool, newer: str = "") -> str:
    """An answer that is a stack: its name or that it has none, its versions, and what to do next."""
    lines = []
    if resolution.doubts:
        lines += ["Unsure: nothing verified is against this, but something unverified is:"]
        lines += findings(resolution.doubts, explain)
    if resolution.name:
        lines.append(f"{resolution.name}: {summary(resolution.versions, resolution.on_mapr)}")
    else:
        why = resolution.unmade or "No named stack meets this request."
        lines += [f"{why} Without a lock it could be:", f"  {summary(resolution.stack, resolution.on_mapr)}"]
    lines += [f"  {line}" for line in needs(resolution.stack, resolution.pins, resolution.driver)]
    lines.append(f"  lock: {resolution.lock or 'none, so the playbooks cannot install it yet'}")
    lines += [f"GPU: {text}." for text in resolution.cards]
    lines += [f"Not checked: {text}." for text in resolution.not_checked]
    warnings = [finding for finding in resolution.warnings if not finding.doubt]
    lines += ["Good to know:", *findings(warnings, explain)] if warnings else []
    if explain:
        lines += ["Why:", *findings(resolution.reasons, explain)]
    lines += [newer] if newer else []
    lines += resolution.passed_over
    lines += without_gpus(resolution)
    title = "Do next, if you accept that:" if resolution.doubts else "Do next:"
    return "\n".join([*lines, title, *[f"  {line}" for line in do_next(resolution)]])


def do_next(resolution: Resolution) -> list[str]:
    """The steps as they can be pasted: what is no command is a line of the inventory."""
    first, *later_steps = resolution.next
    return [f"{first}      # in group_vars/all.yml of your inventory" if resolution.lock else first, *later_steps]


def findings(remarks: Iterable[Finding], explain: bool) -> list[str]:
    lines = []
    for finding in remarks:
        lines.append(f"  {finding.text.rstrip('.')}.")
        lines += [f"      {source}" for source in finding.sources if explain]
    return lines


def conflict_text(resolution: Resolution, explain: bool) -> str:
    """The conflicts of a request, and the nearest requests that fit."""
    count = len(resolution.conflicts)
    lines = [f"The request cannot be met: {count} conflict{'s' if count != 1 else ''}."]
    lines += [text] if (text := together(resolution.conflicts)) and count > 1 else []
    for number, conflict in enumerate(resolution.conflicts, 1):
        lines.append(f"  {number}. {conflict.message}")
        lines += [f"       {source}" for source in conflict.sources if explain]
    lines += resolution.passed_over
    lines += without_gpus(resolution)
    if resolution.nearest:
        commands = [command_line(request) for request in resolution.nearest]
        names = resolution.nearest_stacks or [""] * len(commands)
        notes = [f"  # {name}" if name else "  # no stack yet" for name in names]
        width = max(len(command) for command in commands)
        pairs = zip(commands, notes, strict=True)
        lines += ["Nearest requests that fit:", *[f"  {command.ljust(width)}{note}" for command, note in pairs]]
    elif unchangeable(resolution.conflicts):
        lines.append("Nothing else in the request helps: the operating system and the GPUs decide.")
        if isinstance(gpus := resolution.request.get("gpu"), list) and len(gpus) > 1:
            lines.append("If these GPUs are in different hosts, --inventory or --host name the stack for all of them.")
    if resolution.which:
        width = max(len(command_line(request)) for request, _ in resolution.which)
        lines += ["Which is it?" if len(resolution.which) > 1 else "Or name it by what it has:"]
        lines += [f"  {command_line(request).ljust(width)}  # {means}" for request, means in resolution.which]
    return "\n".join([*lines, *([] if explain else ["Sources: add --explain"])])


def without_gpus(resolution: Resolution) -> list[str]:
    return [f"For hosts without GPUs there is {resolution.cpu_form}."] if resolution.cpu_form else []


def unchangeable(conflicts: Iterable[Conflict]) -> bool:
    return any(set(conflict.components) <= {"os", "gpu", "host"} and not conflict.unknown for conflict in conflicts)


def command_line(request: Mapping[str, Any]) -> str:
    """A request as arguments of the command."""
    if "stack" in request:
        return f"scripts/stack show {request['stack']}"
    return f"scripts/stack resolve {arguments(request)}".rstrip()


def stack_text(stack: Stack) -> str:
    """One named stack: what it has, what it needs, its locks, and where all that is written."""
    data = stack.data
    lines = [f"{stack.name}: {data['description']}", f"  {summary(data)}", f"  for: {', '.join(data['os'])}"]
    lines += [f"  {line}" for line in needs(data, {})]
    for python in stack.pythons:
        path = stack.lock_path(python)
        lines.append(f"  lock for Python {python}: {path.name if path.is_file() else 'none'}")
    return "\n".join([*lines, "Sources:", *[f"  {source}" for source in data["sources"]]])
