"""Conflicts in a host's GPU layer: versions that cannot work with each other or with its stacks; and warnings."""

from __future__ import annotations

from functools import cache

from hadoop_dl.data import stacks
from hadoop_dl.data.compat import load
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan.gpu_stack import NAMES, NONE, ROLES, GpuHost, requested, serves, there, variable, versions


@cache
def driver_floor(cuda: str) -> str | None:
    """The oldest driver on which a toolkit's programs run."""
    rows = [row for row in load().rows("cuda", "toolkits") if row["version"] == cuda]
    return str(rows[0]["min_driver"]) if rows else None


@cache
def cudnn_toolkits(line: tuple[int, ...]) -> frozenset[str]:
    """The toolkits that releases of this line of cuDNN are made for; empty if compat/ knows none."""
    rows = [row for row in load().rows("cuda", "cudnn") if numbers(row["version"])[: len(line)] == line]
    return frozenset(cuda for row in rows for cuda in row["cuda"])


def contradictions(host: GpuHost) -> list[str]:
    """Why the pinned versions cannot work with each other or with the stack."""
    found = [*system_contradictions(host), *driver_contradictions(host), *pair_contradictions(host)]
    found += [*source_contradictions(host), *(text for one in host.each for text in link_contradictions(one))]
    pairs = [(one, role) for one in host.each if one.needs_libraries for role in ROLES[1:]]
    for one, role in pairs:
        required, pinned = one.required(role), host.variables.get(variable(role))
        asked = requested(role, host)
        if not required or pinned == NONE:
            continue
        present = [*versions(asked), *there(role, host.facts)]
        if any(serves(role, required, version) for version in present):
            continue
        named = (
            f"{variable(role)} has {', '.join(versions(asked)) or 'none'}"
            if pinned is not None
            else "no release is known"
        )
        found.append(
            f"{one.stack} requires {NAMES[role]} {required}, but {named} and the host has "
            f"{', '.join(there(role, host.facts)) or 'none'}. Set {variable(role)} to a version that serves it, "
            f"or to none if the site installs it (docs/gpu.md), or choose a stack for the CPU."
        )
    return found


def system_contradictions(host: GpuHost) -> list[str]:
    """Toolkits and libraries of a host whose packages and directories the roles do not know."""
    system = host.facts.os
    asked = {role: versions(requested(role, host)) for role in ROLES[1:]}
    names = [f"{NAMES[role]} {', '.join(found)}" for role, found in asked.items() if found]
    if not names or system.family == "RedHat":
        return []
    none = " and ".join(f"{variable(role)}: none" for role, found in asked.items() if found)
    return [
        f"CUDA, cuDNN and NCCL are installed on RHEL 7, 8 and 9 only, but the host has {system.name or 'another system'} and "
        f"{'; '.join(names)} {'is' if len(names) == 1 else 'are'} requested. Install that there by its own means and set {none}, or "
        "choose a stack that has CUDA as wheels (docs/gpu.md)."
    ]


def driver_contradictions(host: GpuHost) -> list[str]:
    """Toolkits that need a newer driver than the host has or gets; a stack whose branch the host's repository lacks."""
    driver = (requested("nvidia_driver", host) or there("nvidia_driver", host.facts))[:1]
    if not host.gpus:
        return []
    if not driver:
        newest = host.newest
        decided = newest.required("driver_min") and not host.variables.get("nvidia_driver_version")
        if not decided or host.facts.nvidia.driver or host.variables.get("nvidia_driver_state") == "absent":
            return []
        return [
            f"{newest.stack} requires driver {newest.required('driver_min')} or later of branch {newest.required('driver_branch')}, but "
            f"compat/drivers.yml lists no release of it for {host.facts.os.name or 'this system'} with dkms. Set nvidia_driver_version "
            "to one that the host's repositories have, or to none if the site installs it."
        ]
    floors = {cuda: driver_floor(cuda) for cuda in versions(requested("cuda", host))}
    return [
        f"CUDA {cuda} requires driver {floor} or later, but the host's driver is {driver[0]}. "
        "Set a newer nvidia_driver_version, or an older cuda_versions."
        for cuda, floor in floors.items()
        if floor and numbers(driver[0]) < numbers(floor)
    ]


def link_contradictions(host: GpuHost) -> list[str]:
    """A TensorFlow that is linked to the driver's library, on a host without GPUs that has no such library."""
    if not host.is_linked or host.gpus or host.facts.nvidia.driver or there("nvidia_driver", host.facts):
        return []
    same = ("tensorflow", "python", "os")
    alike = [
        one.name
        for one in stacks.load_stacks()
        if "cuda" not in one.data and all(one.data[key] == host.wanted.data[key] for key in same)
    ]
    return [
        f"the TensorFlow of {host.stack} is linked to libcuda.so.1 of NVIDIA's driver and cannot be imported without it, but the host has no "
        f"GPU and no driver. Request {' or '.join(alike) or 'a stack for the CPU'} (data_nodes and edge_nodes need the same), or install the "
        "library of your GPU hosts' driver there by its own means (docs/gpu.md)."
    ]


def source_contradictions(host: GpuHost) -> list[str]:
    """Inputs of the site that contradict the versions that its stack decides."""
    found = []
    driver, toolkits = requested("nvidia_driver", host), versions(requested("cuda", host))
    from_file = driver and host.variables.get("nvidia_driver_source") == "runfile"
    if from_file and not host.variables.get("nvidia_driver_version") and driver != there("nvidia_driver", host.facts):
        found.append("nvidia_driver_source: runfile requires nvidia_driver_version, the version of that file.")
    if not toolkits or host.variables.get("cuda_versions") is not None:
        return found
    default = host.variables.get("cuda_default")
    if default and default not in toolkits:
        found.append(f"cuda_default must be one of the host's toolkits ({', '.join(toolkits)}), but is {default}.")
    missing = [one for one in toolkits if one not in host.variables.get("cuda_runfiles", {})]
    if host.variables.get("cuda_source") == "runfile" and missing:
        found.append(f"cuda_source: runfile requires an entry of cuda_runfiles for {', '.join(missing)}.")
    return found


def pair_contradictions(host: GpuHost) -> list[str]:
    """Releases of cuDNN that were never made for the CUDA that they are pinned for."""
    pinned = host.variables.get("cudnn_versions")
    found = []
    for one in pinned if isinstance(pinned, list) else []:
        known = cudnn_toolkits(numbers(one["version"])[:2]) or cudnn_toolkits(numbers(one["version"])[:1])
        if known and not {one["cuda"], one["cuda"].split(".")[0]} & known:
            found.append(
                f"cuDNN {one['version']} is made for CUDA {', '.join(sorted(known, key=numbers))}, but cudnn_versions "
                f"names CUDA {one['cuda']}. Correct cudnn_versions."
            )
    return found


def warnings(host: GpuHost) -> list[str]:
    """Warnings: what is not installed although it is named, and what is installed although nothing requires it."""
    found = []
    for role in ROLES:
        pinned = host.variables.get(variable(role))
        useless = not host.gpus if role == "nvidia_driver" else not host.loads_libraries
        if pinned and pinned != NONE and useless:
            found.append(f"{variable(role)} is set, but the host has no GPU: it gets no {NAMES[role]}.")
    asked = versions(requested("cuda", host))
    if host.required("cuda") and asked and all(one.brings_wheels for one in host.each if one.required("cuda")):
        found.append(
            f"{host.stack} has CUDA in its nvidia-* wheels and does not use CUDA {', '.join(asked)}, "
            "which cuda_versions names."
        )
    return found


def notes(host: GpuHost) -> list[str]:
    """Parts that the site installs itself and that the host does not have yet."""
    return [text for one in host.each for text in notes_of_stack(one)]


def notes_of_stack(host: GpuHost) -> list[str]:
    found: list[str] = []
    if not host.required("cuda") or host.brings_wheels or not host.gpus or not host.needs_libraries:
        return found
    for role in ("nvidia_driver", "cuda", "cudnn"):
        if host.variables.get(variable(role)) != NONE:
            continue
        required = host.required("driver_min" if role == "nvidia_driver" else role)
        present = there(role, host.facts)
        if role == "nvidia_driver":
            served = bool(present or host.facts.nvidia.driver)
        else:
            served = required is None or any(serves(role, required, one) for one in present)
        if required and not served:
            found.append(
                f"{variable(role)} is none and the host has no {NAMES[role]} {required}: "
                f"TensorFlow does not compute on its GPUs until the site installs it."
            )
    return found
