"""What a plan is made of: hosts, components, and the answer with its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hadoop_dl.plan import gpu_layer, gpu_stack

Json = dict[str, Any]
# Which roles make a component, which groups of hosts have it, and in which group its hosts come when it needs work.
COMPONENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "mirror": (("mirror",), ("mirror_host",)),
    **{role: ((role,), gpu_layer.GROUPS) for role in (*gpu_stack.ROLES, "gpu_check")},
    "environment": (("pip", "tensorflow", "keras", "environment"), ("data_nodes", "edge_nodes", "cdsw_hosts")),
    "hadoop_client": (("hadoop_client",), ("data_nodes", "edge_nodes", "cdsw_hosts")),
    "tensorflowonspark": (("tensorflowonspark",), ("edge_nodes",)),
    "verify": (("verify",), ("data_nodes", "edge_nodes", "cdsw_hosts")),  # last: it is about all of the above
}
GROUPS = tuple(dict.fromkeys(group for _, groups in COMPONENTS.values() for group in groups))


@dataclass(frozen=True)
class Host:
    """One inventory host: its groups, its raw (untemplated) variables, and what the reader answered (None: unreachable)."""

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any]
    node: Json | None

    def wants(self, component: str) -> bool:
        return bool(set(self.groups) & set(COMPONENTS[component][1]))


@dataclass(frozen=True)
class Row:
    """One line of the plan's table."""

    host: str
    component: str
    now: str
    wanted: str
    reason: str


@dataclass
class Plan:
    """The answer. `hosts` maps a name to its stack, its wanted digests and the components that need work."""

    hosts: dict[str, Json] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    reboots: list[str] = field(default_factory=list)

    def as_json(self) -> Json:
        """The plan for machines: what preflight_plan_file holds."""
        return {
            "hosts": self.hosts,
            "rows": [vars(row) for row in self.rows],
            "warnings": self.warnings,
            "problems": self.problems,
            "unreachable": self.unreachable,
        }

    def changes(self, every: bool = False) -> list[Json]:
        """Hosts that need something (or all of them), with the groups to join and their own part of the plan."""
        return [
            {"host": name, "groups": [f"needs_{need}" for need in part["needs"]], "plan": part}
            for name, part in self.hosts.items()
            if part["needs"] or every
        ]

    def interruption(self) -> str:
        """What the run does to what the hosts are busy with."""
        reboot = f"A reboot may be needed: {'; '.join(self.reboots)}." if self.reboots else "No reboot."
        return f"{reboot} Running jobs keep the environment they started with."

    def table(self) -> str:
        """The plan for people: one line per host and component that needs work."""
        asked = len(self.hosts)
        if self.problems:
            return "PLAN: nothing can be planned until the problems below are solved."
        if not self.rows:
            return f"PLAN: {asked} hosts are as they should be; nothing to do."
        changed = len({row.host for row in self.rows})
        lines = [("host", "component", "now", "wanted", "why")]
        lines += [(row.host, row.component, row.now, row.wanted, row.reason) for row in self.rows]
        widths = [max(len(line[column]) for line in lines) for column in range(4)]
        text = "\n".join(
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=False)) + "  " + line[4]
            for line in lines
        )
        return f"PLAN: {changed} of {asked} hosts change. {self.interruption()}\n{text}"

    def failure(self) -> str:
        count = len(self.problems)
        listed = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(self.problems, 1))
        return f"{count} problem{'s' if count > 1 else ''} found; no host was changed.\n{listed}"
