"""scripts/bench noop: the cost of a run that has nothing to do.

Light containers are started from a data node of the demo cluster: its file system without its Hadoop services, so that
the reader has a real environment to check. site.yml runs on them with warm connections (ControlPersist) and with cold ones,
in turn. Absolute times belong to the machine.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hadoop_dl_dev import demo_hosts, measurements
from hadoop_dl_dev.demo.shell import DemoError, phase
from hadoop_dl_dev.measurements import Cost

HEAD = ("hosts", "connections", "s (CPU of the controller)")


def site(directory: Path, control: Path) -> None:
    output = demo_hosts.play(directory / "hosts.yml", "site.yml", control)
    if "nothing to do" not in output:
        raise DemoError(f"The run must find nothing to do, but ended with:\n{output[-3000:]}")


def measure(hosts: Sequence[int], rounds: int) -> str:
    base = demo_hosts.cluster()
    rows = []
    # An ssh control socket's path must be short.
    with (
        demo_hosts.light_containers(base, max(hosts)) as everyone,
        tempfile.TemporaryDirectory() as top,
        tempfile.TemporaryDirectory(prefix="b") as short,
    ):
        control = Path(short)
        for count in sorted(hosts):
            directory = Path(top) / str(count)
            demo_hosts.write_inventory(directory, dict(list(everyone.items())[:count]), base)
            costs: dict[str, list[Cost]] = {"warm": [], "cold": []}
            with phase(f"{count} hosts, {rounds} rounds"):
                site(directory, control)  # opens the connections, fills the caches
                for _ in range(rounds):
                    for connections in costs:
                        began = measurements.now()
                        site(directory, control)
                        costs[connections].append(measurements.since(began))
                        if connections == "warm":
                            demo_hosts.close_connections(control)
                demo_hosts.close_connections(control)
            rows += [(count, connections, measurements.medians(costs[connections])) for connections in costs]
    return measurements.table(HEAD, rows)
