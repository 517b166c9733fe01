"""The plan: per host, what is there, what is wanted, and what therefore has to run. Pure functions over facts.

Input is what the node reader answered for every host and the inventory's raw variables; output is one list of all
problems, or a table and, per host, the stack and the components that need work. Nothing here talks to a host.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hadoop_dl.plan import gpu_layer, gpu_stack, inputs, requests
from hadoop_dl.plan.digests import canonical, closure, deciding_inputs, joined, role_digests
from hadoop_dl.plan.gpu_stack import GpuHost
from hadoop_dl.plan.model import COMPONENTS, Host, Json, Plan, Row
from hadoop_dl.plan.problems import (
    added_warnings,
    cluster_problems,
    group_alike,
    group_problems,
    host_problems,
    uses_hadoop,
)
from hadoop_dl.plan.requests import Wanted

DECIDING = ("os", "java", "hadoop", "pythons")  # parts of `node` that decide what a role does


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
    kinds = {host.name: requests.kind(host.node or {}) for host in read}
    names = settled(read, kinds)
    wanted = resolved(read, kinds, names)
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


def resolved(hosts: Sequence[Host], kinds: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Wanted]:
    """What each host gets. Hosts that are alike in all that decides share one answer: `kinds` has their facts as text."""
    known: dict[Hashable, Wanted] = {}
    found = {}
    for host in hosts:
        asked = {name: host.variables.get(name) for name in requests.INPUTS}
        pythons = (host.node or {}).get("pythons", {})
        groups = tuple(group for group in host.groups if group in requests.ENVIRONMENT_GROUPS)
        name = names.get(host.name, "")
        key = (kinds[host.name], tuple(pythons.items()), canonical(asked), groups, name)
        if key not in known:
            known[key] = requests.resolve_host(asked, host.node or {}, groups, name)
        found[host.name] = known[key]
    return found


def settled(hosts: Sequence[Host], kinds: Mapping[str, str]) -> dict[str, str]:
    """The one named stack that constraints mean on all hosts which ask the same, by host, where there is one that fits all."""
    alike: dict[str, list[Host]] = {}
    for host in hosts:
        if isinstance(host.variables.get("deeplearning_request"), Mapping) and host.wants("environment"):
            alike.setdefault(json.dumps(host.variables["deeplearning_request"], sort_keys=True), []).append(host)
    found: dict[str, str] = {}
    for group in alike.values():
        nodes: dict[str, Json] = {}
        for host in group:
            nodes.setdefault(kinds[host.name], host.node or {})
        names, _ = requests.stacks_for(group[0].variables["deeplearning_request"], nodes.values())
        found.update({host.name: names[0] for host in group if names})
    return found


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
    def deciding_text(self) -> str:
        """The parts of `node` that decide what a role does, as sorted JSON."""
        return canonical({key: self.node.get(key) for key in DECIDING})

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
        roles, names = role_digests(self.repository, component), deciding_inputs(self.repository, component)
        environment, stack, node = self.wanted.environment, self.wanted.stack_text, self.deciding_text
        if component == "mirror":
            stack, node = canonical([list(entry) for entry in self.environments]), "{}"
        elif component in (*gpu_stack.ROLES, "gpu_check"):
            # Of another TensorFlow only the oldest driver for it matters here.
            oldest = {key: self.wanted.stack[key] for key in ("driver_min",) if key in self.wanted.stack}
            environment, stack, node = "", canonical(oldest), canonical({"os": self.node.get("os")})
        deciders = {
            "environment": canonical(environment),
            "gpu": canonical(self.gpu.get("nvidia_driver" if component == "gpu_check" else component)),
            "node": node,
            "roles": roles,
            "stack": stack,
            "variables": canonical(closure(names, self.host.variables)),
            "verified": canonical(
                {name: there for name, there in self.digests.items() if component == "verify" and name != "mirror"}
            ),
        }
        return hashlib.sha256(joined(deciders).encode()).hexdigest()[:12]


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
