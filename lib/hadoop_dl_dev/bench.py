"""scripts/bench: the measurements of docs/reference/performance.md, as the tables that are there. Each has a module of its own."""

import argparse
import sys
from collections.abc import Sequence

from hadoop_dl_dev import hosts_bench, install_bench, light_hosts
from hadoop_dl_dev.demo.shell import DemoError, say


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    for name, measure, text, counts in (
        ("noop", hosts_bench.noop, "runs that change nothing, by the number of hosts", "20,100,1000"),
        ("first", hosts_bench.first, "a first installation, by the number of hosts", "20,100"),
    ):
        command = commands.add_parser(name, help=text)
        command.set_defaults(measure=measure, isolated=True)
        command.add_argument("--hosts", type=numbers, default=counts, help=f"numbers of hosts (default: {counts})")
    install = commands.add_parser("install", help="an environment, and a second one, beside cp -a")
    install.set_defaults(measure=install_bench.measure, isolated=False)
    install.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: measured; 1: something the message explains."""
    arguments = sys.argv[1:] if argv is None else argv
    options = vars(parser().parse_args(arguments))
    measure, isolated = options.pop("measure"), options.pop("isolated")
    try:
        if isolated and not light_hosts.is_inside():
            return light_hosts.isolated(arguments)
        say("\n" + measure(**options))
    except DemoError as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
