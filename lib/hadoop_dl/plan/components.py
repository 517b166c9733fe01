"""The table of components.

A new one needs a row in COMPONENTS, a play in playbooks/layers/ and its role's inputs in playbooks/group_vars/all.yml.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from hadoop_dl.plan import (
    additional,
    builds,
    gpu_contradictions,
    gpu_layer,
    gpu_request,
    target,
    tensorboard,
    workbench,
    yarn,
)
from hadoop_dl.plan.component import Case, Component
from hadoop_dl.plan.digests import canonical
from hadoop_dl.plan.model import Host, Json, Plan, Row

WITHOUT_STACK = {"environment": canonical(""), "stack": canonical({})}  # deciders of components that no stack decides


class Mirror(Component):
    """Holds what the environments of all hosts need, and what a bundle has."""

    def has_work(self, case: Case) -> bool:
        return bool(case.run.environments or case.host.variables.get("mirror_bundle"))

    def compare(self, case: Case) -> Row | None:
        """What a bundle has, only the mirror's host can compare."""
        row, bundle = super().compare(case), case.host.variables.get("mirror_bundle")
        return case.row(self.name, "to compare", str(bundle), "mirror_bundle") if bundle and row is None else row

    def deciders(self, case: Case) -> dict[str, str]:
        return {"stack": canonical([list(entry) for entry in case.run.environments]), "node": "{}"}

    def publish(self, plan: Plan, case: Case) -> None:
        case.part |= {
            "mirror_environments": [[stack, python] for stack, python, _ in case.run.environments],
            "mirror_kept": case.run.kept,
            "mirror_missing": list(plan.unreachable),
        }


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

    def publish(self, plan: Plan, case: Case) -> None:
        if case.build:
            case.part["build"] = case.build.part
        if case.build and self.name in case.needs:
            plan.tell(case.host.name, builds.input_problems(case.host, case.build))


class Environment(Component):
    """Done when it is intact and active: the tree's seal takes the place of a receipt."""

    def examine(self, plan: Plan, case: Case) -> None:
        plan.tell(case.host.name, additional.wheel_problems(case, case.wanted))

    def compare(self, case: Case) -> Row | None:
        deeplearning, environment = case.facts.deeplearning, case.wanted.environment
        case.digests[self.name] = environment
        reason = case.lacking(environment)
        if not reason and deeplearning.current != environment:
            reason = "built, not current"
        return case.row(self.name, deeplearning.current or "none", environment, reason) if reason else None


class DeeplearningCommand(Component):
    """The same program for every environment."""

    def deciders(self, case: Case) -> dict[str, str]:
        return {**WITHOUT_STACK, "node": canonical("")}


class HadoopClient(Component):
    def has_work(self, case: Case) -> bool:
        return case.wanted.stack is not None and case.wanted.stack.uses_hadoop


class TensorFlowOnSpark(Component):
    def has_work(self, case: Case) -> bool:
        return "tensorflowonspark" in case.wanted.data


class OfGpu(Component):
    """Of the stack only the oldest driver for it matters here, and of the host only its operating system."""

    layer: ClassVar = ("gpu",)

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
        installed_versions = ", ".join(gpu_request.there(self.name, case.facts)) or "none"
        return case.row(self.name, installed_versions, ", ".join(versions) or "none", reason)

    def publish(self, plan: Plan, case: Case) -> None:
        coming = [role for role in gpu_request.ROLES if role in case.needs]
        if self.name in coming:
            case.part["gpu"] |= self.inputs(case)
        if self.name in coming[:1]:  # one sentence about everything of NVIDIA's
            requested = {role: versions for role in coming if (versions := case.versions(role))}
            plan.tell(case.host.name, gpu_layer.license_problem(requested, case.host.variables))

    def inputs(self, case: Case) -> Json:
        """The inputs that playbooks/layers/gpu.yml gives to the role."""
        return {gpu_request.variable(self.name): case.gpu[self.name]}


class Driver(GpuPart):
    def examine(self, plan: Plan, case: Case) -> None:
        gpu = case.gpu_host
        problems = gpu_layer.running_problems(gpu) + gpu_contradictions.contradictions(gpu)
        plan.tell(case.host.name, problems, gpu_contradictions.warnings(gpu), gpu_contradictions.notes(gpu))

    def publish(self, plan: Plan, case: Case) -> None:
        super().publish(plan, case)
        name, facts, variables = case.host.name, case.facts, case.host.variables
        versions = case.versions(self.name) if self.name in case.needs else []
        for version in versions:
            problems = gpu_layer.driver_problems(version, case.gpu_host, case.run.driver_upgrade)
            plan.tell(name, problems, gpu_layer.kernel_warnings(version, facts, variables))
        if versions and case.run.driver_upgrade:
            plan.tell(name, warnings=yarn.driver_warnings(case.host))
        reboot = gpu_layer.reboot(versions, facts, variables) if self.name in case.needs else None
        if reboot:
            plan.reboots.setdefault(reboot, []).append(name)

    def inputs(self, case: Case) -> Json:
        leaving = gpu_request.there(self.name, case.facts)  # the role removes by the version's names
        version = next(iter([*case.versions(self.name), *leaving]), "")
        limits = gpu_layer.limits(case.facts)
        return {"nvidia_driver_version": version} | {name: limits[name] for name in ("open_supported", "nvswitches")}


class Cuda(GpuPart):
    def inputs(self, case: Case) -> Json:
        releases = gpu_request.toolkit_releases(case.gpu_host)
        return super().inputs(case) | ({"cuda_package_versions": releases} if releases else {})


class Cudnn(GpuPart):
    def inputs(self, case: Case) -> Json:
        source = gpu_request.cudnn_source(case.gpu_host)
        return super().inputs(case) | ({"cudnn_source": source} if source else {})


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

    def publish(self, plan: Plan, case: Case) -> None:
        versions = case.versions("nvidia_driver")
        if self.name in case.digests and versions:
            case.part["gpu"]["gpu_check_driver_version"] = versions[0]


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
        return {**WITHOUT_STACK, "gpu": canonical([name, driver]), "node": case.facts.system_text}

    def publish(self, plan: Plan, case: Case) -> None:
        if self.name in case.needs:
            case.part[self.name] = workbench.runtime_part(case.host, case.workbench)
            plan.tell(case.host.name, workbench.runtime_problems(case.host, case.workbench))


class Cdsw(Component):
    """CDSW's settings for GPUs; compared on the host, because administrators edit cdsw.conf."""

    def has_work(self, case: Case) -> bool:
        has_settings = bool(case.workbench.settings) and case.facts.workbench is not None
        return has_settings or (case.removed(self.name) and case.receipt(self.name) is not None)

    def compare(self, case: Case) -> Row | None:
        item, settings = case.facts.workbench, case.workbench.settings
        if case.removed(self.name) or item is None:
            return case.row(self.name, "this project's", "as before", "no longer requested")
        row = super().compare(case)
        current_text = ", ".join(f"{name}={item.settings[name]}" for name in settings if item.settings.get(name))
        text = ", ".join(f"{name}={value}" for name, value in settings.items())
        if item.kind == "rpm" and not workbench.settings_hold(item, settings):
            reason = "a restart of CDSW is pending" if item.restart_pending else "settings of cdsw.conf"
            return case.row(self.name, current_text or "no GPUs", text, reason)
        return row and replace(row, wanted=text)

    def deciders(self, case: Case) -> dict[str, str]:
        site = case.workbench
        return {
            **WITHOUT_STACK,
            "gpu": canonical([site.settings, site.driver, case.facts.nvidia.count]),
            "node": canonical([case.facts.system_text, site.kind, site.release]),
        }

    def publish(self, plan: Plan, case: Case) -> None:
        if self.name in case.needs:
            case.part[self.name] = workbench.part(case.host, case.workbench)
            workbench.announce_restart(plan, case.host, case.workbench)


class YarnGpu(Component):
    """YARN's own configuration, on ResourceManagers and NodeManagers; without the permission to restart them it stays as it is."""

    def examine(self, plan: Plan, case: Case) -> None:
        plan.tell(case.host.name, yarn.problems(case.host))

    def has_work(self, case: Case) -> bool:
        return yarn.configures(case.host) and yarn.allowed(case.host)

    def compare(self, case: Case) -> Row | None:
        row = super().compare(case)
        return row and replace(row, wanted=yarn.offered(case.host))

    def deciders(self, case: Case) -> dict[str, str]:
        return {**WITHOUT_STACK, "gpu": canonical(yarn.part(case.host)), "node": case.facts.system_text}

    def publish(self, plan: Plan, case: Case) -> None:
        receipt = case.receipt(self.name)
        pending = receipt is None or receipt.problem is not None or receipt.digest != self.digest(case)
        changing = self.name in case.needs or (yarn.configures(case.host) and pending)
        plan.tell(case.host.name, warnings=yarn.warnings(case.host, changing))
        if "gpu_check" not in case.needs:  # whose timer comes with it
            plan.tell(case.host.name, warnings=yarn.health_warnings(case.host))
        if self.name in case.needs:
            case.part[self.name] = yarn.part(case.host)
        case.part["yarn_node"] = yarn.node(case.host)


class TensorBoard(Component):
    """Services of the site, which restart in the environment that becomes active."""

    def examine(self, plan: Plan, case: Case) -> None:
        plan.tell(case.host.name, tensorboard.problems(case.host, case.wanted.lock))

    def has_work(self, case: Case) -> bool:
        has_services = case.wanted.stack is not None and bool(tensorboard.services(case.host))
        return has_services or case.receipt(self.name) is not None

    def compare(self, case: Case) -> Row | None:
        if not tensorboard.services(case.host):
            return case.row(self.name, "this project's", "none", "no longer requested")
        return super().compare(case)

    def deciders(self, case: Case) -> dict[str, str]:
        return {"node": canonical(""), "stack": canonical({})}


# The suite does not check them, and CDSW may wait long for its restart window.
UNVERIFIED = {
    "mirror",
    "deeplearning_command",
    "additional_environments",
    "container_runtime",
    "cdsw",
    "tensorboard",
    "yarn_gpu",
}


class Verify(Component):
    """Comes last and runs on every host where another component changes."""

    missing: ClassVar = "not verified yet"

    def follows(self, needs: Sequence[str]) -> bool:
        return bool(set(needs) - UNVERIFIED)

    def deciders(self, case: Case) -> dict[str, str]:
        return {"verified": canonical({name: value for name, value in case.digests.items() if name not in UNVERIFIED})}


COMPONENTS: dict[str, Component] = {
    component.name: component
    for component in (
        Mirror("mirror", ("mirror_host",), ("mirror",)),
        Driver("nvidia_driver", gpu_layer.GROUPS, ("nvidia_driver",)),
        Cuda("cuda", gpu_layer.GROUPS, ("cuda",)),
        Cudnn("cudnn", gpu_layer.GROUPS, ("cudnn",)),
        GpuPart("nccl", gpu_layer.GROUPS, ("nccl",)),
        GpuCheck("gpu_check", gpu_layer.GROUPS, ("gpu_check",)),
        ContainerRuntime("container_runtime", gpu_layer.GROUPS, ("container_runtime",)),
        Cdsw("cdsw", (workbench.GROUP,), ("cdsw",)),
        TensorFlowBuild("tensorflow_build", (builds.GROUP,), ("bazel", "tensorflow_build")),
        Environment("environment", target.ENVIRONMENT_GROUPS, ("environment",)),
        DeeplearningCommand("deeplearning_command", target.ENVIRONMENT_GROUPS, ("deeplearning_command",)),
        HadoopClient("hadoop_client", target.ENVIRONMENT_GROUPS, ("hadoop_client",)),
        TensorFlowOnSpark("tensorflowonspark", ("edge_nodes",), ("tensorflowonspark",)),
        additional.AdditionalEnvironments(
            "additional_environments", target.ENVIRONMENT_GROUPS, ("environment", "hadoop_client", "tensorflowonspark")
        ),
        TensorBoard("tensorboard", ("edge_nodes",), ("tensorboard",)),
        YarnGpu("yarn_gpu", yarn.GROUPS, ("yarn_gpu",)),
        Verify("verify", target.ENVIRONMENT_GROUPS, ("verify",)),
    )
}
BUILDING = ("mirror", "tensorflow_build")  # what playbooks/build_tensorflow.yml does
GROUPS = tuple(dict.fromkeys(group for component in COMPONENTS.values() for group in component.groups))


def concerns(component: str, host: Host) -> bool:
    """Whether the host is in a group that has this component."""
    return COMPONENTS[component].concerns(host)


def parts(groups: Iterable[str]) -> list[str]:
    """The parts that the suite (tests/infra) checks on hosts of these groups, by the names that the role verify uses."""
    own = {
        name
        for name in ("environment", "hadoop_client", "tensorflowonspark")
        if set(groups) & set(COMPONENTS[name].groups)
    }
    return sorted(own | ({"hdfs"} if "hadoop_client" in own else set()))
