"""scripts/stack new: write the file of a stack that meets a request, from the resolver's answer and the nearest stack, and lock it."""

import argparse
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.hadoop_dl_host import atomic_files
from packaging.requirements import Requirement

from hadoop_dl.cli import lock_maker, mirror
from hadoop_dl.cli.arguments import Parser
from hadoop_dl.cli.stack_text import summary
from hadoop_dl.data.compat import Compat, load
from hadoop_dl.data.locks import StackError, canonicalize_name
from hadoop_dl.data.stacks import Stack, add_directory, load_stack, load_stacks, stack_names
from hadoop_dl.resolver import Misuse, Resolution
from hadoop_dl.resolver.constraint_problem import shared_tables
from hadoop_dl.resolver.hosts import System
from hadoop_dl.resolver.named_stacks import requested_system, short_name
from hadoop_dl.resolver.rules.tensorflow import platform
from hadoop_dl.resolver.versions import version

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
# Keys of a stack's file that the resolver decides, in the order of the file.
DECIDED = (
    *("python", "tensorflow", "tensorflow_package", "tensorflow_source", "keras", "tensorflow_io", "tensorflowonspark"),
    *("pyspark", "java", "cuda", "cudnn", "nccl", "driver_min", "driver_branch", "driver_module", "glibc_min"),
    *("cpu_features", "hdfs", "kafka"),
)
UNKNOWN_PYTHON = ["pip", "setuptools<81", "wheel"]  # TensorFlowOnSpark imports pkg_resources, which later ones lack


def add_options(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the new stack, such as tf2.13-py39-el8")
    parser.add_argument(
        "--stacks", type=Path, required=True, metavar="DIR", help="where it is written: inventories/SITE/stacks"
    )
    parser.add_argument("--cache", type=Path, default=Path(".cache/mirror"), help="where downloads are kept")


def check(options: argparse.Namespace) -> None:
    """Refuse what no stack can be written for, before anything is asked."""
    if not NAME.fullmatch(options.name):
        raise Misuse(
            f"The name of a stack must be small letters, digits, dots, dashes and underscores, but is {options.name!r}."
        )
    if not options.stacks.parent.is_dir():
        raise Misuse(
            f"--stacks must be a directory beside your inventory, but {options.stacks.parent} does not exist. "
            "Name the directory of your inventory in place of it."
        )
    add_directory(options.stacks)
    if options.name in stack_names():
        raise Misuse(f"A stack {options.name} exists already (scripts/stack show {options.name}). Choose another name.")


def command(options: argparse.Namespace, request: Mapping[str, Any], resolution: Resolution) -> int:
    """Write NAME.yml and its lock. A file whose lock is refused stays, because its requirements are what must change."""
    stack = new_stack(load(), options.name, options.stacks, request, resolution)
    options.stacks.mkdir(exist_ok=True)
    path = options.stacks / f"{stack.name}.yml"
    atomic_files.write_whole(str(path), file_text(stack).encode())
    print(f"{path}: written")
    stack = load_stack(stack.name, options.stacks)
    try:
        lock_maker.update(stack, False, options.cache)
    except (StackError, mirror.MirrorError) as error:
        lines = lines_to_change(path.read_text(encoding="utf-8"), str(error))
        print(f"{path} has no lock yet: {error}", file=sys.stderr)
        where = f"Change {' or '.join(lines)} in {path}" if lines else f"Change the requirements in {path}"
        print(f"{where}, then: scripts/stack lock {stack.name} --stacks {options.stacks}", file=sys.stderr)
        return 1
    print("Do next:")
    print(f"  deeplearning_request: {stack.name}      # in group_vars/all.yml of your inventory")
    print("  ansible-playbook -i inventories/SITE playbooks/plan.yml")
    return 0


def new_stack(compat: Compat, name: str, directory: Path, request: Mapping[str, Any], resolution: Resolution) -> Stack:
    """The stack of that name with the resolver's versions. What the resolver does not know comes from the nearest stack."""
    versions = {key: resolution.stack[key] for key in DECIDED if key in resolution.stack}
    near = nearest(versions)
    system = requested_system(compat, request, None)
    systems = [short_name(system.key)] if isinstance(system, System) else near.data["os"]
    if isinstance(system, System):  # every wheel for these hosts may be locked
        versions["glibc_min"] = platform(shared_tables(compat).catalog, system)["glibc"]
    else:  # those of the nearest stack
        versions["glibc_min"] = max(versions["glibc_min"], near.data["glibc_min"], key=version)
    data = {
        "name": name,
        "description": f"{summary(versions).partition(', CUDA')[0]} ({', '.join(systems)})",
        "os": systems,
        **versions,
        "requirements": requirements(compat, versions, near, resolution.pins),
        "files": files(versions, near),
        "sources": sources(versions, resolution),
    }
    return Stack(name, {key: value for key, value in data.items() if value not in ([], "")}, directory)


def nearest(versions: Mapping[str, Any]) -> Stack:
    """The stack to copy from: of the same Python and form (GPU or CPU) if there is one, then of the nearest TensorFlow."""

    def distance(stack: Stack) -> tuple[Any, ...]:
        data = stack.data
        own, other = version(versions["tensorflow"]).release, version(data["tensorflow"]).release
        return (
            versions["python"] not in stack.pythons,
            own != other,
            ("cuda" in versions) != ("cuda" in data),
            ("tensorflowonspark" in versions) != ("tensorflowonspark" in data),
            abs(own[0] - other[0]),
            abs(own[1] - other[1]),
            stack.name,
        )

    return min((stack for stack in load_stacks() if not stack.is_built and not stack.base), key=distance)


def requirements(
    compat: Compat, versions: Mapping[str, Any], near: Stack, pins: Mapping[str, str]
) -> dict[str, list[str]]:
    """What uv resolves, by component: the versions of the answer, and what they do not decide from the nearest stack.

    The pins of NVIDIA's wheels are those of a stack with the same TensorFlow, CUDA and cuDNN, if there is one.
    """
    package = versions["tensorflow_package"] + ("[and-cuda]" if has_cuda_wheels(compat, versions) else "")
    tools = near.data["requirements"]["pip"] if versions["python"] in near.pythons else UNKNOWN_PYTHON
    texts = {
        "pip": [text.replace("setuptools==", "setuptools<=") for text in tools],  # 1.9 and 1.10 require an older one,
        "tensorflow": [f"{package}=={versions['tensorflow']}", *exact("tensorflow_io", versions)],
        "keras": exact("keras", versions),
        "tensorflowonspark": exact("tensorflowonspark", versions),
    }
    texts["tensorflow"] += [f"{name}{limit}" for name, limit in pins.items()]
    if "tensorflowonspark" in versions:  # it imports packaging, which it does not require
        usual = next(stack.data["requirements"] for stack in load_stacks() if stack.data.get("kafka"))
        producer = [text for text in usual["tensorflowonspark"] if project(text) == "kafka-python"]
        texts["tensorflowonspark"] += ["packaging", *(producer if versions.get("kafka") else [])]
    same = [
        stack.data["requirements"]["tensorflow"]
        for stack in load_stacks()
        if "cuda" in versions
        and all(stack.data.get(key) == versions.get(key) for key in ("tensorflow", "cuda", "cudnn"))
    ]
    texts["tensorflow"] += [text for text in (same or [[]])[0] if project(text).startswith("nvidia-")]
    return {component: lines for component, lines in texts.items() if lines}


def project(text: str) -> str:
    return canonicalize_name(Requirement(text).name)


def exact(part: str, versions: Mapping[str, Any]) -> list[str]:
    return [f"{part.replace('_', '-')}=={versions[part]}"] if part in versions else []


def has_cuda_wheels(compat: Compat, versions: Mapping[str, Any]) -> bool:
    """Whether pip installs CUDA with this TensorFlow; else the roles install NVIDIA's packages."""
    release = next(row for row in compat.rows("tensorflow", "releases") if row["version"] == versions["tensorflow"])
    pythons = release.get("and_cuda_pythons", [versions["python"]])
    return "cuda" in versions and bool(release.get("and_cuda")) and versions["python"] in pythons


def files(versions: Mapping[str, Any], near: Stack) -> list[dict[str, Any]]:
    """Spark's archive from the index, and the jar with which Spark reads TFRecords, which is the same for every Spark."""
    if "pyspark" not in versions:
        return []
    name = f"pyspark-{versions['pyspark']}.tar.gz"
    with_jars = next(stack for stack in (near, *load_stacks()) if stack.data.get("files"))
    known = {file["name"]: file for stack in load_stacks() for file in stack.data.get("files", [])}
    jars = [dict(file) for file in with_jars.data["files"] if file["name"].endswith(".jar")]
    if name in known:
        return [dict(known[name]), *jars]
    offer = next((offer for offer in mirror.offers("pyspark") if offer["name"] == name), None)
    if offer is None or not offer["sha256"] or not offer["size"]:
        raise StackError(
            f"{name} is required with its sha256 and its size, but the index does not have all three. Use PyPI."
        )
    return [{"name": name, "source": "pypi:pyspark", "sha256": offer["sha256"], "size": offer["size"]}, *jars]


def sources(versions: Mapping[str, Any], resolution: Resolution) -> list[str]:
    """Where the answer's facts are written; PyPI's pages of the parts first."""
    pages = [
        f"https://pypi.org/project/{part.replace('_', '-')}/{versions[part]}/#files"
        for part in ("tensorflow", "tensorflowonspark", "pyspark")
        if part in versions
    ]
    return list(dict.fromkeys([*pages, *(source for reason in resolution.reasons for source in reason.sources)]))


def file_text(stack: Stack) -> str:
    head = "---\n# Written by: scripts/stack new. No test of this project has run with it.\n"
    return head + yaml.safe_dump(stack.data, sort_keys=False, width=120)


def lines_to_change(text: str, reason: str) -> list[str]:
    """The lines of a stack's file whose project the refusal of its lock names, as `line N (REQUIREMENT)`."""
    named = {canonicalize_name(name) for name in re.findall(r"[A-Za-z][\w.-]*\w", reason)}
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.fullmatch(r"  - ([A-Za-z][\w.\[\]-]*[<>=!~].*)", line)
        if match and project(match[1]) in named:
            found.append(f"line {number} ({match[1]})")
    return found
