"""What a host gets of driver, CUDA, cuDNN and NCCL: what the inventory pins, else what its stack decides.

A stack whose lock has CUDA as nvidia-* wheels decides the driver only. Nothing here replaces what a host has already:
a driver or library of the site that serves the stack is left alone, and what an earlier stack of this project used
stays, so that its environment still works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hadoop_dl.data import stacks
from hadoop_dl.data.host_facts import HostFacts
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan import target
from hadoop_dl.plan.model import Host
from hadoop_dl.plan.target import Target

ROLES = ("nvidia_driver", "cuda", "cudnn", "nccl")
NAMES = {"nvidia_driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL"}
NONE = "none"  # The value of an input whose part the site installs itself.


@dataclass(frozen=True)
class GpuHost:
    """What decides the GPU layer of one host."""

    host: Host
    wanted: Target

    @property
    def variables(self) -> Mapping[str, Any]:
        return self.host.variables

    @property
    def facts(self) -> HostFacts:
        return self.host.known

    @property
    def gpus(self) -> int:
        return self.facts.nvidia.count

    @property
    def stack(self) -> str:
        """The stack's name for messages."""
        return self.wanted.stack.name if self.wanted.stack else ""

    def required(self, name: str) -> str | None:
        """A version that the host's stack needs, such as cuda or driver_min."""
        return self.wanted.stack.version(name) if self.wanted.stack else None

    @property
    def loads_libraries(self) -> bool:
        """Whether the host uses CUDA's libraries: with GPUs, to build, or to import a TensorFlow that is linked to them."""
        return bool(self.gpus or "build_hosts" in self.host.groups or self.is_linked)

    @property
    def is_linked(self) -> bool:
        """Whether the stack's TensorFlow cannot be imported without CUDA's libraries and the driver's."""
        return self.wanted.stack is not None and not self.wanted.stack.imports_without_cuda

    @property
    def brings_wheels(self) -> bool:
        """Whether the stack's lock has CUDA as wheels; where the host lacks its Pythons, that of the preferred one."""
        stack = self.wanted.stack
        lock = self.wanted.lock or (target.locked(stack, stack.pythons[0]) if stack else None)
        return lock is not None and lock.has_cuda

    @property
    def needs_libraries(self) -> bool:
        """Whether the stack computes with CUDA that must be installed beside it."""
        return bool(self.required("cuda")) and self.loads_libraries and not self.brings_wheels


def variable(role: str) -> str:
    """The variable that names what a host gets."""
    return "nvidia_driver_version" if role == "nvidia_driver" else f"{role}_versions"


def requested(role: str, host: GpuHost) -> list[Any] | None:
    """The role's input on this host; [] to remove what is installed; None to leave the host unchanged."""
    if host.variables.get(f"{role}_state") == "absent":
        return []
    pinned = host.variables.get(variable(role))
    if pinned == NONE:
        return None
    if role == "nvidia_driver":
        return [pinned] if pinned and host.gpus else None if pinned else driver_of_stack(host)
    if pinned is None:
        return libraries_of_stack(role, host)
    if pinned and not host.loads_libraries:
        return None
    if role == "cuda" and not pinned and host.variables.get("cuda_purge_enabled") is False:
        return None  # What is installed is kept.
    return list(pinned)


def versions(items: Sequence[Any] | None) -> list[str]:
    return [str(one["version"] if isinstance(one, Mapping) else one) for one in items or []]


def driver_of_stack(host: GpuHost) -> list[str] | None:
    """The newest release of the stack's branch if there is no driver; what this project installed stays as it is."""
    minimum = host.required("driver_min")
    if not minimum or not host.gpus:
        return None
    installed = there("nvidia_driver", host.facts)
    if installed:
        ours = "nvidia_driver" in host.facts.deeplearning.receipts
        return installed if ours and numbers(installed[0]) >= numbers(minimum) else None
    if host.facts.nvidia.driver:
        return None  # It runs from a place that no package manages, as in an engine of CDSW.
    release = newest_release(str(host.required("driver_branch")), host.facts.os.short or "")
    return [release] if release else None


def libraries_of_stack(role: str, host: GpuHost) -> list[Any] | None:
    """The stack's toolkit or library, beside those of other major versions that this project installed earlier."""
    required, cuda = host.required(role), host.required("cuda")
    if not required or not cuda or not host.needs_libraries:
        return None
    earlier = items(role, host)
    ours = [one for one in earlier if serves(role, required, versions([one])[0])]
    if not ours and any(serves(role, required, one) for one in there(role, host.facts)):
        return None
    if ours:
        chosen = ours[-1]
    else:
        release = required if role == "cuda" else exact(role, required, cuda)
        if release is None:
            return None
        chosen = release if role == "cuda" else {"version": release, "cuda": cuda}
    return [*(one for one in earlier if place(role, one) != place(role, chosen)), chosen]


def place(role: str, item: Any) -> str:
    """What two items of a role cannot share: a toolkit's directory, a library's soname."""
    version = versions([item])[0]
    return version if role == "cuda" else version.split(".")[0]


def items(role: str, host: GpuHost) -> list[Any]:
    """What this project installed on the host, as entries of the role's input."""
    managed = host.facts.managed
    if role == "cuda":
        return list(managed.cuda)
    return [
        {"version": one.version, "cuda": one.cuda}
        for one in (managed.cudnn_items if role == "cudnn" else managed.nccl_items)
    ]


def there(role: str, facts: HostFacts) -> list[str]:
    """The versions on the host, whoever installed them."""
    if role == "nvidia_driver":
        return [facts.nvidia.installed] if facts.nvidia.installed else []
    if role == "cuda":
        return sorted(facts.cuda.toolkits, key=numbers)
    return [one for one in (facts.cuda.cudnn if role == "cudnn" else facts.cuda.nccl) if "." in one]


def serves(role: str, required: str, found: str) -> bool:
    """Whether a version on the host serves what the stack was built with.

    CUDA: exactly the same before 11, then any of the major number. cuDNN: the same major number and no older minor.
    NCCL: the same major number and no older release.
    """
    if role == "cuda":
        return required == found or (numbers(required)[0] >= 11 and numbers(required)[0] == numbers(found)[0])
    parts = 2 if role == "cudnn" else 3
    return numbers(required)[0] == numbers(found)[0] and numbers(found)[:parts] >= numbers(required)[:parts]


@cache
def newest_release(branch: str, system: str) -> str | None:
    """The newest release of a driver branch that NVIDIA's repository for this system, such as el7, has with dkms."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only if a driver is to be installed)

    rows = [row for row in load().rows("drivers", "branches") if row["branch"] == branch]
    releases = rows[0]["releases"].get(system.replace("el", "rhel")) if rows else None
    return str(releases[0]) if releases else None


@cache
def exact(role: str, required: str, cuda: str) -> str | None:
    """The newest release for this CUDA that serves what a stack was built with; None if compat/ knows no exact one."""
    if required.count(".") >= (3 if role == "cudnn" else 2):
        return required
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only if a library is to be installed)

    if role != "cudnn":
        return None
    # The names of packages have all four numbers, as those of most archives have.
    rows = [row for row in load().rows("cuda", "cudnn") if str(row["version"]).count(".") == 3 or "archive_only" in row]
    for toolkit in (cuda, cuda.split(".")[0]):
        serving = [row["version"] for row in rows if toolkit in row["cuda"] and serves(role, required, row["version"])]
        line = [one for one in serving if numbers(one)[: len(numbers(required))] == numbers(required)]
        if serving:
            return str(max(line or serving, key=numbers))
    return None


def cudnn_source(host: GpuHost) -> str | None:
    """Where cuDNN comes from: what the site set, else the archive if NVIDIA has no package; None for the role's default."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only if a library is to be installed)

    archives = {row["version"] for row in load().rows("cuda", "cudnn") if "archive_only" in row}
    decided = host.variables.get("cudnn_versions") is None and archives & set(versions(requested("cudnn", host)))
    return host.variables.get("cudnn_source") or ("tarball" if decided else None)


@cache
def driver_floor(cuda: str) -> str | None:
    """The oldest driver on which a toolkit's programs run."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only if a toolkit is compared with a driver)

    rows = [row for row in load().rows("cuda", "toolkits") if row["version"] == cuda]
    return str(rows[0]["min_driver"]) if rows else None


@cache
def cudnn_toolkits(line: tuple[int, ...]) -> frozenset[str]:
    """The toolkits that releases of this line of cuDNN are made for; empty if compat/ knows none."""
    from hadoop_dl.data.compat import load  # noqa: PLC0415 (only if a cuDNN is pinned)

    rows = [row for row in load().rows("cuda", "cudnn") if numbers(row["version"])[: len(line)] == line]
    return frozenset(cuda for row in rows for cuda in row["cuda"])


def contradictions(host: GpuHost) -> list[str]:
    """Why the pinned versions cannot work with each other or with the stack."""
    found = [*system_contradictions(host), *driver_contradictions(host), *pair_contradictions(host)]
    found += [*source_contradictions(host), *link_contradictions(host)]
    if not host.needs_libraries:
        return found
    for role in ROLES[1:]:
        required, pinned = host.required(role), host.variables.get(variable(role))
        asked = requested(role, host)
        if not required or pinned == NONE:
            continue
        present = [*versions(asked), *there(role, host.facts)]
        if any(serves(role, required, one) for one in present):
            continue
        named = (
            f"{variable(role)} has {', '.join(versions(asked)) or 'none'}"
            if pinned is not None
            else "no release is known"
        )
        found.append(
            f"{host.stack} requires {NAMES[role]} {required}, but {named} and the host has "
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
        decided = host.required("driver_min") and not host.variables.get("nvidia_driver_version")
        if not decided or host.facts.nvidia.driver or host.variables.get("nvidia_driver_state") == "absent":
            return []
        return [
            f"{host.stack} requires driver {host.required('driver_min')} or later of branch {host.required('driver_branch')}, but "
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
    cuda = host.required("cuda")
    if not cuda:
        return found
    asked = versions(requested("cuda", host))
    if host.brings_wheels and asked:
        found.append(
            f"{host.stack} has CUDA in its nvidia-* wheels and does not use CUDA {', '.join(asked)}, "
            "which cuda_versions names."
        )
    return found


def notes(host: GpuHost) -> list[str]:
    """What the site chose to install itself, as long as the host does not have it."""
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
