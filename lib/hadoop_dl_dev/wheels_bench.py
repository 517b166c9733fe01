"""scripts/bench wheels: the same environment on one and on several hosts, over the limited link of one mirror, directly and through HDFS.

The hosts are light containers of a data node of the demo cluster, on which the platform is not installed; HDFS is that of the demo.
Hosts and mirror share this machine, so the processor time tells what separate hosts would do side by side.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hadoop_dl_dev import demo_hosts, measurements
from hadoop_dl_dev.demo import cluster as demo
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.shell import DemoError, phase, say
from hadoop_dl_dev.demo.tour import fill_mirror

HEAD = ("Mbit/s", "hosts", "wheels from", "the mirror sent, MB", "on its link, s", "wall s", "to one host", "CPU s")
# Nanoseconds of cgroup 1, or microseconds of cgroup 2.
USED = "cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null || sed -n 's/^usage_usec \\(.*\\)/\\1000/p' /sys/fs/cgroup/cpu.stat"
WHEELS = "/apps/deeplearning/spark/wheels"


@dataclass(frozen=True)
class Run:
    """The cost of a playbook. link: bytes that the mirror sent; cpu: seconds of the controller and of all containers."""

    wall: float
    cpu: float
    link: int


def table(runs: Sequence[tuple[str, int, Run]], rate: float) -> str:
    """Markdown, a row for each source and number of hosts, with the ratio to the first row."""
    rows = []
    for source, count, run in runs:
        ratio = run.wall / runs[0][2].wall
        sizes = (f"{run.link / 1e6:.0f}", f"{run.link * 8 / rate:.0f}", f"{run.wall:.0f}", f"{ratio:.2f}")
        rows.append((f"{rate / 1e6:g}", count, source, *sizes, f"{run.cpu:.0f}"))
    return measurements.table(HEAD, rows)


@contextmanager
def limited(mirror: str, address: str, rate: float) -> Iterator[str]:
    """The name of the mirror's interface in the cluster's network, which sends no more than rate (bit/s)."""
    lines = nodes.execute(mirror, "ip", "-brief", "address").splitlines()
    interface = next(line.split("@")[0] for line in lines if f" {address}/" in line)
    queue = ("tc", "qdisc", "replace", "dev", interface, "root")
    nodes.execute(mirror, *queue, "tbf", "rate", f"{rate:.0f}bit", "burst", "64kb", "latency", "100ms")
    try:
        yield interface
    finally:
        nodes.execute(mirror, "tc", "qdisc", "del", "dev", interface, "root")


def used(containers: Sequence[str]) -> float:
    """Seconds of processor time that the containers have taken so far."""
    return sum(int(nodes.execute(name, "sh", "-c", USED)) for name in containers) / 1e9


def measure(runs: str, rate: float) -> str:
    """The table, of the demo cluster. runs: such as mirror:1,hdfs:8.

    Each run begins with hosts without an environment, and HDFS without wheels.
    """
    base = demo_hosts.cluster(installed=False)
    fill_mirror(base)
    plan = [(source, int(count)) for source, count in (text.split(":") for text in runs.split(","))]
    results = []
    with (
        demo_hosts.light_containers(base, max(count for _, count in plan)) as hosts,
        limited(base.container("mirror1"), base.addresses["mirror1"], rate) as interface,
        tempfile.TemporaryDirectory() as top,
    ):
        for source, count in plan:
            subset = dict(list(hosts.items())[:count])
            directory = Path(top, f"{source}-{count}")
            demo_hosts.write_inventory(directory, subset, base)
            with phase(f"{count} hosts, wheels from {source}"):
                clear(base, list(subset))
                cost = installed(base, directory, list(subset), source, interface)
            say(f"    {cost}")
            results.append((source, count, cost))
    return table(results, rate)


def clear(base: demo.Cluster, hosts: Sequence[str]) -> None:
    for host in hosts:
        nodes.execute(host, "rm", "-rf", "/opt/deeplearning")
    command = f"hdfs dfs -rm -r -f -skipTrash {WHEELS}"
    nodes.execute(base.container("edge1"), "bash", "--login", "-c", command, user="hdfs")
    os.sync()  # what was deleted is written now, and not during the installation


def installed(base: demo.Cluster, directory: Path, hosts: Sequence[str], source: str, interface: str) -> Run:
    """playbooks/frameworks.yml for these hosts."""
    mirror, containers = base.container("mirror1"), [*hosts, *demo.existing(base.name)]

    def sent() -> int:
        return int(nodes.execute(mirror, "cat", f"/sys/class/net/{interface}/statistics/tx_bytes"))

    start, cpu = sent(), used(containers)
    began = measurements.now()
    text = demo_hosts.play(directory / "hosts.yml", "playbooks/frameworks.yml", "-e", f"environment_source={source}")
    cost = measurements.since(began)
    if "wheels come from the mirror" in text.lower():
        raise DemoError(f"The run must take its wheels from {source} on every host, but its log ends:\n{text[-3000:]}")
    return Run(cost.wall, cost.cpu + used(containers) - cpu, sent() - start)
