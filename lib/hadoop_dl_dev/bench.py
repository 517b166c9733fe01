"""scripts/bench: the measurements of docs/performance.md, as the tables that are there. Each has a module of its own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from hadoop_dl_dev import install_bench, link_bench, noop_bench, plan_bench, resolver_bench, wheels_bench
from hadoop_dl_dev.demo.shell import DemoError, say


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, measure: Callable[..., str], text: str, rounds: int = 0) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text)
        added.set_defaults(measure=measure)
        if rounds:
            added.add_argument("--rounds", type=int, default=rounds, help=f"(default: {rounds})")
        return added

    noop = command("noop", noop_bench.measure, "a run that has nothing to do, beside a raw ssh loop", 5)
    noop.add_argument("--hosts", type=numbers, default="2,5,20", help="numbers of hosts (default: 2,5,20)")
    resolve = command("resolve", resolver_bench.measure, "hosts in the resolver, beside reading their facts", 7)
    resolve.add_argument("--hosts", type=int, default=1000, help="how many (default: 1000)")
    plan = command("plan", plan_bench.measure, "the plan of many hosts, the first one and the next", 3)
    plan.add_argument("--hosts", type=numbers, default="250,1000", help="numbers of hosts (default: 250,1000)")
    command("install", install_bench.measure, "an environment, a second one and a repair, beside cp -a", 3)
    command("link", link_bench.measure, "site.yml and verify.yml over slow links to the demo's hosts")
    wheels = command("wheels", wheels_bench.measure, "the same environment over the mirror's limited link")
    usual = "mirror:1,mirror:8,hdfs:1,hdfs:8"
    wheels.add_argument("--runs", default=usual, help=f"environment_source and number of hosts (default: {usual})")
    wheels.add_argument("--rate", type=float, default=20e6, help="bit/s of the mirror's link (default: 20000000)")
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
