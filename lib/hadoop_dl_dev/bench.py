"""scripts/bench: the measurements of docs/reference/performance.md, as the tables that are there. Each has a module of its own."""

import argparse
import sys
from collections.abc import Callable, Sequence

from hadoop_dl_dev import install_bench, noop_bench
from hadoop_dl_dev.demo.shell import DemoError, say


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, measure: Callable[..., str], text: str, rounds: int) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text)
        added.set_defaults(measure=measure)
        added.add_argument("--rounds", type=int, default=rounds, help=f"(default: {rounds})")
        return added

    noop = command("noop", noop_bench.measure, "a run that has nothing to do", 5)
    noop.add_argument("--hosts", type=numbers, default="2,5,20", help="numbers of hosts (default: 2,5,20)")
    command("install", install_bench.measure, "an environment, and a second one, beside cp -a", 3)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: measured; 1: something the message explains."""
    options = vars(parser().parse_args(argv))
    measure = options.pop("measure")
    try:
        say("\n" + measure(**options))
    except DemoError as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
