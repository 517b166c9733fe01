"""scripts/bench: a run with nothing to do (noop), a thousand hosts in the resolver (resolve) and in the plan (plan), an installation (install),
playbooks over slow links to the hosts (link), and many hosts behind one link of the mirror (wheels).

noop: what a run that has nothing to do costs, beside a raw parallel ssh loop to the same hosts.

Light containers are started from a data node of the demo cluster: its file system without its Hadoop services, so that
the reader has a real environment to check. Then, in turn and several rounds over: the loop, which pipes the same reader
over new ssh connections; site.yml with warm connections (ControlPersist); and site.yml with cold ones. What counts is
the ratio within a round; absolute times belong to the machine. Figures reached: docs/performance.md.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hadoop_dl.hosts import host_script
from hadoop_dl_dev import light_hosts, wheels_bench
from hadoop_dl_dev.demo import cluster as demo
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.images import REPOSITORY
from hadoop_dl_dev.demo.shell import DemoError, phase, run, say
from hadoop_dl_dev.link_bench import close_connections, measure_links

BIN = REPOSITORY / ".venv" / "bin"
WAYS = ("loop", "site.yml warm", "site.yml cold")


@dataclass(frozen=True)
class Cost:
    """Seconds of wall clock, and of processor time that the controller's processes took."""

    wall: float
    cpu: float


def measure(work: Callable[[], object]) -> Cost:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    work()
    wall, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def spread(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} - {max(ratios):.2f})"


def table(results: dict[int, dict[str, list[Cost]]]) -> str:
    """A Markdown table: per number of hosts and way the median, and the ratios to the loop of the same round."""
    lines = ["| hosts | what | wall s | CPU s | wall / loop | CPU / loop |", "|---|---|---|---|---|---|"]
    for count, ways in results.items():
        for way, costs in ways.items():
            wall = statistics.median(cost.wall for cost in costs)
            cpu = statistics.median(cost.cpu for cost in costs)
            pairs = list(zip(costs, ways["loop"], strict=True))
            ratios = (
                spread([cost.wall / loop.wall for cost, loop in pairs]),
                spread([cost.cpu / loop.cpu for cost, loop in pairs]),
            )
            lines.append(f"| {count} | {way} | {wall:.2f} | {cpu:.2f} | {ratios[0]} | {ratios[1]} |")
    return "\n".join(lines)


def loop_script(directory: Path, hosts: dict[str, str], base: demo.Cluster) -> list[str]:
    """A shell loop: one ssh per host in the background, the same script on its standard input, the same command."""
    (directory / "reader.py").write_text(host_script.reader(), encoding="utf-8")
    (directory / "command").write_text(f"sudo -n /bin/sh -c '{host_script.command()}'", encoding="utf-8")
    key = base.state / "id_ed25519"
    ssh = f"ssh -o ControlMaster=no -o ControlPath=none -o BatchMode=yes -o UserKnownHostsFile={directory}/known_hosts -i {key}"
    script = (
        f'for host in {" ".join(hosts.values())}; do {ssh} "deploy@$host" "$(cat {directory}/command)" '
        f"< {directory}/reader.py > {directory}/answer.$host & done; wait"
    )
    return ["bash", "-c", script]


def site(directory: Path, control: Path, environment: dict[str, str]) -> None:
    command = [str(BIN / "ansible-playbook"), "-i", str(directory / "hosts.yml"), str(REPOSITORY / "site.yml")]
    done = subprocess.run(
        command,
        env={**environment, "ANSIBLE_SSH_CONTROL_PATH_DIR": str(control)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or "nothing to do" not in done.stdout:
        raise DemoError(
            f"the run was to find nothing to do, and ended with status {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}"
        )


def bench_noop(counts: Sequence[int], rounds: int) -> dict[int, dict[str, list[Cost]]]:
    base = demo.recorded(demo.DEFAULT_NAME)
    source = base.container("data1")
    if nodes.state(source) != "running":
        raise DemoError(
            "the bench needs a data node that site.yml has made, and the demo is not up. Run make demo first."
        )
    results: dict[int, dict[str, list[Cost]]] = {}
    environment = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
    }
    try:
        with phase(f"{max(counts)} light containers from {source}"):
            light_hosts.make_image(source)
            everyone = light_hosts.start(max(counts), base)
        # An ssh control socket's path must be short.
        with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory(prefix="b") as short:
            control = Path(short)
            for count in counts:
                directory = Path(made) / str(count)
                directory.mkdir()
                hosts = dict(list(everyone.items())[:count])
                light_hosts.write_inventory(directory, hosts, base)
                loop = loop_script(directory, hosts, base)
                results[count] = {way: [] for way in WAYS}
                with phase(f"{count} hosts, {rounds} rounds"):
                    site(directory, control, environment)  # opens the connections, fills the caches
                    for _ in range(rounds):
                        results[count]["loop"].append(measure(lambda: run(*loop)))  # noqa: B023 (called at once)
                        results[count]["site.yml warm"].append(measure(lambda: site(directory, control, environment)))  # noqa: B023
                        close_connections(control)
                        results[count]["site.yml cold"].append(measure(lambda: site(directory, control, environment)))  # noqa: B023
                    close_connections(control)
    finally:
        light_hosts.remove()
    return results


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status 0: measured; 1: something the message explains."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    noop = commands.add_parser("noop", help="a run that has nothing to do, beside a raw ssh loop")
    noop.add_argument("--hosts", default="2,5,20", help="numbers of hosts, separated by commas (default: 2,5,20)")
    noop.add_argument("--rounds", type=int, default=7)
    resolving = commands.add_parser("resolve", help="a thousand hosts through the resolver, beside reading their facts")
    resolving.add_argument("--hosts", type=int, default=1000, help="how many (default: 1000)")
    resolving.add_argument("--rounds", type=int, default=7)
    planning = commands.add_parser("plan", help="the plan of 250 and of 1,000 hosts, the first one and the next")
    planning.add_argument("--hosts", default="250,1000", help="numbers of hosts (default: 250,1000)")
    planning.add_argument("--rounds", type=int, default=5)
    installing = commands.add_parser(
        "install", help="an environment, a second one and a repair, beside cp -a of the tree"
    )
    installing.add_argument("--stacks", nargs=2, default=["tf2.15-cpu-py3-el9", "tf2.17-cpu-py311"])
    installing.add_argument("--python", default="3.11", help="the stacks' Python (default: 3.11)")
    installing.add_argument("--interpreter", default="/usr/bin/python3.11")
    installing.add_argument("--directory", type=Path, default=Path("/var/tmp/deeplearning-bench"))  # noqa: S108
    installing.add_argument("--rounds", type=int, default=3)
    linking = commands.add_parser("link", help="site.yml and verify.yml over slow links to the demo's hosts")
    linking.add_argument("--round-trip", type=float, default=0.1, help="seconds (default: 0.1)")
    linking.add_argument("--rate", type=float, default=10e6, help="bit/s of each host's link (default: 10000000)")
    taking = commands.add_parser(
        "wheels", help="the same environment on 1 and on 8 hosts over the mirror's limited link"
    )
    usual = "mirror:1,mirror:8,hdfs:1,hdfs:8"
    taking.add_argument("--runs", default=usual, help=f"environment_source and number of hosts (default: {usual})")
    taking.add_argument("--rate", type=float, default=20e6, help="bit/s of the mirror's link (default: 20000000)")
    taking.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args(argv)
    if arguments.command == "install":
        from hadoop_dl_dev import install_bench  # (loads the modules of hosts, which the other commands do not need)

        say(
            "\n"
            + install_bench.measure(
                arguments.stacks, arguments.python, arguments.interpreter, arguments.directory, arguments.rounds
            )
        )
        return 0
    if arguments.command == "plan":
        from hadoop_dl_dev import plan_bench  # (loads the plan, which the other commands do not need)

        say("\n" + plan_bench.measure([int(count) for count in arguments.hosts.split(",")], arguments.rounds))
        return 0
    if arguments.command == "resolve":
        from hadoop_dl_dev import resolver_bench  # (loads the resolver, which the other command does not need)

        say("\n" + resolver_bench.measure(arguments.hosts, arguments.rounds))
        return 0
    try:
        if arguments.command == "link":
            say("\n" + measure_links(arguments.round_trip, arguments.rate))
            return 0
        if arguments.command == "wheels":
            say("\n" + wheels_bench.bench(arguments.runs, arguments.rate, arguments.rounds))
            return 0
        say("\n" + table(bench_noop(sorted(int(count) for count in arguments.hosts.split(",")), arguments.rounds)))
    except DemoError as error:
        print(f"scripts/bench: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
