"""The plan as data: hosts, and the answer with its table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.data.host_facts import FactsError, HostFacts, read_facts

Json = dict[str, Any]


@dataclass(frozen=True)
class Host:
    """One inventory host: its groups, its raw (untemplated) variables, and its facts.

    Without facts it is unreachable, or `problem` says which part of its answer has no sense.
    """

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any]
    facts: HostFacts | None = None
    problem: str = ""

    @property
    def known(self) -> HostFacts:
        """The facts of a host that was read."""
        if self.facts is None:
            raise ValueError(f"{self.name} was not read.")
        return self.facts


def host_of(name: str, groups: Iterable[str], variables: Mapping[str, Any], answer: Any) -> Host:
    """The host with what it answered to host_facts; None if it did not. Facts enter here and nowhere else."""
    facts, problem = None, ""
    if answer is not None:
        try:
            facts = read_facts(answer)
        except FactsError as error:
            problem = str(error)
    return Host(name, tuple(groups), variables, facts, problem)


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
    problems_by_host: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    # What the site decided, or was warned of before: for the report alone.
    notes: list[str] = field(default_factory=list)
    unreachable: list[str] = field(default_factory=list)
    reboots: dict[str, list[str]] = field(default_factory=dict)  # the reason for one, and the hosts
    gpu_packages: dict[str, Json] = field(default_factory=dict)  # of a mirror, by system: hosts and packages
    restarts: list[str] = field(default_factory=list)  # of the workbench, with what they mean for its sessions

    def tell(
        self, host: str, problems: Iterable[str] = (), warnings: Iterable[str] = (), notes: Iterable[str] = ()
    ) -> None:
        """Add sentences about one host."""
        self.problems += [f"{host}: {text}" for text in problems]
        self.warnings += [f"{host}: {text}" for text in warnings]
        self.notes += [f"{host}: {text}" for text in notes]

    def as_json(self) -> Json:
        """The plan for machines: what preflight_plan_file holds."""
        return {
            "hosts": self.hosts,
            "rows": [vars(row) for row in self.rows],
            "warnings": self.warnings,
            "notes": self.notes,
            "problems": self.problems,
            "problems_by_host": self.problems_by_host,
            "unreachable": self.unreachable,
            "gpu_packages": self.gpu_packages,
        }

    def changes(self, every: bool = False) -> list[Json]:
        """Hosts that need something (or all of them), with the groups to join and their own part of the plan."""
        return [
            {"host": name, "groups": [f"needs_{need}" for need in part["needs"]], "plan": part}
            for name, part in self.hosts.items()
            if part["needs"] or every
        ]

    def interruption(self) -> str:
        """Which work on the hosts the run interrupts."""
        listed = "; ".join(f"{shorten(names)} ({reason})" for reason, names in self.reboots.items())
        reboot = f"A reboot may be needed: {listed}." if listed else "No reboot."
        restart = f" CDSW restarts on {'; '.join(self.restarts)}." if self.restarts else ""
        return f"{reboot}{restart} Running jobs keep the environment they started with."

    def table(self) -> str:
        """The plan for people: one line for each component that needs work, below the hosts for which all of that is the same."""
        host_count = len(self.hosts)
        if self.problems:
            return "PLAN: nothing can be planned until the problems below are solved."
        if not self.rows:
            return f"PLAN: {host_count} hosts are as planned; nothing to do."
        works: dict[str, list[tuple[str, ...]]] = {}
        for row in self.rows:
            works.setdefault(row.host, []).append((row.component, row.now, row.wanted, row.reason))
        alike: dict[tuple[tuple[str, ...], ...], list[str]] = {}
        for name, lines_of_host in works.items():
            alike.setdefault(tuple(lines_of_host), []).append(name)
        head, *texts = columns([("component", "now", "requested", "why"), *(line for work in alike for line in work)])
        lines = [f"PLAN: {len(works)} of {host_count} hosts change. {self.interruption()}", f"    {head}"]
        for work, names in alike.items():
            lines += [f"  {shorten(names)}", *(f"    {texts.pop(0)}" for _ in work)]
        return "\n".join(lines)

    def failure(self) -> str:
        return failure(self.problems)


def shorten(names: Sequence[str]) -> str:
    """The first ones and the number of the others."""
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"


def failure(problems: Sequence[str]) -> str:
    """All problems as one message."""
    listed = "\n".join(f"  {number}. {problem}" for number, problem in enumerate(problems, 1))
    return f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found; no host was changed.\n{listed}"
