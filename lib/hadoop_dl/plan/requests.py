"""One host's request against one host's facts: which stack, which Python, which environment, or what is wrong.

The resolver decides whether a set fits a host. Its verdicts are kept in .cache by a digest of everything they depend
on, because a run with nothing to do must not pay for them again (docs/performance.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from hadoop_dl.data import extras, stacks
from hadoop_dl.data.compat import gpu_name

Json = dict[str, Any]
REPOSITORY = Path(__file__).resolve().parents[3]
VERDICTS = REPOSITORY / ".cache" / "verdicts.json"
DECIDERS = (
    "compat/*.yml",
    "lib/hadoop_dl/data/*.py",
    "lib/hadoop_dl/resolver/**/*.py",
    "lib/hadoop_dl/plan/requests.py",
)
MOST_VERDICTS = 20_000  # more than that: those of earlier runs are forgotten
ENVIRONMENT_GROUPS = ("data_nodes", "edge_nodes", "cdsw_hosts")  # their hosts run tasks of jobs and sessions
INPUTS = ("deeplearning_request", "deeplearning_extra_packages")  # the variables that decide what a host gets


@dataclass
class Wanted:
    """What a host gets; hosts that ask the same and are alike share one, so nobody changes it.

    `environment` is the directory's name, <stack>-<digest>; all empty for a host that gets no environment."""

    stack: Json = field(default_factory=dict)
    python: str = ""
    interpreter: str = ""
    environment: str = ""
    parts: tuple[str, ...] = ()  # the roles of the environment for which the lock has packages
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def stack_text(self) -> str:
        """The stack as sorted JSON, as digests have it: written once for all hosts that share it."""
        return json.dumps(self.stack, sort_keys=True, default=str)


def resolve_host(variables: Mapping[str, Any], node: Json, groups: Sequence[str], name: str = "") -> Wanted:
    """The set that the host's deeplearning_request means on this host, with every reason why it does not fit.

    name: the stack that constraints mean on all hosts which ask the same; without it, the best one for this host.
    """
    wanted = Wanted()
    if not set(ENVIRONMENT_GROUPS) & set(groups):
        return wanted
    request = variables.get("deeplearning_request")
    if not request or not isinstance(request, (str, Mapping)):
        wanted.problems.append(
            'deeplearning_request must be the name of a stack, or constraints such as {tensorflow: "1.15", python: "2.7"}, '
            f"but is not set. Known stacks: {', '.join(stacks.stack_names())}. Set it in group_vars/all."
        )
        return wanted
    admitted: Sequence[str] | None = None
    if isinstance(request, Mapping):
        found, problems = ([name], []) if name else stacks_for(request, [node])
        wanted.problems += problems
        if not found:
            return wanted
        admitted = verdict(dict(request), node)["pythons"][found[0]]
        request = found[0]
    try:
        request = extras.requested_name(request, variables.get("deeplearning_extra_packages"))
        stack = stacks.load_stack(request)
    except (stacks.UnknownStack, extras.ExtrasError) as error:
        wanted.problems.append(str(error))
        return wanted
    wanted.stack = stack.data
    system = node.get("os", {})
    if system.get("short") not in stack.data["os"]:
        wanted.problems.append(
            f"{stack.name} is made for {', '.join(stack.data['os'])}, and the host runs {system.get('name')}. "
            "Choose a stack for it: grep '^os:' stacks/*.yml"
        )
    else:
        judged = verdict(stack.name, node)
        # The GPUs of this host may need a newer driver than CUDA does, or the open kernel modules.
        wanted.stack = {**stack.data, **judged.get("driver", {})}
        wanted.problems += [f"{stack.name}: {sentence}" for sentence in judged["problems"]]
        wanted.warnings += judged["warnings"]
    if stack.data["tensorflow_source"] == "built":
        wanted.problems.append(
            f"{stack.name} needs a TensorFlow wheel built from source, and the playbooks do not build one yet. "
            "Choose a stack with tensorflow_source: prebuilt."
        )
    pythons = node.get("pythons", {})
    admitted = stack.pythons if admitted is None else admitted
    usable = [python for python in admitted if python in pythons]
    if not usable:
        wanted.problems.append(
            f"{stack.name} needs Python {' or '.join(admitted)} on the host, and there is "
            f"{', '.join(sorted(pythons)) or 'none'}. Install python{admitted[0]} from the operating system's repositories."
        )
        return wanted
    wanted.python, wanted.interpreter = usable[0], pythons[usable[0]]
    digest, wanted.parts = locked(stack.name, usable[0])
    wanted.environment = f"{stack.name}-{digest}"
    return wanted


@cache
def locked(name: str, python: str) -> tuple[str, tuple[str, ...]]:
    """A lock's digest and components."""
    lock = stacks.load_stack(name).lock(python)
    return lock.digest, lock.components


def stacks_for(request: Mapping[str, Any], nodes: Iterable[Json]) -> tuple[list[str], list[str]]:
    """The named stacks that meet these constraints on all of these hosts, the best first; or why there is none.

    A host with GPUs speaks first: what fits it comes in its order, if it fits the others too. Where none has GPUs,
    the form for the CPU comes first.
    """
    ordered = sorted(nodes, key=lambda node: not gpus(node))
    judged = [verdict(dict(request), node) for node in ordered]
    problems = sorted({sentence for one in judged for sentence in one["problems"]})
    if problems or not judged:
        return [], problems
    form = "gpu" if gpus(ordered[0]) else "cpu"
    return [name for name in judged[0]["names"][form] if all(name in one["names"][form] for one in judged)], []


def gpus(node: Json) -> list[Any]:
    """The host's NVIDIA GPUs: from the PCI bus, or, where a container shows none, from nvidia-smi."""
    nvidia = node.get("nvidia", {})
    return list(nvidia.get("gpus") or nvidia.get("listed") or [])


@dataclass
class Verdicts:
    """What the resolver said: in earlier runs, and in this one."""

    kept: dict[str, Json] = field(default_factory=dict)
    new: dict[str, Json] = field(default_factory=dict)


def verdict(request: str | Json, node: Json) -> Json:
    """What the resolver says of a request on a host: {"problems": [...], "warnings": [...]}; kept between runs."""
    key = hashlib.sha256(json.dumps([request, facts(node), data_digest()], sort_keys=True).encode()).hexdigest()
    known = verdicts()
    if key in known.kept:
        return known.kept[key]
    if key not in known.new:
        known.new[key] = judge(request, node)
    return known.new[key]


def facts(node: Json) -> Json:
    """What a verdict depends on; the rest of what the reader answered does not decide."""
    kept: Json = {key: node.get(key) for key in ("os", "glibc", "architecture", "cdsw", "java", "hadoop")}
    nvidia = node.get("nvidia", {})
    found = nvidia.get("gpus") or nvidia.get("listed") or []
    kept["gpus"] = sorted({gpu if isinstance(gpu, str) else gpu_name(gpu) for gpu in found})
    return {
        **kept,
        "cpu": {"features": node.get("cpu", {}).get("features")},
        "pythons": sorted(node.get("pythons", {})),
        "driver": [nvidia.get("driver"), nvidia.get("module")],
    }


def kind(node: Json) -> str:
    """The facts as text: hosts with the same one get the same verdicts."""
    return json.dumps(facts(node), sort_keys=True)


def judge(request: str | Json, node: Json) -> Json:
    from dataclasses import replace  # noqa: PLC0415 (with the resolver, which a no-op run does not load)

    from hadoop_dl import resolver  # noqa: PLC0415
    from hadoop_dl.data.compat import load  # noqa: PLC0415
    from hadoop_dl.resolver import install  # noqa: PLC0415
    from hadoop_dl.resolver.request import read_request  # noqa: PLC0415

    read = replace(resolver.HostFacts.from_node(node), gpus=tuple(facts(node)["gpus"]))
    # A Python that the host lacks is reported once, by resolve_host, with the package to install.
    host = replace(read, pythons=None)
    compat = load()
    if isinstance(request, str):
        unused: list[str] = []
        if host.gpus and "cuda" not in stacks.load_stack(request).data:
            unused = [
                f"{request} is for the CPU and the host has GPUs, which TensorFlow does not use. "
                "Choose a stack for GPUs to use them: scripts/stack list"
            ]
            host = replace(host, gpus=None)
        problems = sentences(conflict.message for conflict in install.part_conflicts(compat, request, host))
        answer = resolver.Resolution("ok") if problems else resolver.resolve(request, host)
        driver = {key: answer.stack[key] for key in install.BY_HOST if key in answer.stack}
        warnings = unused + sentences(finding.text for finding in answer.warnings)
        return {"driver": driver, "problems": problems or answer.problems, "warnings": warnings}
    try:
        fits = install.candidates(compat, request, read)
        if fits:
            names = {
                form: [one.name for one in install.ordered(compat, request, read, fits, bare=form == "cpu")]
                for form in ("gpu", "cpu")
            }
            asked = read_request(compat, request)
            pythons = {one.name: install.pythons_for(one.stack, asked) for one in fits}
            return {"names": names, "pythons": pythons, "problems": [], "warnings": []}
        answer = resolver.unmet(request, host, compat)
    except resolver.Misuse as error:
        return {"names": {}, "problems": [str(error)], "warnings": []}
    near = [", ".join(f"{key}={value}" for key, value in other.items()) for other in answer.nearest]
    suffix = f" Nearest that fits: {'; or '.join(near[:2])}." if near else ""
    return {"names": {}, "problems": [sentence + suffix for sentence in answer.problems], "warnings": []}


def sentences(texts: Iterable[str]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(texts))


@cache
def data_digest() -> str:
    """Changes with anything that a verdict is made from."""
    digest = hashlib.sha256()
    paths = [path for directory in stacks.directories() for path in sorted(directory.glob("*.yml"))]
    for pattern in DECIDERS:
        paths += sorted(REPOSITORY.glob(pattern))
    for path in paths:
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    # Of a lock it decides whether there is one, not what is in it.
    locks = [path.name for directory in stacks.directories() for path in sorted(directory.glob("locks/*.txt"))]
    digest.update(json.dumps(locks).encode())
    return digest.hexdigest()


@cache
def verdicts() -> Verdicts:
    """What was judged before; a file that cannot be read is as good as none."""
    try:
        found = json.loads(VERDICTS.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Verdicts()
    return Verdicts(found if isinstance(found, dict) else {})


def keep_verdicts() -> None:
    """Write the verdicts once for all hosts, and complete, by a rename: two runs at once must not tear the file.

    A read-only checkout keeps none.
    """
    known = verdicts()
    if not known.new:
        return
    complete = {**known.kept, **known.new}
    try:
        VERDICTS.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=VERDICTS.parent, delete=False, encoding="utf-8") as handle:
            json.dump(complete if len(complete) <= MOST_VERDICTS else known.new, handle)
        os.replace(handle.name, VERDICTS)
    except OSError:
        return
