"""scripts/bench noop and first: what the runs of a site cost the controller, by the number of hosts.

Runs that only read (plan.yml, site.yml with nothing to do, report.yml) meet one host by many addresses, which is read once, as the controller cannot tell; a first installation
meets hosts with files of their own.
"""

from collections.abc import Callable, Sequence

from hadoop_dl_dev import install_bench, light_hosts, measurements
from hadoop_dl_dev.demo.shell import DemoError, phase, say

HEAD = ("run", "hosts", "s", "CPU, s", "CPU for each host, s", "memory, MB")
Row = tuple[object, ...]


def noop(hosts: Sequence[int]) -> str:
    counts = sorted(hosts)
    with (
        install_bench.mirror(light_hosts.MIRROR, light_hosts.PORT),
        light_hosts.started(names(counts[-1]), one_root=True),
    ):
        rows = reading("plan.yml, everything to do", counts, plan)
        light_hosts.write_inventory(names(1))
        light_hosts.play("site.yml")
        rows += reading("site.yml, nothing to do", counts, idle)
        rows += reading("report.yml", counts, report)
    return measurements.table(HEAD, rows)


def first(hosts: Sequence[int]) -> str:
    rows = []
    with install_bench.mirror(light_hosts.MIRROR, light_hosts.PORT):
        for count in sorted(hosts):
            with light_hosts.started(names(count)):
                rows.append(row("site.yml, first installation", count, lambda: light_hosts.play("site.yml")))
                idle()
    return measurements.table(HEAD, rows)


def reading(title: str, counts: Sequence[int], play: Callable[[], object]) -> list[Row]:
    with light_hosts.read_once():
        return [row(title, count, play) for count in counts]


def names(count: int) -> list[str]:
    return [f"data{number}" for number in range(1, count + 1)]


def row(title: str, count: int, play: Callable[[], object]) -> Row:
    light_hosts.write_inventory(names(count))
    with phase(f"{title}, {count} hosts"):
        cost = measurements.of_programs(play)
    cells = (title, count, f"{cost.wall:.0f}", f"{cost.cpu:.1f}", f"{cost.cpu / count:.2f}", cost.memory)
    say(f"    {cost.cpu:.1f} s, {cost.memory} MB")  # a long measurement that is ended has shown what it has
    return cells


def plan() -> str:
    return light_hosts.play("playbooks/plan.yml")


def report() -> str:
    return light_hosts.play("playbooks/report.yml", "-e", f"report_directory={light_hosts.BASE / 'report'}")


def idle() -> None:
    output = light_hosts.play("site.yml")
    if "nothing to do" not in output:
        raise DemoError(f"The run must find nothing to do, but ended with:\n{output[-3000:]}")
