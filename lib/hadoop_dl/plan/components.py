"""The table of components: which roles make each, which hosts have it, whether it has work there, and how "done" is recognised.

A component is done when its receipt has the digest of what decides it; the environment and the GPU layer are also compared themselves.
A new one takes a row in COMPONENTS, its play in playbooks/layers/ and its role's inputs in playbooks/group_vars/all.yml.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from hadoop_dl.data.host_facts import HostFacts, Receipt
from hadoop_dl.plan import gpu_layer, gpu_stack, target, workbench
from hadoop_dl.plan.builds import GROUP, Build
from hadoop_dl.plan.digests import canonical, closure, deciding_inputs, joined, role_digests
from hadoop_dl.plan.gpu_stack import GpuHost
from hadoop_dl.plan.model import Host, Row
from hadoop_dl.plan.target import Target
from hadoop_dl.plan.workbench import Deployment


@dataclass
class Case:
    """One host while its part of the plan is made: what is requested and what is installed; `environments` and `workbench` are the run's."""

    host: Host
    wanted: Target
    environments: Sequence[tuple[str, str, str]]
    repository: Path
    build: Build | None = None  # the wheel that this host builds in this run
    workbench: Deployment = field(default_factory=Deployment)
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def facts(self) -> HostFacts:
        return self.host.known

    @cached_property
    def gpu(self) -> dict[str, list[Any] | None]:
        """What the inventory or the stack requests of each part of the GPU layer for this host."""
        host = GpuHost(self.host, self.wanted)
        return {role: gpu_stack.requested(role, host) for role in gpu_stack.ROLES}

    def versions(self, role: str) -> list[str]:
        return gpu_stack.versions(self.gpu[role])

    def removed(self, role: str) -> bool:
        return self.host.variables.get(f"{role}_state") == "absent"

    def receipt(self, component: str) -> Receipt | None:
        return self.facts.deeplearning.receipts.get(component)

    def row(self, component: str, now: str, wanted: str, reason: str) -> Row:
        return Row(self.host.name, component, now, wanted, reason)


@dataclass(frozen=True)
class Component:
    """A component with a receipt. `roles` install it, in this order, on the hosts of `groups`."""

    name: str
    groups: tuple[str, ...]
    roles: tuple[str, ...]
    missing: ClassVar = "missing"  # the reason for a run where there is no receipt

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

    def digest(self, case: Case) -> str:
        """12 hex digits that change whenever anything that decides the component's result changes."""
        names = deciding_inputs(case.repository, self.roles)
        deciders = {
            "environment": canonical(case.wanted.environment),
            "gpu": canonical(None),
            "node": case.facts.deciding_text,
            "roles": role_digests(case.repository, self.roles),
            "stack": case.wanted.stack_text,
            "variables": canonical(closure(names, case.host.variables)),
            "verified": canonical({}),
            **self.deciders(case),
        }
        return hashlib.sha256(joined(deciders).encode()).hexdigest()[:12]

    def deciders(self, case: Case) -> dict[str, str]:
        """What decides this component beside the inputs of its roles, each as sorted JSON."""
        return {}


class Mirror(Component):
    """Holds what the environments of all hosts need, and the site's sets of packages."""

    def has_work(self, case: Case) -> bool:
        return bool(case.environments or case.host.variables.get("mirror_package_sets"))

    def deciders(self, case: Case) -> dict[str, str]:
        return {"stack": canonical([list(entry) for entry in case.environments]), "node": "{}"}


class TensorFlowBuild(Component):
    """Only playbooks/build_tensorflow.yml builds: a build takes hours, and its wheel gives the environment another name."""

    missing: ClassVar = "not built yet"

    def has_work(self, case: Case) -> bool:
        return case.build is not None

    def compare(self, case: Case) -> Row | None:
        row = super().compare(case)
        if row is None and case.build and case.build.stack.record(case.build.python) is None:
            return case.row(self.name, "no record", case.digests[self.name], "built, not recorded here")
        return row

    def deciders(self, case: Case) -> dict[str, str]:
        part = {key: value for key, value in case.build.part.items() if key != "hosts"} if case.build else {}
        return {"environment": canonical(""), "node": case.facts.system_text, "stack": canonical(part)}


class Environment(Component):
    """Done when it is intact and active: the tree's seal takes the place of a receipt."""

    def compare(self, case: Case) -> Row | None:
        there, wanted = case.facts.deeplearning, case.wanted.environment
        case.digests[self.name] = wanted
        known = there.environments.get(wanted)
        if known is None:
            reason = "missing"
        elif known.problem:
            reason = known.problem
        elif there.current != wanted:
            reason = "built, not current"
        elif not there.notice:
            reason = "CURRENT.txt is missing"
        else:
            return None
        return case.row(self.name, there.current or "none", wanted, reason)


class HadoopClient(Component):
    def has_work(self, case: Case) -> bool:
        return case.wanted.stack is not None and case.wanted.stack.uses_hadoop


class TensorFlowOnSpark(Component):
    def has_work(self, case: Case) -> bool:
        return "tensorflowonspark" in case.wanted.data


class OfGpu(Component):
    """Of the stack only the oldest driver for it matters here, and of the host only its operating system."""

    def deciders(self, case: Case) -> dict[str, str]:
        oldest = {key: case.wanted.data[key] for key in ("driver_min",) if key in case.wanted.data}
        requested = case.gpu["nvidia_driver" if self.name == "gpu_check" else self.name]
        return {
            "environment": canonical(""),
            "gpu": canonical(requested),
            "node": case.facts.system_text,
            "stack": canonical(oldest),
        }


class GpuPart(OfGpu):
    """A part of the GPU layer: versions are compared first, then the receipt."""

    def has_work(self, case: Case) -> bool:
        requested = case.gpu[self.name]
        return bool(requested) or (
            requested is not None and gpu_layer.difference(self.name, [], case.facts) is not None
        )

    def compare(self, case: Case) -> Row | None:
        versions, receipt = case.versions(self.name), case.receipt(self.name)
        digest = self.digest(case)
        if versions:  # A part that is removed has no receipt afterwards.
            case.digests[self.name] = digest
        reason = gpu_layer.difference(self.name, versions, case.facts)
        if reason is None and versions and receipt is None:
            reason = "installed outside this project"
        elif reason is None and receipt is not None and versions:
            reason = receipt.problem or ("inputs changed" if receipt.digest != digest else None)
        if reason is None:
            return None
        now = ", ".join(gpu_stack.there(self.name, case.facts)) or "none"
        return case.row(self.name, now, ", ".join(versions) or "none", reason)


class GpuCheck(OfGpu):
    """Also on hosts where the site installed the driver, or where a GPU has disappeared."""

    def has_work(self, case: Case) -> bool:
        return case.receipt(self.name) is not None or (not case.removed(self.name) and case.facts.nvidia.count > 0)

    def compare(self, case: Case) -> Row | None:
        if case.removed(self.name):
            receipt = case.receipt(self.name)
            return case.row(
                self.name, (receipt.digest or "unknown") if receipt else "none", "none", "no longer requested"
            )
        return super().compare(case)


class ContainerRuntime(Component):
    """NVIDIA's container runtime, for the site's Docker or where CDSW's release requires it."""

    def runtime(self, case: Case) -> str:
        return workbench.runtime(case.host, case.workbench)

    def has_work(self, case: Case) -> bool:
        return bool(self.runtime(case)) or case.receipt(self.name) is not None

    def compare(self, case: Case) -> Row | None:
        name = self.runtime(case)
        if not name:
            return case.row(self.name, "this project's", "none", "no longer requested")
        row = super().compare(case)
        reason = workbench.runtime_difference(name, case.facts, case.workbench)
        if row is None and reason:
            row = case.row(self.name, "incomplete", name, reason)
        return row and replace(row, wanted=name)

    def deciders(self, case: Case) -> dict[str, str]:
        name = self.runtime(case)
        driver = case.workbench.driver if name == workbench.DOCKER_1 else ""
        return {
            "environment": canonical(""),
            "gpu": canonical([name, driver]),
            "node": case.facts.system_text,
            "stack": canonical({}),
        }


class Cdsw(Component):
    """CDSW's settings for GPUs; compared on the host, because administrators edit cdsw.conf."""

    def has_work(self, case: Case) -> bool:
        wanted = bool(case.workbench.settings) and case.facts.workbench is not None
        return wanted or (case.removed(self.name) and case.receipt(self.name) is not None)

    def compare(self, case: Case) -> Row | None:
        found, wanted = case.facts.workbench, case.workbench.settings
        if case.removed(self.name) or found is None:
            return case.row(self.name, "this project's", "as before", "no longer requested")
        row = super().compare(case)
        now = ", ".join(f"{name}={found.settings[name]}" for name in wanted if found.settings.get(name))
        text = ", ".join(f"{name}={value}" for name, value in wanted.items())
        if found.kind == "rpm" and not workbench.settings_hold(found, wanted):
            return case.row(self.name, now or "no GPUs", text, "settings of cdsw.conf")
        return row and replace(row, wanted=text)

    def deciders(self, case: Case) -> dict[str, str]:
        site = case.workbench
        return {
            "environment": canonical(""),
            "gpu": canonical([site.settings, site.driver, case.facts.nvidia.count]),
            "node": canonical([case.facts.system_text, site.kind, site.release]),
            "stack": canonical({}),
        }


UNVERIFIED = {
    "mirror",
    "container_runtime",
    "cdsw",
}  # The suite does not check them, and CDSW may wait long for its restart window.


class Verify(Component):
    """Comes last and runs on every host where another component changes."""

    missing: ClassVar = "not verified yet"

    def follows(self, needs: Sequence[str]) -> bool:
        return bool(set(needs) - UNVERIFIED)

    def deciders(self, case: Case) -> dict[str, str]:
        return {"verified": canonical({name: there for name, there in case.digests.items() if name not in UNVERIFIED})}


ENVIRONMENT_ROLES = ("pip", "tensorflow", "keras", "environment")
COMPONENTS: dict[str, Component] = {
    component.name: component
    for component in (
        Mirror("mirror", ("mirror_host",), ("mirror",)),
        *(GpuPart(role, gpu_layer.GROUPS, (role,)) for role in gpu_stack.ROLES),
        GpuCheck("gpu_check", gpu_layer.GROUPS, ("gpu_check",)),
        ContainerRuntime("container_runtime", gpu_layer.GROUPS, ("container_runtime",)),
        Cdsw("cdsw", (workbench.GROUP,), ("cdsw",)),
        TensorFlowBuild("tensorflow_build", (GROUP,), ("bazel", "tensorflow_build")),
        Environment("environment", target.ENVIRONMENT_GROUPS, ENVIRONMENT_ROLES),
        HadoopClient("hadoop_client", target.ENVIRONMENT_GROUPS, ("hadoop_client",)),
        TensorFlowOnSpark("tensorflowonspark", ("edge_nodes",), ("tensorflowonspark",)),
        Verify("verify", target.ENVIRONMENT_GROUPS, ("verify",)),
    )
}
BUILDING = ("mirror", "tensorflow_build")  # what playbooks/build_tensorflow.yml does
GROUPS = tuple(dict.fromkeys(group for component in COMPONENTS.values() for group in component.groups))


def concerns(component: str, host: Host) -> bool:
    """Whether the host is in a group that has this component."""
    return COMPONENTS[component].concerns(host)


def parts(groups: Iterable[str]) -> list[str]:
    """What the suite (tests/infra) checks on hosts of these groups, by the names that role verify uses."""
    own = {
        name
        for name in ("environment", "hadoop_client", "tensorflowonspark")
        if set(groups) & set(COMPONENTS[name].groups)
    }
    return sorted(own | ({"hdfs"} if "hadoop_client" in own else set()))
