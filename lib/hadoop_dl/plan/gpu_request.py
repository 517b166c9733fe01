"""The driver, CUDA, cuDNN and NCCL of a host: as the inventory pins them, else as its stack decides.

A stack whose lock has CUDA as nvidia-* wheels decides the driver only. Nothing here replaces what a host has already:
a driver or library of the site that serves the stack is left alone, and what an earlier stack of this project used
stays, so that its environment still works.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostFacts, Nvidia
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan import target
from hadoop_dl.plan.model import Host
from hadoop_dl.plan.target import Target

ROLES = ("nvidia_driver", "cuda", "cudnn", "nccl")
NAMES = {"nvidia_driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL"}
NONE = "none"  # The value of an input whose part the site installs itself.


@dataclass(frozen=True)
class GpuHost:
    """One host with its stacks, which decide its GPU layer."""

    host: Host
    wanted: Target
    additional: tuple[Target, ...] = ()

    @property
    def each(self) -> list[GpuHost]:
        """The host with each of its stacks alone, that of the active environment first."""
        return [GpuHost(self.host, host_target) for host_target in (self.wanted, *self.additional)]

    @property
    def newest(self) -> GpuHost:
        """The host with the stack that needs the newest driver."""
        return max(self.each, key=lambda view: numbers(view.required("driver_min") or "0"))

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
        return bool(self.gpus or "build_hosts" in self.host.groups or any(view.is_linked for view in self.each))

    @property
    def is_linked(self) -> bool:
        """Whether the stack's TensorFlow cannot be imported without CUDA's libraries and the driver's."""
        return self.wanted.stack is not None and not self.wanted.stack.imports_without_cuda

    @property
    def brings_wheels(self) -> bool:
        """Whether the stack's lock has CUDA as wheels; if the host has none of its Pythons, the lock of the preferred one."""
        stack = self.wanted.stack
        lock = self.wanted.lock or (target.locked(stack, stack.pythons[0]) if stack else None)
        return lock is not None and bool(lock.cuda)

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
        return [pinned] if pinned and host.gpus else None if pinned else driver_of_stack(host.newest)
    if pinned is None:
        return libraries_of_stacks(role, host)
    if pinned and not host.loads_libraries:
        return None
    if role == "cuda" and not pinned and host.variables.get("cuda_purge_enabled") is False:
        return None  # What is installed is kept.
    return list(pinned)


def versions(items: Sequence[Any] | None) -> list[str]:
    return [str(item["version"] if isinstance(item, Mapping) else item) for item in items or []]


def driver_of_stack(host: GpuHost) -> list[str] | None:
    """The newest release of the stack's branch if there is no driver; what this project installed stays as it is."""
    minimum = host.required("driver_min")
    if not minimum or not host.gpus or virtual(host.facts.nvidia):
        return None
    installed = there("nvidia_driver", host.facts)
    if installed:
        is_managed = "nvidia_driver" in host.facts.deeplearning.receipts
        return installed if is_managed and numbers(installed[0]) >= numbers(minimum) else None
    if host.facts.nvidia.driver:
        return None  # It runs from a place that no package manages, as in an engine of CDSW.
    release = newest_release(str(host.required("driver_branch")), host.facts.os.short or "")
    return [release] if release else None


def virtual(nvidia: Nvidia) -> list[str]:
    """The vGPU types of the host; until their driver runs, the PCI subsystem tells them from cards."""
    rows = {row["pci_id"]: row.get("vgpus", ()) for row in load().rows("gpu_devices", "devices")}
    spans = [(gpu, span.partition("-")) for gpu in nvidia.gpus for span in rows.get(gpu.pci_id, ())]
    parts = {gpu for gpu, (first, _, last) in spans if first <= (gpu.subsystem or "") <= (last or first)}
    return list(nvidia.virtual) or sorted({f"{gpu.name} (PCI subsystem 10de:{gpu.subsystem})" for gpu in parts})


def vgpu_problems(nvidia: Nvidia) -> list[str]:
    """Parts of a hypervisor's card: NVIDIA's data center driver does not run them."""
    return [
        f"{name} is a virtual GPU, which requires the guest driver of its hypervisor's vGPU release, and these playbooks install the data center "
        "driver. Install the guest driver with its licence, and set nvidia_driver_version: none."
        for name in virtual(nvidia)
    ]


def libraries_of_stacks(role: str, host: GpuHost) -> list[Any] | None:
    """The toolkits or libraries of all stacks, side by side; if two share a place, the newer one serves both. The active one's comes last."""
    answers = [answer for view in reversed(host.each) if (answer := libraries_of_stack(role, view)) is not None]
    libraries: dict[str, Any] = {}
    for item in (item for answer in answers for item in answer):
        previous = libraries.pop(place(role, item), item)
        libraries[place(role, item)] = max(previous, item, key=lambda library: numbers(versions([library])[0]))
    return list(libraries.values()) if answers else None


def libraries_of_stack(role: str, host: GpuHost) -> list[Any] | None:
    """The stack's toolkit or library, beside those of other major versions that this project installed earlier."""
    required, cuda = host.required(role), host.required("cuda")
    if not required or not cuda or not host.needs_libraries:
        return None
    earlier = items(role, host)
    serving_items = [item for item in earlier if serves(role, required, versions([item])[0])]
    if not serving_items and any(serves(role, required, version) for version in there(role, host.facts)):
        return None
    if serving_items:
        choice = serving_items[-1]
    else:
        release = required if role == "cuda" else exact(role, required, cuda)
        if release is None:
            return None
        choice = release if role == "cuda" else {"version": release, "cuda": cuda}
    return [*(item for item in earlier if place(role, item) != place(role, choice)), choice]


def place(role: str, item: Any) -> str:
    """The place that two items of a role cannot share: a toolkit's directory, a library's soname."""
    version = versions([item])[0]
    return version if role == "cuda" else version.split(".")[0]


def items(role: str, host: GpuHost) -> list[Any]:
    """The versions that this project installed on the host, as entries of the role's input."""
    managed = host.facts.managed
    if role == "cuda":
        return list(managed.cuda)
    return [
        {"version": entry.version, "cuda": entry.cuda}
        for entry in (managed.cudnn_items if role == "cudnn" else managed.nccl_items)
    ]


def there(role: str, facts: HostFacts) -> list[str]:
    """The versions on the host, whoever installed them."""
    if role == "nvidia_driver":
        return [facts.nvidia.installed] if facts.nvidia.installed else []
    if role == "cuda":
        return sorted(facts.cuda.toolkits, key=numbers)
    return [version for version in (facts.cuda.cudnn if role == "cudnn" else facts.cuda.nccl) if "." in version]


def serves(role: str, required: str, version: str) -> bool:
    """Whether a version on the host serves what the stack was built with.

    CUDA: exactly the same before 11, then any of the major number. cuDNN: the same major number and no older minor.
    NCCL: the same major number and no older release.
    """
    if role == "cuda":
        return required == version or (numbers(required)[0] >= 11 and numbers(required)[0] == numbers(version)[0])
    parts = 2 if role == "cudnn" else 3
    return numbers(required)[0] == numbers(version)[0] and numbers(version)[:parts] >= numbers(required)[:parts]


@cache
def newest_release(branch: str, system: str) -> str | None:
    """The newest release of a driver branch that NVIDIA's repository for this system, such as el7, has with dkms."""
    rows = [row for row in load().rows("drivers", "branches") if row["branch"] == branch]
    releases = rows[0]["releases"].get(system.replace("el", "rhel")) if rows else None
    return str(releases[0]) if releases else None


@cache
def exact(role: str, required: str, cuda: str) -> str | None:
    """The newest release for this CUDA that serves what a stack was built with; None if compat/ knows no exact one."""
    if required.count(".") >= (3 if role == "cudnn" else 2):
        return required
    if role != "cudnn":
        return None
    # The names of packages have all four numbers, as those of most archives have.
    rows = [row for row in load().rows("cuda", "cudnn") if str(row["version"]).count(".") == 3 or "archive_only" in row]
    for toolkit in (cuda, cuda.split(".")[0]):
        serving = [row["version"] for row in rows if toolkit in row["cuda"] and serves(role, required, row["version"])]
        line = [version for version in serving if numbers(version)[: len(numbers(required))] == numbers(required)]
        if serving:
            return str(max(line or serving, key=numbers))
    return None


def toolkit_releases(host: GpuHost, on_new_host: bool = False) -> dict[str, str]:
    """Exact releases of toolkits: the site's, and for those that the stacks decide the last one, so hosts of later days get the same.

    A toolkit that this project installed keeps its release; on_new_host: the one of a host that has none.
    """
    named = dict(host.variables.get("cuda_package_versions") or {})
    if host.variables.get("cuda_versions") is not None:
        return named
    new = set(versions(requested("cuda", host))) - set(() if on_new_host else host.facts.managed.cuda)
    rows = load().rows("cuda", "toolkits")
    return {row["version"]: row["latest_update"] for row in rows if row["version"] in new} | named


def cudnn_source(host: GpuHost) -> str | None:
    """Where cuDNN comes from: what the site set, else the archive if NVIDIA has no package; None for the role's default."""
    archives = {row["version"] for row in load().rows("cuda", "cudnn") if "archive_only" in row}
    decided = host.variables.get("cudnn_versions") is None and archives & set(versions(requested("cudnn", host)))
    return host.variables.get("cudnn_source") or ("tarball" if decided else None)
