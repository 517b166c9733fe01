"""scripts/stack lock: make the locks of stacks from an index, and verify that those of the repository still hold."""

from __future__ import annotations

import argparse
import email
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host import mirror_index, source_wheels, whole_files
from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from hadoop_dl.cli import mirror
from hadoop_dl.cli.arguments import Parser
from hadoop_dl.cli.mirror import MirrorError
from hadoop_dl.data import extras
from hadoop_dl.data.locks import COMPONENTS, Entry, Lock, StackError, canonicalize_name, source_problem
from hadoop_dl.data.stacks import Stack, add_directory, load_stack, stack_names

Versions = dict[str, str]  # name as PEP 503 writes it -> version
Offer = dict[str, Any]  # a file as an index lists it: name, url, sha256, size or None
# All others of uv's variables may name another index, other versions, or a server whose certificate is not checked.
UV_KEEPS = ("UV_CACHE_DIR", "UV_HTTP_TIMEOUT")


def platform_tags(python: str, glibc: str) -> list[Tag]:
    """The wheel tags of a CPython on x86_64 Linux with that glibc, best first."""
    major, minor = (int(part) for part in python.split("."))
    platforms = []
    for number in range(int(glibc.split(".")[1]), 4, -1):
        platforms.append(f"manylinux_2_{number}_x86_64")
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}.get(number)
        platforms += [f"{legacy}_x86_64"] if legacy else []
    platforms.append("linux_x86_64")
    # Distributions build Python 2.7 with 4-byte characters: cp27mu.
    abis = ["cp27mu"] if major == 2 else None
    tags = list(cpython_tags((major, minor), abis=abis, platforms=platforms))
    tags += compatible_tags((major, minor), interpreter=f"cp{major}{minor}", platforms=platforms)
    return tags


def choose_file(offers: Iterable[Offer], project: str, version: str, tags: list[Tag]) -> Offer | None:
    """The file that pip would take: the wheel whose tag comes first, else the sdist."""
    rank = {tag: number for number, tag in enumerate(tags)}
    best: tuple[int, Offer] | None = None
    for offer in offers:
        name = offer["name"]
        try:
            if name.endswith(".whl"):
                normalized, release, _, wheel_tags = parse_wheel_filename(name)
                file_project = str(normalized)
                place = min((rank[tag] for tag in wheel_tags if tag in rank), default=-1)
            elif name.endswith((".tar.gz", ".zip")):
                file_project, release = parse_sdist(name, project)
                place = len(tags)
            else:
                continue
        except ValueError:  # eggs, and names older than the rules for names
            continue
        if place < 0 or file_project != canonicalize_name(project) or release != Version(version):
            continue
        if best is None or place < best[0]:
            best = (place, offer)
    return best[1] if best else None


def parse_sdist(name: str, project: str) -> tuple[str, Version]:
    """Project and version of an sdist's name; older names have a dash inside the version (functools32-3.2.3-2)."""
    stem = re.sub(r"\.(tar\.gz|zip)$", "", name)
    if canonicalize_name(stem).startswith(canonicalize_name(project) + "-"):
        return canonicalize_name(project), Version(stem[len(project) + 1 :])
    file_project, version = parse_sdist_filename(name)
    return str(file_project), version


def marker_environment(python: str) -> dict[str, str]:
    """The values of requirement markers on the stack's hosts, independent of the controller."""
    return {
        **{key: str(value) for key, value in default_environment().items()},
        "python_version": python,
        "python_full_version": f"{python}.18",
        "implementation_version": f"{python}.18",
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "sys_platform": "linux",
        "platform_system": "Linux",
        "platform_machine": "x86_64",
        "os_name": "posix",
        "extra": "",
    }


def needed(requirement: Requirement, extras: Iterable[str], environment: Mapping[str, str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({**environment, "extra": extra}) for extra in ("", *extras))


def requested_extras(requires: Mapping[str, list[Requirement]], environment: Mapping[str, str]) -> dict[str, set[str]]:
    """project -> the extras that packages of the set request: tensorflow[and-cuda] requests and-cuda."""
    extras: dict[str, set[str]] = {}
    while True:
        previous = {name: set(values) for name, values in extras.items()}
        for project, requirements in requires.items():
            for requirement in requirements:
                if requirement.extras and needed(requirement, extras.get(project, ()), environment):
                    extras.setdefault(canonicalize_name(requirement.name), set()).update(requirement.extras)
        if extras == previous:
            return extras


def closure_problems(
    versions: Mapping[str, str], requires: Mapping[str, list[Requirement]], environment: Mapping[str, str]
) -> list[str]:
    """The requirements that the set does not meet, with their packages; an empty list means that it is complete."""
    problems = []
    extras = requested_extras(requires, environment)
    for project in sorted(requires):
        for requirement in requires[project]:
            if not needed(requirement, extras.get(project, ()), environment):
                continue
            name = canonicalize_name(requirement.name)
            if name not in versions:
                problems.append(f"{project} {versions[project]} needs {requirement}, but the lock has none.")
            elif not requirement.specifier.contains(versions[name], prereleases=True):
                problems.append(
                    f"{project} {versions[project]} needs {requirement}, but the lock has {versions[name]}."
                )
    return problems


def requirements_inside(path: Path, sha256: str) -> list[Requirement]:
    """The requirements in the metadata of a wheel, or in the recipe of a source distribution."""
    if path.suffix != ".whl":
        return [Requirement(text) for text in source_wheels.recipe_of(path.name, sha256).requires]
    with zipfile.ZipFile(path) as archive:
        member = next(name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        message = email.message_from_bytes(archive.read(member))
    return [read_requirement(text) for text in message.get_all("Requires-Dist", [])]


def read_requirement(text: str) -> Requirement:
    """Of `pytz (>=2011k)`, a version older than PEP 440 (pandas for Python 2.7), only the name counts: no release is that old."""
    legacy = re.fullmatch(r"([\w.-]+) \(>=\d+[a-z]\)", text)
    return Requirement(legacy[1] if legacy else text)


def resolve(requirements: Iterable[str], python: str, glibc: str, locked: Mapping[str, str] | None = None) -> Versions:
    """Let uv choose versions that fit together on the stack's hosts; locked packages keep theirs."""
    with tempfile.TemporaryDirectory() as scratch:
        source, constraints = Path(scratch) / "requirements.in", Path(scratch) / "constraints.txt"
        source.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        lines = [f"{name}=={version}\n" for name, version in (locked or {}).items()]
        constraints.write_text("".join(lines), encoding="utf-8")
        command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--no-config"]
        command += ["--python-version", python, "--python-platform", f"x86_64-manylinux_2_{glibc.split('.')[1]}"]
        command += ["--index-strategy", "first-index", "--only-binary", ":all:", "--constraint", str(constraints)]
        run = subprocess.run(
            [*command, str(source)],
            capture_output=True,
            text=True,
            check=False,
            env=uv_variables(os.environ),
        )
    if run.returncode != 0:
        condition = " with the versions that are locked already" if locked else ""
        raise StackError(f"uv found no set of versions for Python {python}{condition}: {run.stderr.strip()}")
    pairs = (line.split("==") for line in run.stdout.splitlines() if "==" in line)
    return {canonicalize_name(name.strip()): version.split(";")[0].strip() for name, version in pairs}


def uv_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The index and the CA that all else here uses, for uv. The address is in no command line, because it may have a password."""
    variables = {name: value for name, value in environment.items() if not name.startswith("UV_") or name in UV_KEEPS}
    bundle = next(filter(None, map(variables.get, ("PIP_CERT", "REQUESTS_CA_BUNDLE"))), None)
    return {
        **variables,
        "UV_DEFAULT_INDEX": mirror_index.index_address(),
        **({"SSL_CERT_FILE": bundle} if bundle else {}),
    }


def assign(
    requirements: Mapping[str, list[str]],
    versions: Versions,
    requires: Mapping[str, list[Requirement]],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """Give every package a component: the one that names it, else the first whose packages need it."""
    direct_owners: dict[str, str] = {}
    for component in COMPONENTS:
        for text in requirements.get(component, []):
            direct_owners[canonicalize_name(Requirement(text).name)] = component
    stack_requirements = {"": [Requirement(text) for texts in requirements.values() for text in texts]}
    extras = requested_extras({**requires, **stack_requirements}, environment)
    assigned = dict(direct_owners)
    for component in COMPONENTS:
        queue = [name for name, owner in direct_owners.items() if owner == component]
        while queue:
            project = queue.pop()
            for requirement in requires[project]:
                name = canonicalize_name(requirement.name)
                if name in assigned or name not in versions:
                    continue
                if needed(requirement, extras.get(project, ()), environment):
                    assigned[name] = component
                    queue.append(name)
    return {name: owner for name, owner in assigned.items() if name in versions}


def render(stack: str, python: str, entries: Iterable[Entry]) -> str:
    """The lock's text: components in the order in which they are installed, names in alphabetical order."""
    all_entries = list(entries)
    lines = [f"# Lock of {stack} for Python {python} on x86_64. Made by: scripts/stack lock {stack}"]
    for component in COMPONENTS:
        section = sorted((entry for entry in all_entries if entry.component == component), key=lambda e: e.project)
        if section:
            lines += ["", f"# component: {component}", *[entry.line() for entry in section]]
    return "\n".join(lines) + "\n"


def make_lock(stack: Stack, python: str, cache: Path, say: Callable[[str], None], keep: Lock | None = None) -> str:
    """The lock's text as the index has it today. With `keep`, its versions stay and only files and closure are verified."""
    requirements = {name: list(stack.data["requirements"].get(name, [])) for name in COMPONENTS}
    flat = [strip_extras(text) for texts in requirements.values() for text in texts]
    stack_requirements = {"the stack's file": [extras.requirement(text) for text in flat]}
    if keep:
        versions = {canonicalize_name(entry.project): entry.version for entry in keep.entries}
    elif python.startswith("2.") or all(EXACT.fullmatch(text) for text in flat):  # nothing is left to resolve
        versions = {canonicalize_name(Requirement(text).name): exact(text) for text in flat}
    else:
        base = stack.base.lock(python).entries if stack.base else ()
        locked = {canonicalize_name(entry.project): entry.version for entry in base}
        versions = resolve(flat, python, stack.data["glibc_min"], locked=locked)
    tags = platform_tags(python, stack.data["glibc_min"])
    offers: dict[str, Offer] = {}
    missing = []
    for number, (project, version) in enumerate(sorted(versions.items()), 1):
        offer = choose_file(mirror.offers(project), project, version, tags)
        if offer is None:
            missing.append(f"{project}=={version}")
        else:
            offers[project] = {**offer, "project": project, "folder": "wheels"}
        say(f"[{number}/{len(versions)}] {project} {version}")
    if missing:
        raise StackError(
            f"{stack.name} needs {', '.join(missing)} for Python {python} and glibc {stack.data['glibc_min']}, but the "
            "index has no file of them that fits. Choose other versions under requirements in the stack's file."
        )
    refusals = [problem for offer in offers.values() if (problem := source_problem(offer["name"], offer["sha256"]))]
    if refusals:
        raise StackError(
            f"{stack.name} for Python {python} cannot be locked: {'. '.join(refusals)}. Then run this again."
        )
    mirror.fetch_artifacts(list(offers.values()), cache, progress=say)
    paths = {project: cache / "wheels" / offer["name"] for project, offer in offers.items()}
    environment = marker_environment(python)
    requires: dict[str, list[Requirement]] = {}
    for project, path in paths.items():
        try:
            requires[project] = requirements_inside(path, offers[project]["sha256"])
        except InvalidRequirement as error:
            raise StackError(f"{path.name} states a requirement that cannot be read: {error}") from error
    problems = closure_problems(versions | {"the stack's file": ""}, requires | stack_requirements, environment)
    components = assign(requirements, versions, requires, environment)
    problems += [f"{name} is in the lock, but nothing needs it." for name in sorted(set(versions) - set(components))]
    if problems:
        raise StackError(f"The lock of {stack.name} for Python {python} is not complete: {' '.join(problems)}")
    entries = [
        Entry(components[p], p, versions[p], offer["sha256"], offer["name"], paths[p].stat().st_size)
        for p, offer in offers.items()
    ]
    if warning := extras.cuda_of_others(stack, entries, requires):
        say(f"warning: {warning}")
    return render(stack.name, python, entries)


def strip_extras(text: str) -> str:
    return text.partition("#")[0].strip()


EXACT = re.compile(r"[\w.-]+==([\w.]+)")


def exact(text: str) -> str:
    match = EXACT.fullmatch(text)
    if not match:
        raise StackError(
            f"Python 2.7 requires exact versions under requirements, but one is {text!r}. Write NAME==VERSION."
        )
    return match[1]


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="stack lock", description="Write or verify the locks of stacks, from PyPI.", allow_abbrev=False
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="a stack; all of them when none is named")
    parser.add_argument(
        "--stacks", type=Path, metavar="DIR", help="directory of a site's own stacks: inventories/SITE/stacks"
    )
    parser.add_argument(
        "--extra",
        action="append",
        default=[],
        metavar="PACKAGE",
        help="lock the stack with this package added (repeatable)",
    )
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when a lock no longer holds")
    parser.add_argument("--cache", type=Path, default=Path(".cache/mirror"), help="where downloads are kept")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """lock NAME [--check]: write a stack's locks, or verify that those in the repository still hold."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.extra and (not options.stacks or not options.names):
        parser.error("--extra needs the name of a stack, and --stacks with the directory for the new one.")
    if options.stacks:
        add_directory(options.stacks)
    failed = False
    for name in options.names or stack_names(options.stacks):
        try:
            stack = load_stack(name)
            if options.extra:
                stack = extras.extended(stack, options.extra, options.stacks)
            failed |= update(stack, options.check, options.cache)
            if options.extra and not options.check:
                file = options.stacks / f"{stack.name}.yml"
                whole_files.write_whole(str(file), extras.file_text(stack).encode())
        except (StackError, extras.ExtrasError, MirrorError) as error:
            failed = True
            print(f"{name}: {error}", file=sys.stderr)
    return 1 if failed else 0


def update(stack: Stack, check: bool, cache: Path) -> bool:
    """Make all locks of a stack, then write them; whether one must be reviewed."""
    texts = {}
    for python in stack.pythons:
        keep = stack.lock(python) if check else None
        texts[stack.lock_path(python)] = make_lock(
            stack, python, cache, lambda line: print(f"  {line}", file=sys.stderr), keep
        )
    review = False
    for path, text in texts.items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            print(f"{path.name}: holds")
        elif check:
            review = True
            print(
                f"{path.name}: the index or the stack's file gives another lock. Review: scripts/stack lock {stack.name}"
            )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole_files.write_whole(str(path), text.encode())
            print(f"{path.name}: written")
    return review


if __name__ == "__main__":
    sys.exit(main())
