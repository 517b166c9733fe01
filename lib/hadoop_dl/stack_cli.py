"""scripts/stack: resolve a request into a stack, list the named stacks, write or prove their locks, write docs/compatibility.md and docs/inputs.md.

Exit codes of resolve: 0 there is a stack, 1 misuse (an unknown component or option), 2 the request cannot be met.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from hadoop_dl.parser import Parser
from hadoop_dl.resolver import Misuse, Resolution, resolve
from hadoop_dl.resolver.request import COMPONENTS, OPTIONS, nearest_name

COMMANDS = ("resolve", "list", "lock", "docs")
EPILOG = f"""\
components: {", ".join(COMPONENTS)}
a constraint is a version's beginning (1.15 is any 1.15.x), a range as pip writes it (tensorflow=">=2.4,<2.12"), or none

examples:
  scripts/stack resolve --os rhel-7.9 --gpu P100 tensorflow=1.15 python=2.7 kafka=true
  scripts/stack resolve --os rhel-9.4 --gpu A100 --gpu H100 --hadoop cdp-7.1 --explain
"""


def resolve_parser() -> Parser:
    parser = Parser(
        prog="stack resolve",
        description="Turn a request into a complete version set, or say everything that is wrong with it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument("--os", help="operating system of the hosts: rhel-7.9, rocky-9.4, debian-12, ubuntu-22.04")
    parser.add_argument(
        "--gpu", action="append", default=[], help="a GPU's name or PCI id; once for each model, or none"
    )
    parser.add_argument("--hadoop", help="distribution and release: cdh-5.16, cdp-7.1, hdp-3.1, mapr-6.1, apache-3.3.6")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="for people or for programs")
    parser.add_argument(
        "--explain", action="store_true", help="say why each version was chosen, and where that is written"
    )
    parser.add_argument("constraints", nargs="*", metavar="COMPONENT=CONSTRAINT")
    return parser


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
                f"An argument has to be COMPONENT=CONSTRAINT, and one is {text!r}.{hint} For example: tensorflow=1.15"
            )
        name, value = match[1], match[3].strip()
        if name == "gpu":
            gpus += [part for part in value.split(",") if part] or [""]
        elif name in request:
            request[name] = both(name, request[name], value)
        else:
            request[name] = value
    for name in ("os", "hadoop"):
        given = getattr(options, name)
        if given is not None:
            if name in request and request[name] != given:
                raise Misuse(f"--{name} was given twice, as {request[name]} and as {given}. Give it once.")
            request[name] = given
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


def show(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(value) if isinstance(value, list) else str(value)


def command_line(request: dict[str, Any]) -> str:
    """A request as one would type it."""
    parts = [f"--os {request['os']}"] if "os" in request else []
    parts += [
        f"--gpu '{name}'" if " " in name else f"--gpu {name}" for name in str(request.get("gpu", "")).split(",") if name
    ]
    parts += [f"--hadoop {request['hadoop']}"] if "hadoop" in request else []
    for name, value in request.items():
        if name not in OPTIONS:
            text = f"{name}={value}"
            parts.append(f"'{text}'" if re.search(r"[<>!|~ ]", text) else text)
    return " ".join(["scripts/stack resolve", *parts])


def render(resolution: Resolution, explain: bool) -> str:
    """The answer for people."""
    if not resolution.ok:
        count = len(resolution.conflicts)
        lines = [f"The request cannot be met: {count} conflict{'s' if count != 1 else ''}."]
        for number, conflict in enumerate(resolution.conflicts, 1):
            lines.append(f"  {number}. {conflict.message}")
            lines += [f"       {source}" for source in conflict.sources]
        if resolution.nearest:
            lines += ["Nearest requests that fit:", *[f"  {command_line(request)}" for request in resolution.nearest]]
        return "\n".join(lines)
    width = max(len(key) for key in resolution.stack)
    lines = [f"{key.ljust(width)}  {show(value)}" for key, value in resolution.stack.items()]
    if explain:
        lines += ["", "Why:"]
        for finding in resolution.reasons:
            lines.append(f"  {finding.text}")
            lines += [f"      {source}" for source in finding.sources]
    if resolution.warnings:
        lines += ["", "Good to know:", *[f"  {finding.text}." for finding in resolution.warnings]]
    return "\n".join(lines)


def resolve_command(arguments: Sequence[str]) -> int:
    options = resolve_parser().parse_intermixed_args(list(arguments))
    resolution = resolve(read_constraints(options))
    if options.format == "json":
        print(json.dumps(resolution.as_json(), indent=2))
    else:
        print(render(resolution, options.explain))
    return 0 if resolution.ok else 2


def list_command(arguments: Sequence[str]) -> int:
    from hadoop_dl.stacks import load_stack, stack_names

    parser = Parser(prog="stack list", description="List the stacks that can be installed.", allow_abbrev=False)
    parser.parse_args(list(arguments))
    names = stack_names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name.ljust(width)}  {load_stack(name).data['description']}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given or given[0] in ("-h", "--help"):
            print(f"{__doc__}\ncommands: {', '.join(COMMANDS)}; each has --help\n\n{EPILOG}")
            return 0 if given else 1
        if given[0] not in COMMANDS:
            raise Misuse(f"{given[0]} is no command.{nearest_name(given[0], COMMANDS)} Known: {', '.join(COMMANDS)}.")
        if given[0] == "lock":
            from hadoop_dl import locks

            return locks.main(given[1:])
        if given[0] == "docs":
            from hadoop_dl import compat_docs, input_docs

            return compat_docs.main(given[1:]) | input_docs.write(check="--check" in given)
        return {"resolve": resolve_command, "list": list_command}[given[0]](given[1:])
    except Misuse as error:
        print(f"stack: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
