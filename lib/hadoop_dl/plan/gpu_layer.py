"""The plan's part about driver, CUDA, cuDNN and NCCL: what differs on a host, and what stands in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hadoop_dl.plan import requests
from hadoop_dl.plan.gpu_stack import NAMES, GpuHost, number, requested, there

Json = dict[str, Any]
GROUPS = (*requests.ENVIRONMENT_GROUPS, "build_hosts")


def has(role: str, version: str, found: Sequence[str]) -> bool:
    """Whether this version is among them; a package's fourth number may be missing from its files' names."""
    return version in found or (role == "cudnn" and ".".join(version.split(".")[:3]) in found)


def difference(role: str, versions: Sequence[str], node: Json) -> str | None:
    """Why the host is not as asked for, as far as versions and files tell; None where it is."""
    found = there(role, node)
    if role == "nvidia_driver":
        return driver_difference(versions, found, node)
    brought = (node.get("brought") or {}).get(role) or []
    missing = [one for one in versions if not has(role, one, found)]
    extra = [one for one in brought if one not in versions]
    reasons = [f"{', '.join(missing)} not there yet"] if missing else []
    reasons += [f"{', '.join(extra)} not wanted any more"] if extra else []
    return "; ".join(reasons) or None


def driver_difference(versions: Sequence[str], found: Sequence[str], node: Json) -> str | None:
    if not versions:
        return "not wanted any more" if found else None
    if not found:
        return "not there yet"
    if list(versions) != list(found):
        return "another version is installed"
    kernel = node.get("kernel") or {}
    served = node.get("nvidia", {}).get("module_kernels") or []
    may_run = [
        one for one in kernel.get("installed") or [] if one in (kernel.get("running"), kernel.get("default_boot"))
    ]
    bare = [one for one in may_run if one not in served]
    return f"kernel {', '.join(bare)} has no module" if bare else None


def license_problem(roles: Mapping[str, Sequence[str]], variables: Mapping[str, Any]) -> list[str]:
    """One line about everything of NVIDIA's that would be downloaded for this host."""
    if not roles or variables.get("nvidia_license_accepted") is True:
        return []
    listed = ", ".join(f"{NAMES[role]} {', '.join(versions)}" for role, versions in roles.items())
    return [
        f"{listed}: this is NVIDIA's and comes under its licence, and nvidia_license_accepted is not true; nothing of NVIDIA's was "
        "downloaded. Read https://docs.nvidia.com/cuda/eula/ and https://www.nvidia.com/en-us/drivers/nvidia-license/, and "
        "set nvidia_license_accepted: true in group_vars/all."
    ]


def driver_problems(version: str, node: Json, variables: Mapping[str, Any], stack: Json, upgrade: bool) -> list[str]:
    """Why this driver cannot come to this host: another one is locked there, its GPUs, its stack."""
    found = []
    installed = there("nvidia_driver", node)
    if installed and installed != [version] and not upgrade:
        found.append(
            f"driver {installed[0]} is installed and its version locked, and nvidia_driver_version is {version}. "
            "Change it host by host: ansible-playbook -i INVENTORY playbooks/upgrade_driver.yml"
        )
    minimum = stack.get("driver_min")
    if minimum and number(version) < number(minimum):
        found.append(
            f"{stack['name']} needs driver {minimum} or newer, and nvidia_driver_version is {version}. "
            "Ask for a newer driver, or for an older stack."
        )
    limit = limits(node)
    branch = int(version.split(".")[0])
    if (limit["branch_max"] and branch > int(limit["branch_max"])) or (
        limit["branch_min"] and branch < int(limit["branch_min"])
    ):
        found.append(
            f"the host's GPUs need a driver of branch {limit['branch_min'] or 'any'} to {limit['branch_max'] or 'any'}, and "
            f"nvidia_driver_version is {version}. Choose one of these branches (compat/gpus.yml names the sources)."
        )
    if limit["first_driver"] and number(version) < number(limit["first_driver"]) and not found:
        found.append(
            f"the host's GPUs need driver {limit['first_driver']} or newer, the first that knows them, but nvidia_driver_version is "
            f"{version}. Set a newer one (compat/gpu_devices.yml names the sources)."
        )
    signed = variables.get("nvidia_driver_signing_certificate") and (
        variables.get("nvidia_driver_signing_key") or variables.get("nvidia_driver_build") == "precompiled"
    )
    if node.get("secure_boot") is True and installed != [version] and not signed:
        found.append(
            "Secure Boot is on, so the host loads only modules that are signed with an enrolled key, and nvidia_driver_signing_key and "
            "nvidia_driver_signing_certificate name none. Enroll the site's key and set both, or turn Secure Boot off in the firmware."
        )
    if node.get("os", {}).get("id") == "ubuntu":
        found.append(
            f"the driver's packages are known on RHEL 7, 8, 9 and Debian, but the host has {node['os']['name']}. "
            "Install the driver there by its own means, and set nvidia_driver_version: none."
        )
    return [*found, *module_problems(branch, limit, variables, stack), *fabric_problems(node)]


def module_problems(branch: int, limit: Json, variables: Mapping[str, Any], stack: Json) -> list[str]:
    """Why no module of the requested kind exists for this branch and these GPUs."""
    written = str(variables.get("nvidia_driver_module") or "{{")
    module = (stack.get("driver_module") or "proprietary") if "{{" in written else written
    if module == "open" and limit["open_supported"]:
        return []
    if module == "open":
        return [
            "the host's GPUs are older than Turing and need the proprietary module, and nvidia_driver_module is open. "
            "Set nvidia_driver_module: proprietary for this host."
        ]
    from_file = variables.get("nvidia_driver_source") == "runfile"
    last = int(proprietary_module()["last_branch" if from_file else "last_package_branch"])
    way_out = "Set nvidia_driver_module: open" if limit["open_supported"] else "Set an older nvidia_driver_version"
    if branch > last:
        ends = "the proprietary module ends" if from_file else "packages of the proprietary module end"
        return [
            f"{ends} with branch {last}, but nvidia_driver_version is of branch {branch} and nvidia_driver_module is "
            f"proprietary. {way_out} (compat/drivers.yml names the sources)."
        ]
    if limit["only_open"]:
        return [
            f"the host's GPUs ({', '.join(limit['only_open'])}) have no proprietary module, but nvidia_driver_module is "
            "proprietary. Set nvidia_driver_module: open."
        ]
    return []


def proprietary_module() -> Mapping[str, Any]:
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only where a driver is to be installed)

    return next(row for row in load().rows("drivers", "modules") if row["module"] == "proprietary")


def fabric_problems(node: Json) -> list[str]:
    """GPUs whose NVSwitches need more than the fabric manager; those switches are no devices of the host's PCI bus."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only where a driver is to be installed)

    listed = {f"10de:{gpu['device']}" for gpu in node.get("nvidia", {}).get("gpus") or []}
    rows = [row for row in load().rows("gpus", "devices") if row.get("nvlink_subnet_manager")]
    names = [row["name"] for row in rows if row["pci_id"] in listed]
    return [
        f"{name} requires the NVLink subnet manager (nvlsm) beside the fabric manager, which these playbooks do not install. "
        "Install driver, fabric manager and nvlsm by NVIDIA's fabric manager guide, and set nvidia_driver_version: none."
        for name in names
    ]


def kernel_warnings(version: str, node: Json, variables: Mapping[str, Any]) -> list[str]:
    """What the kernels of a host mean for a driver whose module is built there: it is built for each that may run."""
    kernel, found = node.get("kernel") or {}, []
    running, boots = kernel.get("running"), kernel.get("default_boot")
    if there("nvidia_driver", node) == [version] or variables.get("nvidia_driver_build") == "precompiled":
        return []
    if boots and boots != running:
        found.append(
            f"kernel {running} runs and {boots} boots next: the driver's module is built for both, and neither is moved."
        )
    bare = [one for one in dict.fromkeys((running, boots)) if one and one not in (kernel.get("headers") or [])]
    if bare:
        package = "linux-headers-" if node.get("os", {}).get("family") == "Debian" else "kernel-devel-"
        found.append(
            f"building the driver's module needs {', '.join(package + one for one in bare)}, which the host does not have: "
            "its repositories have to. The kernel is not moved for it."
        )
    return found


def running_problems(host: GpuHost) -> list[str]:
    """A driver that is there, that nobody asks to change, and that is too old for the stack's CUDA."""
    stack, driver = host.stack, host.node.get("nvidia", {}).get("driver")
    minimum = stack.get("driver_min")
    if not driver or not minimum or not host.gpus or requested("nvidia_driver", host) is not None:
        return []
    if number(driver) >= number(minimum):
        return []
    return [
        f"{stack['name']} requires driver {minimum} or later for CUDA {stack['cuda']}, but driver {driver} runs on the host. "
        "Set nvidia_driver_version to a newer one (docs/gpu.md), or choose an older stack or one for the CPU."
    ]


def limits(node: Json) -> Json:
    """What the host's GPUs want of a driver: oldest and newest branch ('' for any), whether the open module drives all of them,
    and how many NVSwitches need a fabric manager: without it CUDA does not start there."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only where a driver is to be installed)
    from hadoop_dl.resolver import gpus  # noqa: PLC0415

    limit = gpus.driver_limits(load(), requests.facts(node)["gpus"])
    return {**vars(limit), "nvswitches": node.get("nvidia", {}).get("nvswitches") or 0}


def models(node: Json) -> list[str]:
    """What people call the host's models of GPU, each once; one that is not known by what the host calls it."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only where models are compared)
    from hadoop_dl.resolver import gpus  # noqa: PLC0415

    names = requests.facts(node)["gpus"]
    return sorted({gpus.find_gpu(load(), name).name for name in names}) if names else []


def reboot(host: str, versions: Sequence[str], node: Json, variables: Mapping[str, Any]) -> str | None:
    """What the plan says about a reboot of this host; None where the new module can be loaded at once."""
    kernel, nvidia = node.get("kernel") or {}, node.get("nvidia") or {}
    if "nouveau" in (kernel.get("modules") or []):
        reason = "nouveau holds the GPU"
    elif versions and nvidia.get("driver") not in (None, versions[0]):
        reason = f"driver {nvidia['driver']} runs"
    else:
        return None
    allowed = variables.get("nvidia_driver_reboot_allowed") is True
    return f"{host} ({reason}; {'allowed' if allowed else 'not allowed, it will be reported'})"
