"""scripts/bench noop: what a run that has nothing to do costs, beside a raw parallel ssh loop to the same hosts.

Light containers are started from a data node of the demo cluster: its file system without its Hadoop services, so that
the reader has a real environment to check. Then, in turn and several rounds over: the loop, which pipes the same reader
over new ssh connections; site.yml with warm connections (ControlPersist); and site.yml with cold ones. What counts is
the ratio within a round; absolute times belong to the machine.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from hadoop_dl.hosts import host_script
from hadoop_dl_dev import demo_hosts, measurements
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.shell import DemoError, phase, run
from hadoop_dl_dev.measurements import Cost

WAYS = ("loop", "site.yml warm", "site.yml cold")
HEAD = ("hosts", "what", "wall s", "CPU s of the controller", "wall / loop")


def table(results: dict[int, dict[str, list[Cost]]]) -> str:
    """A row for each number of hosts and way: medians, and the ratio to the loop of the same round."""
    rows = []
    for count, ways in results.items():
        for way, costs in ways.items():
            wall = statistics.median(cost.wall for cost in costs)
            cpu = statistics.median(cost.cpu for cost in costs)
            ratios = [cost.wall / loop.wall for cost, loop in zip(costs, ways["loop"], strict=True)]
            rows.append((count, way, f"{wall:.2f}", f"{cpu:.2f}", measurements.spread(ratios, 2)))
    return measurements.table(HEAD, rows)


def loop_script(directory: Path, hosts: dict[str, str], base: Cluster) -> list[str]:
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


def site(directory: Path, control: Path) -> None:
    output = demo_hosts.play(directory / "hosts.yml", "site.yml", control=control)
    if "nothing to do" not in output:
        raise DemoError(f"The run must find nothing to do, but ended with:\n{output[-3000:]}")


def timed(work: Callable[[], object]) -> Cost:
    began = measurements.now()
    work()
    return measurements.since(began)


def measure(hosts: Sequence[int], rounds: int) -> str:
    base = demo_hosts.cluster(installed=True)
    results: dict[int, dict[str, list[Cost]]] = {}
    # An ssh control socket's path must be short.
    with (
        demo_hosts.light_containers(base, max(hosts)) as everyone,
        tempfile.TemporaryDirectory() as top,
        tempfile.TemporaryDirectory(prefix="b") as short,
    ):
        control = Path(short)
        for count in sorted(hosts):
            directory = Path(top) / str(count)
            subset = dict(list(everyone.items())[:count])
            demo_hosts.write_inventory(directory, subset, base)
            loop = loop_script(directory, subset, base)
            costs: dict[str, list[Cost]] = {way: [] for way in WAYS}
            results[count] = costs
            with phase(f"{count} hosts, {rounds} rounds"):
                site(directory, control)  # opens the connections, fills the caches
                for _ in range(rounds):
                    costs["loop"].append(timed(lambda: run(*loop)))  # noqa: B023 (called at once)
                    costs["site.yml warm"].append(timed(lambda: site(directory, control)))  # noqa: B023
                    demo_hosts.close_connections(control)
                    costs["site.yml cold"].append(timed(lambda: site(directory, control)))  # noqa: B023
                demo_hosts.close_connections(control)
    return table(results)
