"""One host's request against one host's facts: which stack, which Python, which environment, or what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from packaging.version import Version

from hadoop_dl import stacks

Json = dict[str, Any]
ENVIRONMENT_GROUPS = {"data_nodes", "edge_nodes", "cdsw_hosts"}


@dataclass
class Wanted:
    """`environment` is the directory's name, <stack>-<digest>; all empty for a host that gets no environment."""

    stack: Json = field(default_factory=dict)
    python: str = ""
    interpreter: str = ""
    environment: str = ""
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def resolve_host(variables: Mapping[str, Any], node: Json, groups: Sequence[str]) -> Wanted:
    """The set that the host's deeplearning_request means on this host, with every reason why it does not fit."""
    wanted = Wanted()
    if not ENVIRONMENT_GROUPS & set(groups):
        return wanted
    request = variables.get("deeplearning_request")
    if not isinstance(request, str) or not request:
        wanted.problems.append(
            f"deeplearning_request has to name a stack, and is {request!r}. Known stacks: {', '.join(stacks.stack_names())}. Set it in group_vars/all."
        )
        return wanted
    try:
        stack = stacks.load_stack(request)
    except stacks.UnknownStack as error:
        wanted.problems.append(str(error))
        return wanted
    wanted.problems += platform_problems(stack.data, node)
    wanted.stack = stack.data
    pythons = node.get("pythons", {})
    usable = [python for python in stack.pythons if python in pythons]
    if not usable:
        wanted.problems.append(
            f"{stack.name} needs Python {' or '.join(stack.pythons)} on the host, and there is "
            f"{', '.join(sorted(pythons)) or 'none'}. Install python{stack.pythons[0]} from the operating system's repositories."
        )
        return wanted
    wanted.python, wanted.interpreter = usable[0], pythons[usable[0]]
    wanted.environment = f"{stack.name}-{stack.lock(usable[0]).digest}"
    return wanted


def platform_problems(stack: Mapping[str, Any], node: Json) -> list[str]:
    """Where the operating system, the C library, the processor or Java does not fit the stack."""
    found, system = [], node.get("os", {})
    name = stack["name"]
    if system.get("short") not in stack["os"]:
        found.append(
            f"{name} is made for {', '.join(stack['os'])}, and the host runs {system.get('name')}. Choose a stack for it: scripts/stack list"
        )
    if node.get("architecture") not in (None, "x86_64"):
        found.append(
            f"{name} needs x86_64, and the host is {node['architecture']}. There are no TensorFlow GPU wheels of this stack for it."
        )
    needed, there = stack.get("glibc_min"), node.get("glibc")
    if needed and there and Version(there) < Version(needed):
        found.append(f"{name} needs glibc {needed} or newer, and the host has {there}. Choose an older stack.")
    features = node.get("cpu", {}).get("features")
    missing = [
        feature for feature in stack.get("cpu_features") or [] if features is not None and feature not in features
    ]
    if missing:
        found.append(
            f"the wheels of {name} need the CPU features {', '.join(missing)}, which this CPU does not show. Build TensorFlow from source for it."
        )
    java = [entry["major"] for entry in node.get("java", []) if entry.get("major")]
    if node.get("hadoop") and stack.get("java") and not set(java) & {str(version) for version in stack["java"]}:
        found.append(
            f"{name} needs Java {' or '.join(map(str, stack['java']))}, and the host has {', '.join(java) or 'none'}. Install it from the mirror."
        )
    return found
