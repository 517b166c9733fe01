"""Version sets: which stack fits, what it has, and its lock.

scripts/stack resolve    which stack to install for a request, and what to do next; or what is wrong with the request
scripts/stack list       the named stacks, also only those for an operating system and GPUs
scripts/stack show NAME  one named stack
scripts/stack new NAME   write and lock a stack of your own that meets a request for which there is none

scripts/stack cdsw-project NAME DIR   a project for CDSW sessions that installs a stack without an image

for maintainers:
scripts/stack lock       write or check the locks of stacks
scripts/stack data       compare compat/ with PyPI, or write the table of GPUs or of Xids

Exit codes of resolve: 0 there is a stack, 1 misuse (an unknown component or option), 2 the request cannot be met,
3 unsure: only data that is not verified is against it. With --host or --inventory: 0 no host has a problem, 2 one has, or was
not read. Each command has --help.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hadoop_dl.cli.arguments import Parser
from hadoop_dl.cli.stack_text import answer_text, conflict_text, stack_text
from hadoop_dl.data.compat import load
from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import Stack, add_directory, load_stack, stack_names
from hadoop_dl.resolver import HostProfile, Misuse, Resolution, newest_wheel, resolve
from hadoop_dl.resolver.named_stacks import fitting
from hadoop_dl.resolver.request import COMPONENTS, OPTIONS, nearest_name, read_request
from hadoop_dl.resolver.versions import listed, version

Command = Callable[[Sequence[str]], int]
KNOWN = (
    "resolve",
    "list",
    "show",
    "new",
    "cdsw-project",
    "lock",
    "data",
)  # the last two are of hadoop_dl_dev.stack
STATUS = {"ok": 0, "conflict": 2, "unsure": 3}
EPILOG = f"""\
components:
{chr(10).join(f"  {name:<19} {component.help}" for name, component in COMPONENTS.items())}

a constraint is a version's beginning (1.15 is any 1.15.x), a range as pip writes it (tensorflow=">=2.4,<2.12"), or none

examples:
  scripts/stack resolve --os rhel-7.9 --gpu P100 tensorflow=1.15 python=2.7 kafka=true
  scripts/stack resolve --os rhel-9.4 --gpu A100 --gpu H100 --hadoop cdp-7.1 --explain
  scripts/stack resolve --os 'other glibc=2.39 python=3.12' --gpu cc=8.6
  scripts/stack resolve --inventory inventories/SITE tensorflow=2.15
"""


def add_host_options(parser: Parser) -> None:
    parser.add_argument(
        "--os",
        action="append",
        default=[],
        help="rhel-7.9, rocky-9.4, debian-12, ubuntu-22.04, 'other glibc=2.39 python=3.12'",
    )
    parser.add_argument(
        "--gpu",
        action="append",
        default=[],
        help="a GPU's name, PCI id (10de:15f8) or cc=8.6; once for each model, or none",
    )
    parser.add_format()


def request_parser(command: str, description: str) -> Parser:
    parser = Parser(
        prog=f"stack {command}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
        allow_abbrev=False,
    )
    add_host_options(parser)
    parser.add_argument(
        "--hadoop",
        action="append",
        default=[],
        help="distribution and release: cdh-5.16, cdp-7.1, mapr-6.1, apache-3.3.6",
    )
    return parser


def resolve_parser() -> Parser:
    parser = request_parser(
        "resolve",
        "Name the stack to install for a request and what to do next, or report everything that is wrong with it.",
    )
    parser.add_argument(
        "--explain", action="store_true", help="why each version was chosen, and where each fact is written"
    )
    parser.add_argument(
        "--host",
        action="append",
        default=[],
        type=Path,
        metavar="FACTS.json",
        help="a host by its facts, as ansible -m host_facts --tree writes them (docs/start/install.md); once for each host",
    )
    parser.add_argument(
        "--inventory",
        metavar="PATH",
        help="read the hosts of an inventory as the plan does, and answer for each; without constraints: what it requests",
    )
    parser.add_stacks()
    parser.add_argument("constraints", nargs="*", metavar="COMPONENT=CONSTRAINT")
    return parser


def once(name: str, values: Sequence[str]) -> str | None:
    """The value of an option that may be given once; twice the same is harmless."""
    if len(set(values)) > 1:
        raise Misuse(
            f"--{name} was given twice, as {values[0]} and as {values[1]}. Give it once. For several hosts: --host or --inventory."
        )
    return values[0] if values else None


def read_constraints(options: argparse.Namespace) -> dict[str, Any]:
    """Command line to request: `tensorflow=1.15`, `tensorflow>=2.4` and `tensorflow==1.15.0` all work."""
    request: dict[str, Any] = {}
    gpus: list[str] = list(options.gpu)
    for text in options.constraints:
        match = re.fullmatch(r"([A-Za-z_][\w-]*)\s*(=(?!=)|(?=[<>=!~]))(.*)", text, re.DOTALL)
        if not match:
            name = re.split(r"\W", text)[0]
            hint = nearest_name(name, [*COMPONENTS, *OPTIONS]) if name and name not in COMPONENTS else ""
            raise Misuse(
                f"An argument must be COMPONENT=CONSTRAINT, but one is {text!r}.{hint} For example: tensorflow=1.15"
            )
        name, value = match[1], match[3].strip()
        if name == "gpu":
            gpus += [part for part in value.split(",") if part] or [""]
        elif name in request:
            request[name] = both(name, request[name], value)
        else:
            request[name] = value
    for name in ("os", "hadoop"):
        constraint = once(name, [*getattr(options, name), *([request[name]] if name in request else [])])
        if constraint is not None:
            request[name] = constraint
    if gpus:
        request["gpu"] = gpus
    return request


def both(name: str, first: str, second: str) -> str:
    """Two constraints on one component, as one that means both."""
    if first == second:
        return first
    if not all(re.match(r"[<>=!~]*\s*\d", text) for text in (first, second)):
        raise Misuse(f"{name} was given twice, as {first} and as {second}. Give it once.")
    return f"{first},{second}"


def newer_line(request: dict[str, Any], resolution: Resolution) -> str:
    """A message about a newer TensorFlow that also meets the request, but reads no HDFS or has no lock."""
    if resolution.newer and not resolution.on_mapr:
        return f"Newer, but TensorFlow reads no HDFS: {resolution.newer}. Spark can feed it the data (docs/operate/stacks.md)."
    wheel = newest_wheel(request, gpu="cuda" in resolution.stack) if resolution.name else None
    if wheel is None or version(wheel.version) <= version(resolution.stack["tensorflow"]):
        return ""
    own = " of your own" if wheel.foreign else ""
    pythons = listed(wheel.pythons, "or")
    return f"Newer, without a lock: TensorFlow {wheel.version} on Python {pythons}{own} (docs/operate/stacks.md, scripts/stack lock)."


def resolve_command(arguments: Sequence[str]) -> int:
    options = resolve_parser().parse_intermixed_args(list(arguments))
    if options.stacks:
        add_directory(options.stacks)
    request = read_constraints(options)
    if options.host or options.inventory:
        return resolve_hosts(options, request)
    resolution = resolve(request)
    if options.format == "json":
        print(json.dumps(resolution.as_json(), indent=2))
    elif resolution.fits:
        print(answer_text(resolution, options.explain, newer_line(request, resolution)))
    else:
        print(conflict_text(resolution, options.explain))
    return STATUS[resolution.status]


def resolve_hosts(options: argparse.Namespace, request: Mapping[str, Any]) -> int:
    """The answer for real hosts, which is the plan's."""
    from hadoop_dl.cli import stack_hosts  # an answer without hosts needs less

    surplus_options = [f"--{name}" for name in ("os", "gpu", "hadoop") if name in request]
    surplus_options += ["--explain"] if options.explain else []
    surplus_options += ["--host"] if options.host and options.inventory else []
    if surplus_options:
        host_option = "--inventory" if options.inventory else "--host"
        raise Misuse(
            f"{listed(surplus_options)} cannot be given with {host_option}: hosts are what they answer. Leave it out."
        )
    read_request(load(), request)  # misuse is reported before a host is read
    if options.inventory:
        answers = stack_hosts.of_inventory(options.inventory, request)
    else:
        answers = stack_hosts.of_files(options.host, request)
    print(json.dumps(answers.as_json(), indent=2) if options.format == "json" else answers.text())
    return STATUS["ok" if answers.ok else "conflict"]


def list_command(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="stack list", description="List the named stacks, the best first if hosts are named.", allow_abbrev=False
    )
    add_host_options(parser)
    parser.add_stacks()
    options = parser.parse_args(list(arguments))
    if options.stacks:
        add_directory(options.stacks)
    system = once("os", options.os)
    request = {**({"os": system} if system else {}), **({"gpu": options.gpu} if options.gpu else {})}
    names = stack_names()
    if request:
        bare = [name.lower() for name in options.gpu] == ["none"]
        names = [candidate.name for candidate in fitting(load(), request, HostProfile(gpus=()) if bare else None)]
    stacks = [load_stack(name) for name in names]
    if options.format == "json":
        print(json.dumps([stack_json(stack) for stack in stacks], indent=2))
        return 0
    width = max((len(stack.name) for stack in stacks), default=0)
    for stack in stacks:
        missing = [python for python in stack.pythons if not stack.lock_path(python).is_file()]
        note = f" (no lock for Python {', '.join(missing)})" if missing else ""
        print(f"{stack.name.ljust(width)}  {stack.data['description']}{note}")
    if not stacks:
        print("No named stack fits. scripts/stack resolve with the same options prints why.", file=sys.stderr)
    return 0 if stacks else 2


def stack_json(stack: Stack) -> dict[str, Any]:
    """A named stack for programs: its file's content without what the lock is made from, and its locks by Python."""
    locks = {python: stack.lock_path(python) for python in stack.pythons}
    content = {key: value for key, value in stack.data.items() if key not in ("requirements", "files")}
    return {**content, "locks": {python: path.name if path.is_file() else None for python, path in locks.items()}}


def show_command(arguments: Sequence[str]) -> int:
    parser = Parser(prog="stack show", description="Show one named stack.", allow_abbrev=False)
    parser.add_argument("name", metavar="NAME")
    parser.add_format()
    options = parser.parse_args(list(arguments))
    stack = load_stack(options.name)
    print(json.dumps(stack_json(stack), indent=2) if options.format == "json" else stack_text(stack))
    return 0


def new_command(arguments: Sequence[str]) -> int:
    from hadoop_dl.cli import stack_new  # an answer needs less

    parser = request_parser(
        "new", "Write a stack of your own that meets a request, as stack resolve answers it, and its lock."
    )
    stack_new.add_options(parser)
    parser.add_argument("constraints", nargs="*", metavar="COMPONENT=CONSTRAINT")
    options = parser.parse_intermixed_args(list(arguments))
    stack_new.check(options)
    request = read_constraints(options)
    resolution = resolve(request)
    if resolution.name or not resolution.fits:
        print(answer_text(resolution, False) if resolution.name else conflict_text(resolution, False))
        return STATUS[resolution.status]
    if resolution.stack["tensorflow_source"] == "built":
        raise Misuse(f"Such a stack has a TensorFlow of its own, and nothing was written: {resolution.next[0]}.")
    return stack_new.command(options, request, resolution)


def lock_command(arguments: Sequence[str]) -> int:
    from hadoop_dl.cli import lock_maker  # an answer needs less

    return lock_maker.main(list(arguments))


def project_command(arguments: Sequence[str]) -> int:
    from hadoop_dl.cli import cdsw_project

    return cdsw_project.command(arguments)


COMMANDS: dict[str, Command] = {
    "resolve": resolve_command,
    "list": list_command,
    "show": show_command,
    "new": new_command,
    "cdsw-project": project_command,
    "lock": lock_command,
}


def wants_json(arguments: Sequence[str]) -> bool:
    return any(
        text == "--format=json" or list(arguments[place : place + 2]) == ["--format", "json"]
        for place, text in enumerate(arguments)
    )


def main(arguments: Sequence[str] | None = None, commands: Mapping[str, Command] = COMMANDS) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not words or words[0] in ("-h", "--help"):
            print(f"{__doc__}\n{EPILOG}")
            return 0 if words else 1
        if words[0] not in commands:
            raise Misuse(f"{words[0]} is no command.{nearest_name(words[0], KNOWN)} Known: {', '.join(KNOWN)}.")
        return commands[words[0]](words[1:])
    except (Misuse, StackError) as error:
        if wants_json(words):
            print(json.dumps({"status": "misuse", "message": str(error)}, indent=2))
        print(f"stack: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
