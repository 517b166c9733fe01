"""The plan: per host, what is there, what is wanted, and what therefore has to run. Pure functions over facts.

Input is what the node reader answered for every host and the inventory's raw variables; output is one list of all
problems, or a table and, per host, the stack and the components that need work. Nothing here talks to a host.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from hadoop_dl import gpu_layer, gpu_stack, inputs, requests
from hadoop_dl.gpu_stack import GpuHost
from hadoop_dl.requests import Wanted

Json = dict[str, Any]
DISK_NEEDED_MB = 5000  # an environment of TensorFlow 2.15 takes 2.6 GB, and the old one stays beside it
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
TFOS_GROUPS = ("data_nodes", "edge_nodes")  # one job's driver and executors: they need one environment
DECIDING = ("os", "java", "hadoop", "pythons")  # parts of `node` that decide what a role does
PERMISSION = re.compile(r"_(license_accepted|upgrade_allowed|reboot_allowed)$")  # inputs that decide whether, not what
MAGIC = re.compile(
    r"^(ansible_|group_names$|groups$|hostvars$|inventory_|omit$|play|role_|environment$|vars$|plan$|apply$|node$|stack$)"
)


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


def make_plan(hosts: Sequence[Host], repository: Path, driver_upgrade: bool = False) -> Plan:
    """Resolve every host's request against what it answered, and compare with what it has.

    driver_upgrade: another version of the driver may take the installed one's place in this run.
    """
    made = Plan()
    checked = {host.name: inputs.check(host.variables, repository) for host in hosts}
    for host in hosts:
        made.problems += [f"{host.name}: {problem}" for problem in checked[host.name].problems]
        made.warnings += [f"{host.name}: {warning}" for warning in checked[host.name].warnings]
    hosts = [replace(host, variables={**host.variables, **checked[host.name].values}) for host in hosts]
    group_problems(made, hosts)
    stopped = False
    for host in hosts:
        if host.node is None:
            made.unreachable.append(host.name)
            stopped = stopped or host.variables.get("deeplearning_unreachable", "continue") == "stop"
        elif "error" in host.node:
            made.problems.append(f"{host.name}: {host.node['error']}")
    if stopped:
        made.problems.append(
            f"{', '.join(made.unreachable)} cannot be reached, and deeplearning_unreachable is 'stop'. "
            "Bring them back, take them out with --limit, or set deeplearning_unreachable: continue."
        )
    elif made.unreachable:
        made.warnings.append(
            f"{', '.join(made.unreachable)} cannot be reached and is left out; the other hosts are served."
        )
    read = [
        host for host in hosts if host.node is not None and "error" not in host.node and not checked[host.name].problems
    ]
    names = settled(read)
    wanted = {
        host.name: requests.resolve_host(host.variables, host.node or {}, host.groups, names.get(host.name, ""))
        for host in read
    }
    for host in read:
        made.problems += [f"{host.name}: {problem}" for problem in wanted[host.name].problems]
        made.problems += [f"{host.name}: {problem}" for problem in host_problems(host, wanted[host.name])]
        if host.wants("nvidia_driver"):
            gpu = GpuHost(host.variables, host.node or {}, wanted[host.name], host.groups)
            made.problems += [f"{host.name}: {problem}" for problem in gpu_layer.running_problems(gpu)]
            made.problems += [f"{host.name}: {problem}" for problem in gpu_stack.contradictions(gpu)]
            made.warnings += [f"{host.name}: {warning}" for warning in gpu_stack.warnings(gpu)]
        made.warnings += [f"{host.name}: {warning}" for warning in wanted[host.name].warnings]
        made.warnings += [f"{host.name}: {warning}" for warning in added_warnings(host)]
    made.problems += cluster_problems(read, wanted)
    environments = sorted(
        {(item.stack["name"], item.python, item.environment) for item in wanted.values() if item.environment}
    )
    for host in read:
        add_host(made, Case(host, wanted[host.name], environments, repository), driver_upgrade)
    requests.keep_verdicts()
    made.problems, made.warnings = group_alike(made.problems), group_alike(made.warnings)
    return made


def group_problems(made: Plan, hosts: Sequence[Host]) -> None:
    """Name the hosts that get nothing because no group of theirs is one of this project's."""
    strangers = [host.name for host in hosts if not set(host.groups) & set(GROUPS)]
    if strangers and len(strangers) == len(hosts):
        made.problems.append(
            f"At least one host must be in one of the groups {', '.join(GROUPS)}, but {shorten(strangers)} "
            f"{'is' if len(strangers) == 1 else 'are'} in none. Correct the groups' names in the inventory."
        )
    else:
        text = f"in none of the groups {', '.join(GROUPS)}, so nothing is installed there."
        made.warnings += [f"{name}: {text}" for name in strangers]


def settled(hosts: Sequence[Host]) -> dict[str, str]:
    """The one named stack that constraints mean on all hosts which ask the same, by host, where there is one that fits all."""
    alike: dict[str, list[Host]] = {}
    for host in hosts:
        if isinstance(host.variables.get("deeplearning_request"), Mapping) and host.wants("environment"):
            alike.setdefault(json.dumps(host.variables["deeplearning_request"], sort_keys=True), []).append(host)
    found: dict[str, str] = {}
    for group in alike.values():
        names, _ = requests.stacks_for(group[0].variables["deeplearning_request"], [host.node or {} for host in group])
        found.update({host.name: names[0] for host in group if names})
    return found


def group_alike(problems: Iterable[str]) -> list[str]:
    """Say what several hosts share once, with all their names: a thousand equal hosts are one line."""
    hosts: dict[str, list[str]] = {}
    for problem in problems:
        name, separator, sentence = problem.partition(": ")
        if separator and " " not in name:
            hosts.setdefault(sentence, []).append(name)
        else:
            hosts.setdefault(problem, [])
    return [f"{shorten(names)}: {sentence}" if names else sentence for sentence, names in hosts.items()]


def shorten(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"


def host_problems(host: Host, wanted: Wanted) -> list[str]:
    """What this host lacks for what it should get; an empty list means nothing."""
    node, found = host.node or {}, []
    declared = host.variables.get("gpu_count")
    if declared is not None and declared != len(requests.gpus(node)):
        found.append(
            f"gpu_count is {declared}, but the host shows {len(requests.gpus(node))} GPUs ({gpu_sources(node)}). "
            "Correct the inventory, or look for a card that is off the bus: lspci -d 10de:"
        )
    if (
        host.wants("hadoop_client")
        and (not wanted.stack or uses_hadoop(wanted.stack))
        and node.get("hadoop") is None
        and not host.variables.get("hadoop_client_hadoop_home")
    ):
        found.append(
            "a Hadoop client is needed, and none was found under the places of CDH, HDP, MapR and Apache. "
            "Install the distribution's client there, or set hadoop_client_hadoop_home."
        )
    known = node["deeplearning"]["environments"].get(wanted.environment)
    if wanted.environment and (known is None or known["problem"]):
        free = node.get("volatile", {}).get("disk_free_mb", {}).get("/opt")
        if free is not None and free < DISK_NEEDED_MB:
            found.append(
                f"/opt needs {DISK_NEEDED_MB} MB for a new environment and has {free} MB free. Make room there, or mount a larger file system."
            )
    if host.wants("environment") and not host.variables.get("mirror_url"):
        found.append(
            "mirror_url must be the address at which hosts reach the mirror, but is not set. Set it in group_vars/all."
        )
    return found


def added_warnings(host: Host) -> list[str]:
    """What somebody put into a sealed environment: it stays, and it is no reason to build the environment again."""
    environments = (host.node or {}).get("deeplearning", {}).get("environments", {})
    return [
        f"files were added to the environment {name} since it was sealed: {', '.join(known['added'])}. They are left alone; remove them."
        for name, known in sorted(environments.items())
        if known.get("added")
    ]


def gpu_sources(node: Json) -> str:
    nvidia = node.get("nvidia", {})
    listed = nvidia.get("listed")
    return f"{len(nvidia.get('gpus', []))} on the PCI bus, " + (
        "nvidia-smi not asked" if listed is None else f"{len(listed)} listed by nvidia-smi"
    )


def cdsw_problems(hosts: Sequence[Host]) -> list[str]:
    """CDSW wants one model of GPU on all its hosts."""
    models: dict[str, list[str]] = {}
    for host in hosts:
        node = host.node or {}
        if node.get("cdsw") or "cdsw_hosts" in host.groups:
            for model in gpu_layer.models(node):
                models.setdefault(model, []).append(host.name)
    if len(models) < 2:
        return []
    listed = "; ".join(f"{model} on {shorten(names)}" for model, names in sorted(models.items()))
    return [
        f"CDSW needs the same make and model of GPU on all its hosts, and there are {len(models)}: {listed}. "
        "Take some hosts out of CDSW, or change their cards."
    ]


def cluster_problems(hosts: Sequence[Host], wanted: Mapping[str, Wanted]) -> list[str]:
    """What only shows when hosts are looked at together."""
    environments: dict[str, list[str]] = {}
    for host in hosts:
        environment = wanted[host.name].environment
        if environment and set(host.groups) & set(TFOS_GROUPS) and wanted[host.name].stack.get("tensorflowonspark"):
            environments.setdefault(environment, []).append(host.name)
    found = cdsw_problems(hosts)
    if len(environments) < 2:
        return found
    listed = "; ".join(f"{name} on {shorten(names)}" for name, names in sorted(environments.items()))
    return [
        *found,
        f"A TensorFlowOnSpark job needs one environment on its driver and all executors, and the groups data_nodes and edge_nodes would have {len(environments)}: "
        f"{listed}. Give all of them the same deeplearning_request, or move some hosts out of these groups.",
    ]


@dataclass
class Case:
    """One host's wish against what it has, while its part of the plan is made; `environments` are those of the whole run."""

    host: Host
    wanted: Wanted
    environments: Sequence[tuple[str, str, str]]
    repository: Path
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def node(self) -> Json:
        return self.host.node or {}

    @cached_property
    def gpu(self) -> dict[str, list[Any] | None]:
        """What the inventory or the stack asks of each part of the GPU layer for this host."""
        host = GpuHost(self.host.variables, self.node, self.wanted, self.host.groups)
        return {role: gpu_stack.requested(role, host) for role in gpu_stack.ROLES}

    def versions(self, role: str) -> list[str]:
        return gpu_stack.versions(self.gpu[role])

    def has_work(self, component: str) -> bool:
        """Whether there is anything that this component could be about on this host."""
        if component == "mirror":
            return bool(self.environments)
        if component in gpu_stack.ROLES:
            return bool(self.gpu[component]) or (
                self.gpu[component] is not None and gpu_layer.difference(component, [], self.node) is not None
            )
        if component == "hadoop_client":
            return uses_hadoop(self.wanted.stack)
        if component == "tensorflowonspark":
            return "tensorflowonspark" in self.wanted.stack
        if component == "gpu_check":
            # Also where the site installed the driver, and where a GPU that was there does not show any more.
            receipt = self.node["deeplearning"]["receipts"].get(component)
            return receipt is not None or (not self.removed(component) and bool(requests.gpus(self.node)))
        return bool(self.wanted.stack)

    def removed(self, role: str) -> bool:
        return self.host.variables.get(f"{role}_state") == "absent"

    def compare(self, component: str) -> Row | None:
        """The row for a component that needs work; None where the host already is as wanted. Notes the wanted digest."""
        if component == "environment":
            return self._compare_environment()
        digest = self._digest(component)
        receipt = self.node["deeplearning"]["receipts"].get(component)
        if component in gpu_stack.ROLES:
            if self.versions(component):  # what goes leaves no receipt
                self.digests[component] = digest
            return self._compare_gpu(component, receipt, digest)
        if component == "gpu_check" and self.removed(component):
            now = receipt["digest"] if receipt else "none"
            return Row(self.host.name, component, now, "none", "no longer requested")
        self.digests[component] = digest
        if receipt is None:
            reason = "not verified yet" if component == "verify" else "missing"
            return Row(self.host.name, component, "none", digest, reason)
        if receipt["problem"]:
            return Row(self.host.name, component, receipt["digest"] or "unknown", digest, receipt["problem"])
        if receipt["digest"] != digest:
            return Row(self.host.name, component, receipt["digest"], digest, "inputs changed")
        return None

    def _compare_environment(self) -> Row | None:
        there, wanted = self.node["deeplearning"], self.wanted.environment
        self.digests["environment"] = wanted
        known = there["environments"].get(wanted)
        if known is None:
            reason = "missing"
        elif known["problem"]:
            reason = known["problem"]
        elif there["current"] != wanted:
            reason = "built, not current"
        else:
            return None
        return Row(self.host.name, "environment", there["current"] or "none", wanted, reason)

    def _compare_gpu(self, role: str, receipt: Json | None, digest: str) -> Row | None:
        """The row of a part of the GPU layer: its versions first, then what the receipt says."""
        versions = self.versions(role)
        reason = gpu_layer.difference(role, versions, self.node)
        if reason is None and versions and receipt is None:
            reason = "not from these playbooks"
        elif reason is None and receipt is not None and versions:
            reason = receipt["problem"] or ("inputs changed" if receipt["digest"] != digest else None)
        if reason is None:
            return None
        now = ", ".join(gpu_stack.there(role, self.node)) or "none"
        return Row(self.host.name, role, now, ", ".join(versions) or "none", reason)

    def _digest(self, component: str) -> str:
        """12 hex digits that change whenever anything that decides the component's result changes."""
        roles = COMPONENTS[component][0]
        names = [
            name
            for role in roles
            for name in sorted(inputs.role_options(self.repository, role))
            if not PERMISSION.search(name)
        ]
        wanted: Wanted = self.wanted
        stack: Any = wanted.stack
        deciding: tuple[str, ...] = DECIDING
        if component == "mirror":
            stack, deciding = [list(entry) for entry in self.environments], ()
        elif component in (*gpu_stack.ROLES, "gpu_check"):
            # Of another TensorFlow only the oldest driver for it matters here.
            wanted = Wanted(stack={key: wanted.stack[key] for key in ("driver_min",) if key in wanted.stack})
            stack, deciding = wanted.stack, ("os",)
        deciders = {
            "roles": [tree_digest(self.repository / "roles" / role) for role in roles],
            "variables": closure(names, self.host.variables),
            "stack": stack,
            "environment": wanted.environment,
            "gpu": self.gpu.get("nvidia_driver" if component == "gpu_check" else component),
            "verified": {
                name: there for name, there in self.digests.items() if component == "verify" and name != "mirror"
            },
            "node": {key: self.node.get(key) for key in deciding},
        }
        return hashlib.sha256(json.dumps(deciders, sort_keys=True, default=str).encode()).hexdigest()[:12]


def add_host(made: Plan, case: Case, driver_upgrade: bool) -> None:
    """Add one host's entry and its rows."""
    host, wanted = case.host, case.wanted
    everything = host.variables.get("apply") == "all"
    needs: list[str] = []
    for component in COMPONENTS:
        if not host.wants(component) or not case.has_work(component):
            continue
        row = case.compare(component)
        if row is None and everything:
            row = Row(host.name, component, "as wanted", "as wanted", "apply=all")
        if component == "verify" and set(needs) - {"mirror"}:
            needs.append(component)  # what changes is asked about, and a row would say nothing new
        elif row is not None:
            made.rows.append(row)
            needs.append(component)
    gpu = [need for need in needs if need in gpu_stack.ROLES]
    if gpu:
        add_gpu(made, case, gpu, driver_upgrade)
    if gpu or "gpu_check" in needs:
        needs.insert(needs.index((gpu or ["gpu_check"])[0]), "gpu")
    made.hosts[host.name] = {
        "stack": wanted.stack,
        "python": wanted.python,
        "interpreter": wanted.interpreter,
        "environment": wanted.environment,
        "mirror_environments": [[stack, python] for stack, python, _ in case.environments]
        if host.wants("mirror")
        else [],
        "digests": case.digests,
        "needs": needs,
        "parts": list(wanted.parts),
        "gpu": gpu_part(case, gpu),
    }


def gpu_part(case: Case, roles: Sequence[str]) -> Json:
    """The inputs of the GPU layer's roles that run on the host (playbooks/layers/gpu.yml hands them over)."""
    found: Json = {gpu_stack.variable(role): case.gpu[role] for role in roles if role != "nvidia_driver"}
    if "nvidia_driver" in roles:
        leaving = gpu_stack.there("nvidia_driver", case.node)  # the role removes by the version's names
        found["nvidia_driver_version"] = next(iter([*case.versions("nvidia_driver"), *leaving]), "")
        found |= gpu_layer.limits(case.node)
    if "gpu_check" in case.digests and case.versions("nvidia_driver"):
        found["gpu_check_driver_version"] = case.versions("nvidia_driver")[0]
    return found


def uses_hadoop(stack: Json) -> bool:
    """Whether a stack reads HDFS or submits to YARN."""
    return bool(stack.get("hdfs")) or "tensorflowonspark" in stack


def add_gpu(made: Plan, case: Case, roles: Sequence[str], driver_upgrade: bool) -> None:
    """What stands in the way of the host's GPU layer, and what it means for the host."""
    name, node, variables = case.host.name, case.node, case.host.variables
    asked = {role: case.versions(role) for role in roles}
    coming = {role: versions for role, versions in asked.items() if versions}
    problems = gpu_layer.license_problem(coming, variables)
    if coming.get("nvidia_driver"):
        version = coming["nvidia_driver"][0]
        problems += gpu_layer.driver_problems(version, node, variables, case.wanted.stack, driver_upgrade)
        made.warnings += [f"{name}: {text}" for text in gpu_layer.kernel_warnings(version, node, variables)]
    made.problems += [f"{name}: {problem}" for problem in problems]
    reboot = gpu_layer.reboot(name, asked["nvidia_driver"], node, variables) if "nvidia_driver" in roles else None
    made.reboots += [reboot] if reboot else []


def closure(names: Iterable[str], variables: Mapping[str, Any]) -> Json:
    """The raw values of these variables and of every variable whose name their templates mention."""
    found: Json = {}
    queue = list(names)
    while queue:
        name = queue.pop()
        if name in found or name not in variables or MAGIC.match(name):
            continue
        found[name] = variables[name]
        value = variables[name]
        written = value if isinstance(value, str) else json.dumps(value, default=str)
        if "{{" in written or "{%" in written:
            queue += re.findall(r"[A-Za-z_]\w*", written)
    return found


@cache
def tree_digest(directory: Path) -> str:
    """A digest of a role's files, by path and content; its documentation and tests do not count."""
    digest = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        relative = path.relative_to(directory)
        if path.suffix not in (".md", ".pyc") and "__pycache__" not in relative.parts:
            digest.update(f"{relative}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
