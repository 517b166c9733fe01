"""Components: which roles make it, which hosts have it, whether it has work there, and how "done" is recognised.

A component is done when its receipt has the digest of what decides it; the environment and the GPU layer are also compared themselves.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from hadoop_dl.data.host_facts import HostFacts, Receipt
from hadoop_dl.plan import gpu_request
from hadoop_dl.plan.builds import Build
from hadoop_dl.plan.digests import canonical, closure, deciding_inputs, joined, role_digests
from hadoop_dl.plan.gpu_request import GpuHost
from hadoop_dl.plan.model import Host, Json, Plan, Row
from hadoop_dl.plan.target import Target
from hadoop_dl.plan.workbench import Deployment


@dataclass
class Run:
    """Decisions for all hosts of a run, and why they cannot be carried out. `kept`: environments that a repair of any host needs."""

    repository: Path
    environments: Sequence[tuple[str, str, str]] = ()
    builds: Mapping[str, Build] = field(default_factory=dict)
    workbench: Deployment = field(default_factory=Deployment)
    kept: Sequence[Sequence[str]] = ()
    driver_upgrade: bool = False
    building: bool = False
    problems: list[str] = field(default_factory=list)


@dataclass
class Case:
    """One host while its part of the plan is made: what is requested, what is installed, and what therefore needs work."""

    host: Host
    wanted: Target
    run: Run
    additional: tuple[Target, ...] = ()  # environments beside the active one
    digests: dict[str, str] = field(default_factory=dict)
    needs: list[str] = field(default_factory=list)
    part: Json = field(default_factory=dict)  # what the playbooks get as `plan`

    @property
    def build(self) -> Build | None:
        """The wheel that this host builds in this run."""
        return self.run.builds.get(self.host.name)

    @property
    def workbench(self) -> Deployment:
        return self.run.workbench

    @property
    def facts(self) -> HostFacts:
        return self.host.known

    @cached_property
    def gpu(self) -> dict[str, list[Any] | None]:
        """The versions of each part of the GPU layer that the inventory or the stack requests for this host."""
        return {role: gpu_request.requested(role, self.gpu_host) for role in gpu_request.ROLES}

    @property
    def gpu_host(self) -> GpuHost:
        return GpuHost(self.host, self.wanted, self.additional)

    def versions(self, role: str) -> list[str]:
        return gpu_request.versions(self.gpu[role])

    def removed(self, role: str) -> bool:
        return self.host.variables.get(f"{role}_state") == "absent"

    def receipt(self, component: str) -> Receipt | None:
        return self.facts.deeplearning.receipts.get(component)

    def lacking(self, environment: str) -> str:
        """Why the host does not have this environment; empty if it is there and intact."""
        installed_environment = self.facts.deeplearning.environments.get(environment)
        return "missing" if installed_environment is None else installed_environment.problem or ""

    def row(self, component: str, now: str, wanted: str, reason: str) -> Row:
        return Row(self.host.name, component, now, wanted, reason)


@dataclass(frozen=True)
class Component:
    """A component with a receipt. `roles` install it, in this order, on the hosts of `groups`."""

    name: str
    groups: tuple[str, ...]
    roles: tuple[str, ...]
    missing: ClassVar = "missing"  # the reason for a run if there is no receipt
    layer: ClassVar[tuple[str, ...]] = ()  # a play for several components: the host joins its group, too

    def concerns(self, host: Host) -> bool:
        return bool(set(host.groups) & set(self.groups))

    def has_work(self, case: Case) -> bool:
        """Whether the component applies to this host."""
        return case.wanted.stack is not None

    def compare(self, case: Case) -> Row | None:
        """The host's row if it needs work; None if it already is as requested. Records the requested digest."""
        digest = case.digests[self.name] = self.digest(case)
        receipt = case.receipt(self.name)
        if receipt is None:
            return case.row(self.name, "none", digest, self.missing)
        if receipt.problem:
            return case.row(self.name, receipt.digest or "unknown", digest, receipt.problem)
        if receipt.digest != digest:
            return case.row(self.name, receipt.digest or "unknown", digest, "inputs changed")
        return None

    def follows(self, needs: Sequence[str]) -> bool:
        """Whether it runs only because others do, and so needs no row of its own."""
        return False

    def examine(self, plan: Plan, case: Case) -> None:
        """Add why the host's request cannot be met, and what is noticed about it, whether or not there is work."""

    def publish(self, plan: Plan, case: Case) -> None:
        """Add what its play gets to the host's part of the plan, and what its work means there. The needs of the host are complete."""

    def digest(self, case: Case) -> str:
        """12 hex digits that change whenever anything that decides the component's result changes."""
        names = deciding_inputs(case.run.repository, self.roles)
        deciders = {
            "environment": canonical(case.wanted.environment),
            "gpu": canonical(None),
            "node": case.facts.deciding_text,
            "roles": role_digests(case.run.repository, self.roles),
            "stack": case.wanted.stack_text,
            "variables": canonical(closure(names, case.host.variables)),
            "verified": canonical({}),
            **self.deciders(case),
        }
        return hashlib.sha256(joined(deciders).encode()).hexdigest()[:12]

    def deciders(self, case: Case) -> dict[str, str]:
        """What decides this component beside the inputs of its roles, each as sorted JSON."""
        return {}
