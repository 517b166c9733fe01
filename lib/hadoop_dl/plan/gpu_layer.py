"""The plan's part about driver, CUDA, cuDNN and NCCL: what differs on a host, and the problems that prevent it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostFacts, Nvidia
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan import target
from hadoop_dl.plan.gpu_request import NAMES, NONE, GpuHost, requested, there, vgpu_problems
from hadoop_dl.plan.model import Host

Json = dict[str, Any]
GROUPS = (*target.ENVIRONMENT_GROUPS, "build_hosts")


def has(role: str, version: str, installed: Sequence[str]) -> bool:
    """Whether this version is among them; a package's fourth number may be missing from its files' names."""
    return version in installed or (role == "cudnn" and ".".join(version.split(".")[:3]) in installed)


def difference(role: str, versions: Sequence[str], facts: HostFacts) -> str | None:
    """Why the host differs from the request, by versions and files; None if it does not."""
    installed_versions = there(role, facts)
    if role == "nvidia_driver":
        return driver_difference(versions, installed_versions, facts)
    managed: tuple[str, ...] = getattr(facts.managed, role)
    missing = [version for version in versions if not has(role, version, installed_versions)]
    extra = [version for version in managed if version not in versions]
    reasons = [f"{', '.join(missing)} missing"] if missing else []
    reasons += [f"{', '.join(extra)} no longer requested"] if extra else []
    return "; ".join(reasons) or None


def driver_difference(versions: Sequence[str], installed: Sequence[str], facts: HostFacts) -> str | None:
    if not versions:
        return "no longer requested" if installed else None
    if not installed:
        return "missing"
    if list(versions) != list(installed):
        return "another version is installed"
    kernel = facts.kernel
    may_run = [release for release in kernel.installed if release in (kernel.running, kernel.default_boot)]
    bare = [release for release in may_run if release not in facts.nvidia.module_kernels]
    return f"kernel {', '.join(bare)} has no module" if bare else None


def license_problem(roles: Mapping[str, Sequence[str]], variables: Mapping[str, Any]) -> list[str]:
    """One line about everything of NVIDIA's that would be downloaded for this host."""
    if not roles or variables.get("nvidia_license_accepted") is True:
        return []
    listed = ", ".join(f"{NAMES[role]} {', '.join(versions)}" for role, versions in roles.items())
    return [
        f"{listed}: this is NVIDIA's software under its licence, but nvidia_license_accepted is not true; nothing of NVIDIA's was "
        "downloaded. Read https://docs.nvidia.com/cuda/eula/ and https://www.nvidia.com/en-us/drivers/nvidia-license/, and "
        "set nvidia_license_accepted: true in group_vars/all."
    ]


def driver_problems(version: str, host: GpuHost, upgrade: bool) -> list[str]:
    """Why this driver cannot be installed on this host: a locked one, its GPUs, its stack."""
    problems = []
    facts, variables = host.facts, host.variables
    installed = there("nvidia_driver", facts)
    if installed and installed != [version] and not upgrade:
        problems.append(
            f"driver {installed[0]} is installed and its version locked, but nvidia_driver_version is {version}. "
            "Change it host by host: ansible-playbook -i INVENTORY playbooks/upgrade_driver.yml"
        )
    minimum = host.required("driver_min")
    if minimum and numbers(version) < numbers(minimum):
        problems.append(
            f"{host.stack} requires driver {minimum} or later, but nvidia_driver_version is {version}. "
            "Request a newer driver, or an older stack."
        )
    limit = limits(facts)
    branch = int(version.split(".")[0])
    if (limit["branch_max"] and branch > int(limit["branch_max"])) or (
        limit["branch_min"] and branch < int(limit["branch_min"])
    ):
        problems.append(
            f"the host's GPUs require a driver of branch {limit['branch_min'] or 'any'} to {limit['branch_max'] or 'any'}, but "
            f"nvidia_driver_version is {version}. Choose one of these branches (compat/gpus.yml names the sources)."
        )
    if limit["first_driver"] and numbers(version) < numbers(limit["first_driver"]) and not problems:
        problems.append(
            f"the host's GPUs require driver {limit['first_driver']} or later, the first that supports them, but nvidia_driver_version is "
            f"{version}. Set a newer one (compat/gpu_devices.yml names the sources)."
        )
    signed = variables.get("nvidia_driver_signing_certificate") and (
        variables.get("nvidia_driver_signing_key") or variables.get("nvidia_driver_build") == "precompiled"
    )
    if facts.secure_boot is True and installed != [version] and not signed:
        problems.append(
            "Secure Boot is on, so the host loads only modules that are signed with an enrolled key, but nvidia_driver_signing_key and "
            "nvidia_driver_signing_certificate name none. Enroll the site's key and set both, or turn Secure Boot off in the firmware."
        )
    if facts.os.short not in ("el7", "el8", "el9"):
        problems.append(
            f"the driver's packages are known on RHEL 7, 8 and 9, but the host has {facts.os.name}. "
            "Install the driver there by its own means, and set nvidia_driver_version: none."
        )
    return [
        *problems,
        *module_problems(branch, limit, host),
        *fabric_problems(facts.nvidia),
        *vgpu_problems(facts.nvidia),
    ]


def module(host: GpuHost) -> str:
    """The kind of the module that the site or the stack requests."""
    setting = str(host.variables.get("nvidia_driver_module") or "{{")
    return (host.required("driver_module") or "proprietary") if "{{" in setting else setting


def module_problems(branch: int, limit: Json, host: GpuHost) -> list[str]:
    """Why no module of the requested kind exists for this branch and these GPUs."""
    is_open = module(host) == "open"
    from_file = host.variables.get("nvidia_driver_source") == "runfile"
    if is_open and not limit["open_supported"]:
        return [
            "the host's GPUs are older than Turing and require the proprietary module, but nvidia_driver_module is open. "
            "Set nvidia_driver_module: proprietary for this host."
        ]
    if is_open and host.facts.os.short == "el7" and not from_file:
        return [
            "RHEL 7 has no packages of the open module (compat/drivers.yml names the sources), but nvidia_driver_module is open. "
            "Set nvidia_driver_module: proprietary for this host, or nvidia_driver_source: runfile."
        ]
    if is_open:
        return []
    last = int(proprietary_module()["last_branch" if from_file else "last_package_branch"])
    way_out = "Set nvidia_driver_module: open" if limit["open_supported"] else "Set an older nvidia_driver_version"
    if branch > last:
        reason = "the proprietary module ends" if from_file else "packages of the proprietary module end"
        return [
            f"{reason} with branch {last}, but nvidia_driver_version is of branch {branch} and nvidia_driver_module is "
            f"proprietary. {way_out} (compat/drivers.yml names the sources)."
        ]
    if limit["only_open"]:
        return [
            f"the host's GPUs ({', '.join(limit['only_open'])}) have no proprietary module, but nvidia_driver_module is "
            "proprietary. Set nvidia_driver_module: open."
        ]
    return []


def proprietary_module() -> Mapping[str, Any]:
    return next(row for row in load().rows("drivers", "modules") if row["module"] == "proprietary")


def fabric_problems(nvidia: Nvidia) -> list[str]:
    """GPUs whose NVSwitches need more than the fabric manager; those switches are no devices of the host's PCI bus."""
    listed = {gpu.pci_id for gpu in nvidia.gpus}
    rows = [row for row in load().rows("gpus", "devices") if row.get("nvlink_subnet_manager")]
    names = [row["name"] for row in rows if row["pci_id"] in listed]
    return [
        f"{name} requires the NVLink subnet manager (nvlsm) beside the fabric manager, which these playbooks do not install. "
        "Install driver, fabric manager and nvlsm by NVIDIA's fabric manager guide, and set nvidia_driver_version: none."
        for name in names
    ]


def of_its_driver(texts: Sequence[str], host: Host) -> list[str]:
    """A stack's warnings without that about the end of its branch, if another driver is pinned for the host, or none of it."""
    pinned = str(host.variables.get("nvidia_driver_version") or "")
    own = (host.known.nvidia.installed or "none") if pinned in ("", NONE) else pinned
    ended = re.compile(r"Driver branch (\d+) is past its end of life")
    return [text for text in texts if not pinned or not (end := ended.match(text)) or own.startswith(f"{end[1]}.")]


def kernel_warnings(version: str, facts: HostFacts, variables: Mapping[str, Any]) -> list[str]:
    """Warnings about a host's kernels: the driver's module is built for each that may run."""
    sentences = []
    running, boots = facts.kernel.running, facts.kernel.default_boot
    if there("nvidia_driver", facts) == [version] or variables.get("nvidia_driver_build") == "precompiled":
        return []
    if boots and boots != running:
        sentences.append(
            f"the driver's module is built for the running kernel {running} and for {boots}, which boots next. Kernels are not changed."
        )
    bare = [release for release in dict.fromkeys((running, boots)) if release and release not in facts.kernel.headers]
    if bare:
        sentences.append(
            f"building the driver's module requires {', '.join(f'kernel-devel-{release}' for release in bare)}, which the host does not have: "
            "its repositories must have them. The kernel is not changed for it."
        )
    return sentences


def running_problems(host: GpuHost) -> list[str]:
    """A running driver that no input changes, but that is too old for the stack's CUDA."""
    driver, minimum = host.facts.nvidia.driver, host.required("driver_min")
    if not driver or not minimum or not host.gpus or requested("nvidia_driver", host) is not None:
        return []
    if numbers(driver) >= numbers(minimum):
        return []
    return [
        f"{host.stack} requires driver {minimum} or later for CUDA {host.required('cuda')}, but driver {driver} runs on the host. "
        "Set nvidia_driver_version to a newer one (docs/operate/gpu.md), or choose an older stack or one for the CPU."
    ]


def limits(facts: HostFacts) -> Json:
    """Requirements of the host's GPUs on a driver: oldest and newest branch ('' for any), whether the open module drives all of them,
    and how many NVSwitches need a fabric manager: without it CUDA does not start there."""
    from hadoop_dl.resolver import gpus

    limit = gpus.driver_limits(load(), facts.nvidia.names)
    return {**vars(limit), "nvswitches": facts.nvidia.nvswitches}


def models(nvidia: Nvidia) -> list[str]:
    """The usual names of the host's GPU models, each once; an unknown one has the host's own name for it."""
    from hadoop_dl.resolver import gpus

    return sorted({gpus.find_gpu(load(), name).name for name in nvidia.names}) if nvidia.names else []


def reboot(versions: Sequence[str], facts: HostFacts, variables: Mapping[str, Any]) -> str | None:
    """Why the host must be rebooted, and whether it may; None if the new module can be loaded at once."""
    if "nouveau" in facts.kernel.modules:
        reason = "nouveau holds the GPU"
    elif versions and facts.nvidia.driver not in (None, versions[0]):
        reason = f"driver {facts.nvidia.driver} runs"
    else:
        return None
    reboot_allowed = variables.get("nvidia_driver_reboot_allowed") is True
    return f"{reason}; {'allowed' if reboot_allowed else 'not allowed, it will be reported'}"
