"""scripts/bench wheels: the same environment on one and on several hosts, over the limited link of one mirror, directly and through HDFS.

The hosts are light containers of a data node of the demo cluster, on which the platform is not installed; HDFS is that of the demo.
Hosts and mirror share this machine, so the processor time tells what separate hosts would do side by side.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hadoop_dl_dev import light_hosts
from hadoop_dl_dev.demo import cluster as demo
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.images import REPOSITORY
from hadoop_dl_dev.demo.shell import DemoError, phase, say
from hadoop_dl_dev.demo.tour import BIN, ENVIRONMENT, fill_mirror
from hadoop_dl_dev.install_bench import now, since
from hadoop_dl_dev.link_bench import check_bare

HEAD = """| hosts | wheels from | the mirror sent, MB | on its link, s | wall s | wall / link | wall / first row | CPU s |
|---|---|---|---|---|---|---|---|"""
# Nanoseconds of cgroup 1, or microseconds of cgroup 2.
USED = "cat /sys/fs/cgroup/cpuacct/cpuacct.usage 2>/dev/null || sed -n 's/^usage_usec \\(.*\\)/\\1000/p' /sys/fs/cgroup/cpu.stat"
WHEELS = "/apps/deeplearning/spark/wheels"
LONGEST = 3600  # seconds of one run


@dataclass(frozen=True)
class Run:
    """What a playbook took. link: bytes that the mirror sent; cpu: seconds of the controller and of all containers."""

    wall: float
    cpu: float
    link: int


def table(results: dict[tuple[str, int], list[Run]], rate: float) -> str:
    """Markdown, a row for each source and number of hosts: medians, and the ratio to the first row in the same round."""
    lines = [HEAD]
    first = next(iter(results.values()))
    for (source, count), runs in results.items():
        wall, cpu, sent = (statistics.median(getattr(one, name) for one in runs) for name in ("wall", "cpu", "link"))
        ratio = statistics.median(one.wall / other.wall for one, other in zip(runs, first, strict=True))
        link = sent * 8 / rate
        lines.append(
            f"| {count} | {source} | {sent / 1e6:.0f} | {link:.0f} | {wall:.0f} | {wall / link:.2f} | {ratio:.2f} | {cpu:.0f} |"
        )
    return "\n".join(lines)


@contextmanager
def limited(mirror: str, address: str, rate: float) -> Iterator[str]:
    """The name of the mirror's interface in the cluster's network, which sends no more than rate (bit/s)."""
    shown = nodes.execute(mirror, "ip", "-brief", "address").splitlines()
    interface = next(line.split("@")[0] for line in shown if f" {address}/" in line)
    queue = ("tc", "qdisc", "replace", "dev", interface, "root")
    nodes.execute(mirror, *queue, "tbf", "rate", f"{rate:.0f}bit", "burst", "64kb", "latency", "100ms")
    try:
        yield interface
    finally:
        nodes.execute(mirror, "tc", "qdisc", "del", "dev", interface, "root")


def used(containers: Sequence[str]) -> float:
    """Seconds of processor time that the containers have taken so far."""
    return sum(int(nodes.execute(name, "sh", "-c", USED)) for name in containers) / 1e9


def bench(wanted: str, rate: float, rounds: int) -> str:
    """The table, of the demo cluster. wanted: such as mirror:1,hdfs:8.

    Each run begins with hosts without an environment, and HDFS without wheels.
    """
    base = demo.recorded(demo.DEFAULT_NAME)
    check_bare(base)
    fill_mirror(base)
    pairs = [one.split(":") for one in wanted.split(",")]
    results: dict[tuple[str, int], list[Run]] = {(source, int(count)): [] for source, count in pairs}
    most = max(count for _, count in results)
    mirror = base.container("mirror1")
    try:
        with phase(f"{most} light containers from {base.container('data1')}"):
            light_hosts.make_image(base.container("data1"))
            hosts = light_hosts.start(most, base)
        with limited(mirror, base.addresses["mirror1"], rate) as interface, tempfile.TemporaryDirectory() as made:
            for number in range(rounds):
                for source, count in results:
                    chosen = dict(list(hosts.items())[:count])
                    directory = Path(made, f"{number}-{source}-{count}")
                    directory.mkdir()
                    light_hosts.write_inventory(directory, chosen, base)
                    with phase(f"{count} hosts, wheels from {source}"):
                        clear(base, list(chosen))
                        taken = installed(base, directory, list(chosen), source, interface)
                    say(f"    {taken}")
                    results[source, count].append(taken)
    finally:
        light_hosts.remove()
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

    command = [str(BIN / "ansible-playbook"), "-i", str(directory / "hosts.yml")]
    command += [str(REPOSITORY / "playbooks" / "frameworks.yml"), "-e", f"environment_source={source}"]
    log = directory / "log"
    before, cpu = sent(), used(containers)
    with log.open("w", encoding="utf-8") as out:
        began = now()
        done = subprocess.run(command, env=ENVIRONMENT, stdout=out, stderr=out, timeout=LONGEST, check=False)
        wall, controller = since(began)
    text = log.read_text(encoding="utf-8")
    if done.returncode or "wheels come from the mirror" in text.lower():
        raise DemoError(f"The run must take its wheels from {source} on every host, but its log ends:\n{text[-3000:]}")
    return Run(wall, controller + used(containers) - cpu, sent() - before)
