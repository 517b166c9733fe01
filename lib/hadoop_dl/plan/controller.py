"""The controller's ansible-core and the hosts' own Pythons: its modules for packages run in the one that has the bindings of yum and dnf."""

import re
from collections.abc import Iterator, Sequence

from hadoop_dl.data.compat import load
from hadoop_dl.plan.model import Host
from hadoop_dl.resolver.hosts import System, find_system
from hadoop_dl.resolver.versions import version


def runs_on(targets: str, python: str) -> bool:
    """Whether a Python is among targets such as "2.7, 3.6+"."""
    number, parts = version(python), [part.strip() for part in targets.split(",")]
    return any(
        number == version(part.rstrip("+")) or (part.endswith("+") and number >= version(part.rstrip("+")))
        for part in parts
    )


def problems(hosts: Sequence[Host], core: str) -> Iterator[str]:
    """Hosts whose own Python this ansible-core does not support. A newer line than those of the data supports no more than the last."""
    compat = load()
    lines = sorted(compat.rows("ansible", "lines"), key=lambda row: version(row["line"]))
    line = re.match(r"\d+\.\d+", core)
    known = [row for row in lines if line and version(row["line"]) <= version(line[0])]
    targets = (known or lines[:1])[-1]["target"]
    systems = {row["os"]: row["pythons"][0]["python"] for row in compat.rows("platforms", "releases")}
    for host in hosts:
        system = find_system(compat, f"{host.facts.os.id}-{host.facts.os.version}") if host.facts else None
        python = systems.get(system.key) if isinstance(system, System) else None
        if python and not runs_on(targets, python):
            yield (
                f"{host.name}: ansible-core {core} runs modules in Python {targets}, but the system's own is {python}. "
                "Use the ansible-playbook of .venv (make .venv), which has 2.16, the last for Python 2.7 and 3.6."
            )
