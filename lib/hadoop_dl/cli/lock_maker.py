"""scripts/stack lock: make the locks of stacks from an index, and verify that those of the repository still hold."""

import email
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache as cache_of
from pathlib import Path

from ansible.module_utils.hadoop_dl_host import atomic_files, mirror_index, source_wheels
from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import Tag

from hadoop_dl.cli import mirror, old_pythons
from hadoop_dl.cli.arguments import Parser
from hadoop_dl.cli.index_files import Offer, choose_file, platform_tags, version_of
from hadoop_dl.cli.mirror import MirrorError
from hadoop_dl.data import extras
from hadoop_dl.data.locks import COMPONENTS, Entry, Lock, StackError, canonicalize_name, source_problem
from hadoop_dl.data.stacks import Stack, add_directory, load_stack, stack_names

Versions = dict[str, str]  # name as PEP 503 writes it -> version
UV_GLIBC = (17, 28, *range(31, 41))  # of the platforms manylinux_2_* that uv 0.13.8 knows
# All others of uv's variables may name another index, other versions, or a server whose certificate is not checked.
UV_KEEPS = ("UV_CACHE_DIR", "UV_HTTP_TIMEOUT")


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


def uv_platform(glibc: str) -> str:
    """The next one that uv knows; choose_file refuses a wheel for a newer C library than the stack's."""
    minor = int(glibc.split(".")[1])
    return f"x86_64-manylinux_2_{min([known for known in UV_GLIBC if known >= minor] or UV_GLIBC[-1:])}"


def resolve(requirements: Iterable[str], python: str, glibc: str, locked: Mapping[str, str] | None = None) -> Versions:
    """Let uv choose versions that fit together on the stack's hosts; locked packages keep theirs."""
    with tempfile.TemporaryDirectory() as scratch:
        source, constraints = Path(scratch) / "requirements.in", Path(scratch) / "constraints.txt"
        source.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        lines = [f"{name}=={version}\n" for name, version in (locked or {}).items()]
        constraints.write_text("".join(lines), encoding="utf-8")
        command = ["uv", "pip", "compile", "--quiet", "--no-annotate", "--no-header", "--no-config"]
        command += ["--python-version", python, "--python-platform", uv_platform(glibc)]
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


def index_for(python: str, tags: list[Tag], cache: Path, say: Callable[[str], None]) -> old_pythons.Index:
    """The index's files for this Python. A source distribution counts if it has a recipe: no setup.py is run."""
    chosen: dict[tuple[str, str], Offer] = {}

    def versions(project: str) -> list[tuple[str, str]]:
        of_version: dict[str, list[Offer]] = {}
        for offer in mirror.offers(project):
            if text := version_of(offer["name"], project):
                of_version.setdefault(text, []).append(offer)
        for text, offers in of_version.items():
            best = choose_file(offers, project, text, tags)
            if best and not source_problem(best["name"], best["sha256"]):
                chosen[project, text] = {**best, "project": project, "folder": "wheels"}
        texts = old_pythons.newest_first(text for name, text in chosen if name == project)
        return [(text, chosen[project, text]["requires_python"]) for text in texts]

    def requires(project: str, version: str) -> list[Requirement]:
        offer = chosen[project, version]
        mirror.fetch_artifacts([offer], cache, progress=say)
        return requirements_inside(cache / "wheels" / offer["name"], offer["sha256"])

    environment = marker_environment(python)
    return old_pythons.Index(cache_of(versions), cache_of(requires), lambda entry: needed(entry, (), environment))


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
    flat = [text.partition("#")[0].strip() for texts in requirements.values() for text in texts]
    stack_requirements = {"the stack's file": [extras.requirement(text) for text in flat]}
    tags = platform_tags(python, stack.data["glibc_min"])
    if keep:
        versions = {canonicalize_name(entry.project): entry.version for entry in keep.entries}
    elif all(EXACT.fullmatch(text) for text in flat):  # nothing is left to resolve
        versions = {canonicalize_name(Requirement(text).name): text.rpartition("==")[2] for text in flat}
    else:
        base = stack.base.lock(python).entries if stack.base else ()
        locked = {canonicalize_name(entry.project): entry.version for entry in base}
        if old_pythons.needs_recipes(stack.data["tensorflow"], python):
            pinned = [f"{name}=={version}" for name, version in locked.items()]
            versions = old_pythons.resolve([*flat, *pinned], python, index_for(python, tags, cache, say))
        else:
            versions = resolve(flat, python, stack.data["glibc_min"], locked=locked)
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


EXACT = re.compile(r"[\w.-]+==([\w.]+)")


def make_parser() -> Parser:
    parser = Parser(
        prog="stack lock", description="Write or verify the locks of stacks, from PyPI.", allow_abbrev=False
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help="a stack; all of them when none is named")
    parser.add_stacks()
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
                atomic_files.write_whole(str(file), extras.file_text(stack).encode())
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
            atomic_files.write_whole(str(path), text.encode())
            print(f"{path.name}: written")
    return review


if __name__ == "__main__":
    sys.exit(main())
