"""The packages of NVIDIA's driver on each system: their names, what they require of other repositories, what they replace."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict

from hadoop_dl.data.gpu_host import GpuHost
from hadoop_dl.data.versions import numbers, upstream

# The first that reads mok_signing_key in framework.conf (https://github.com/dell/dkms/commit/3323033).
DKMS_SIGNS = "3.0.4"


class Pinned(TypedDict, total=False):
    """An entry for pinned_packages: exactly a version ('' for any), or at least one; other is a second name."""

    name: str
    version: str
    other: str
    least: str
    kernel: str


@dataclass(frozen=True)
class Request:
    """The inputs of the role nvidia_driver. kernel_moves: playbooks/upgrade_kernel.yml runs; offered: what repositories answered."""

    host: str
    state: Literal["present", "absent"]
    version: str
    source: Literal["package", "runfile"]
    module: Literal["proprietary", "open"]
    build: Literal["dkms", "precompiled"]
    repository_url: str
    license_accepted: bool
    upgrade_allowed: bool
    kernel: str
    kernel_moves: bool
    open_supported: bool
    persistence: bool
    fabric_manager: bool
    dcgm_version: str
    signing_key: str
    signing_certificate: str
    offered: Any = ()

    @property
    def branch(self) -> str:
        return self.version.partition(".")[0]

    @property
    def next_kernel(self) -> str:
        return f"{self.kernel}.x86_64"

    def from_branch(self, branch: str) -> bool:
        return numbers(self.branch) >= numbers(branch)

    def offered_names(self) -> set[str]:
        """The names by which the repositories have what was asked for."""
        results = [result for result in self.offered if isinstance(result, dict)]
        return {str(name) for result in results for name in result.get("names") or ()}


# Of the driver's own version, with the branch in their names before 580 (install.sh of https://github.com/NVIDIA/gpu-driver-container).
COMPANIONS = ("libnvidia-nscq", "nvidia-imex", "libnvsdm")
COMPANION = re.compile(rf"({'|'.join(COMPANIONS)}|nvidia-open)(-[0-9]+)?")


def after_560(version: str) -> bool:
    """Whether a package's version, with its epoch, is of a branch from which computing needs no package of graphics."""
    return numbers(upstream(version)) >= (560,)


def without_release(kernel: str) -> str:
    """5.14.0-427.18.1 of 5.14.0-427.18.1.el9_4.x86_64, as NVIDIA names compiled modules."""
    return re.sub(r"\.el[0-9].*$", "", kernel)


@dataclass(frozen=True)
class Rpms:
    """RHEL 8 and 9: https://github.com/NVIDIA/yum-packaging-nvidia-driver."""

    request: Request
    host: GpuHost
    lock_plugin = "python3-dnf-plugin-versionlock"
    # Kernel packages that no transaction of the role may touch; headers are installed and locked by it.
    excluded: ClassVar[tuple[str, ...]] = (
        "kernel",
        "kernel-core",
        "kernel-modules",
        "kernel-modules-core",
        "kernel-modules-extra",
        "kernel-uek",
        "kernel-rt",
    )

    @property
    def fabric_names(self) -> tuple[str, str]:
        """Its spec has the first name (https://github.com/NVIDIA/yum-packaging-fabric-manager), newer branches have the second.

        Before branch 460 the branch is in the name (https://github.com/NVIDIA/cuda-repo-management, genmodules.py).
        """
        first = (
            "nvidia-fabric-manager"
            if self.request.from_branch("460")
            else f"nvidia-fabricmanager-{self.request.branch}"
        )
        return (first, "nvidia-fabricmanager")

    def kmods(self) -> list[str]:
        """One package for dkms; of compiled modules one for each kernel that may run."""
        if self.request.build == "dkms":
            return [{"proprietary": "kmod-nvidia-latest-dkms", "open": "kmod-nvidia-open-dkms"}[self.request.module]]
        return [self.compiled(kernel) for kernel in self.host.kernels.needed]

    def compiled(self, kernel: str) -> str:
        """NVIDIA's package of the proprietary module, a distribution's of the open one (DISTROS.md of yum-packaging-precompiled-kmod)."""
        kind = "open-" if self.request.module == "open" else ""
        return f"kmod-nvidia-{kind}{self.request.version}-{without_release(kernel)}"

    def companions(self) -> list[str]:
        """What the host has beside the driver and must follow it; NSCQ as well where DCGM watches NVSwitches. nvidia-open is NVIDIA's
        metapackage, which requires the open module."""
        installed = {match[1] for name in self.host.driver.packages if (match := COMPANION.fullmatch(name))}
        if not self.request.from_branch("450"):
            return []  # no older branch has them
        if self.request.dcgm_version and self.request.fabric_manager:
            installed.add("libnvidia-nscq")
        suffix = "" if self.request.from_branch("580") else f"-{self.request.branch}"
        names = [name + suffix for name in COMPANIONS if name in installed]
        return names + ["nvidia-open"] * ("nvidia-open" in installed and self.request.module == "open")

    def other_kmods(self) -> list[str]:
        """Installed modules of another kind or version; compiled ones of this version for further kernels stay."""
        installed = [name for name in self.host.driver.packages if name.startswith("kmod-nvidia")]
        further = self.compiled("") if self.request.build == "precompiled" else None
        return [name for name in installed if name not in self.kmods() and not (further and name.startswith(further))]

    def packages(self) -> list[str]:
        # libnvidia-ml is a package of its own that none of branch 555 and older requires: nvidia-smi opens it with dlopen.
        nvml = "libnvidia-ml" if self.request.from_branch("560") else "nvidia-driver-NVML"
        parts = ["nvidia-driver-cuda", "nvidia-driver-cuda-libs", nvml, "nvidia-kmod-common"]
        return [*parts, "nvidia-persistenced", "nvidia-modprobe"]

    def replaced(self) -> list[str]:
        """What leaves in the same transaction: modules of the other kind, and what only the other side of branch 560 has or requires."""
        driver, newer = self.host.driver.packages, self.request.from_branch("560")
        graphics = ("nvidia-driver", "nvidia-driver-libs", "nvidia-driver-NvFBCOpenGL", "nvidia-driver-devel")
        names = graphics if newer else ("libnvidia-ml", "libnvidia-cfg", "libnvidia-fbc")
        # nvidia-driver of a branch before 560 came with the other packages; a site's own of a later one follows them.
        companions = [name for name in driver if COMPANION.fullmatch(name) and name not in self.companions()]
        return [*self.other_kmods(), *companions] + [
            name
            for name in names
            if name in driver and not (newer and any(after_560(version) for version in driver[name]))
        ]

    def required(self) -> list[str | Pinned]:
        """What they require of other repositories (EPEL); RHEL's own are taken for granted."""
        common: list[str | Pinned] = ["opencl-filesystem", "ocl-icd"]
        if self.request.build != "dkms":
            return common
        # Modules of branch 575 and later require it (https://github.com/stackhpc/ansible-slurm-appliance/pull/703).
        least = "3.1.8" if self.request.from_branch("575") else DKMS_SIGNS if self.request.signing_key else ""
        # EPEL 9's dkms: (kernel-devel-matched if kernel-core). Only that of an installed kernel goes with the excluded ones.
        ties = numbers(self.host.major or "") >= (9,) and "kernel-core" in self.host.kernel_packages
        return [
            *common,
            {"name": "dkms", "least": least},
            *(self.tie(self.host.kernels.default_boot or "") if ties and not self.tied() else []),
        ]

    def tied(self) -> bool:
        return "kernel-devel-matched" in self.host.header_packages

    @staticmethod
    def tie(kernel: str) -> list[Pinned]:
        return [{"name": "kernel-devel-matched", "version": kernel.removesuffix(".x86_64")}]

    def remedy(self) -> str:
        """What else helps if a repository lacks the version. Of a host's own one dnf shows the packages of one module stream.

        A branch's streams share all packages but the modules, which each has in the newest version alone
        (https://github.com/NVIDIA/cuda-repo-management, genmodules.py).
        """
        if self.request.repository_url:
            return "request a version that it has"
        if (self.request.build, self.request.module) == ("precompiled", "open"):
            return f"set nvidia_driver_repository_url to one that has the distribution's {self.compiled('KERNEL')}"
        kind = "" if self.request.build != "dkms" else {"open": "-open", "proprietary": "-dkms"}[self.request.module]
        return (
            f"enable the module stream that has it (dnf module reset nvidia-driver, then dnf module enable nvidia-driver:{self.request.branch}{kind}, "
            "which has the module of the branch's newest version alone), or set nvidia_driver_repository_url, of which streams hide nothing"
        )

    def headers(self) -> list[Pinned]:
        """The headers of exactly the kernels that may run and have none."""
        missing = [kernel for kernel in self.host.kernels.needed if not self.host.kernels.headers.get(kernel)]
        return [self.header(kernel) for kernel in missing] if self.request.build == "dkms" else []

    @staticmethod
    def header(kernel: str) -> Pinned:
        return {"kernel": kernel, "name": "kernel-devel", "version": kernel.removesuffix(".x86_64")}

    def header_names(self) -> list[str]:
        """By which the removal finds them."""
        return [f"{header['name']}-{header['version']}" for header in self.headers()]

    def kernel_packages(self) -> list[Pinned]:
        """The kernel that playbooks/upgrade_kernel.yml installs, with what its module needs."""
        kernel = self.request.kernel
        compiled: Pinned = {"name": self.compiled(kernel), "version": self.request.version}
        module: Pinned = {"name": "kernel-devel", "version": kernel} if self.request.build == "dkms" else compiled
        # From RHEL 9 on it ties headers to their kernel. Left at an older kernel, it would keep that one installed.
        return [{"name": "kernel", "version": kernel}, module, *(self.tie(kernel) if self.tied() else [])]

    def dkms_name(self) -> str:
        return {"open": "nvidia-open", "proprietary": "nvidia"}[self.request.module]

    def fabric_package(self) -> str:
        """Repositories have it under one of two names; what they offered comes before what is installed."""
        for names in (self.request.offered_names(), self.host.driver.packages):
            if candidates := [name for name in self.fabric_names if name in names]:
                return candidates[0]
        return self.fabric_names[0]

    def parts(self) -> list[Pinned]:
        """Every part of the driver, all of one version."""
        fabric = [self.fabric_package()] if self.request.fabric_manager else []
        return self.of_version(self.kmods() + self.packages() + self.companions() + fabric)

    def requested_parts(self) -> list[Pinned]:
        first, second = self.fabric_names
        fabric: Pinned = {"name": first, "other": second, "version": self.request.version}
        parts = self.of_version(self.kmods() + self.packages() + self.companions())
        return parts + ([fabric] if self.request.fabric_manager else [])

    def dcgm(self) -> list[Pinned]:
        """DCGM's versions are its own. From 4 on it has a package for the driver's CUDA, 12 from branch 525 and 13 from branch 580 on
        (https://docs.nvidia.com/datacenter/dcgm/latest/installation.html), but before Turing it takes 12 for 13.0 (GetCompatibleCudaMajorVersion in
        nvvs/include/TestFramework.inl of https://github.com/NVIDIA/DCGM)."""
        version, major = self.request.dcgm_version, self.request.dcgm_version.partition(".")[0]
        if not version or self.request.state == "absent":
            return []
        newest = self.request.from_branch("580") and self.request.open_supported
        cuda = 13 if newest else 12 if self.request.from_branch("525") else 11
        name = "datacenter-gpu-manager"
        names = [name] if numbers(major) < (4,) else [f"{name}-{major}-core", f"{name}-{major}-cuda{cuda}"]
        return [{"name": package, "version": version} for package in names]

    def dcgm_leaving(self) -> list[str]:
        """Packages of DCGM that this role installed, which are no longer requested."""
        packages_before, requested_names = self.host.records.dcgm_before, [package["name"] for package in self.dcgm()]
        own_packages = (
            [] if packages_before is None else [name for name in self.host.dcgm_packages if name not in packages_before]
        )
        return [name for name in own_packages if name not in requested_names]

    def dcgm_changes(self) -> bool:
        return bool(self.dcgm_leaving()) or any(
            not any(
                upstream(version) == package["version"] for version in self.host.dcgm_packages.get(package["name"], ())
            )
            for package in self.dcgm()
        )

    def of_version(self, names: Sequence[str]) -> list[Pinned]:
        return [{"name": name, "version": self.request.version} for name in names]


class Rpms7(Rpms):
    """RHEL 7 has the flavor in the names (branches *-rhel7 of the same repository). All are tied to one version, and yum downgrades only what is named."""

    lock_plugin = "yum-plugin-versionlock"

    def packages(self) -> list[str]:
        driver = ["", "-libs", "-cuda", "-cuda-libs", "-NVML", "-NvFBCOpenGL", "-devel"]
        tools = ["nvidia-modprobe", "nvidia-persistenced", "nvidia-xconfig"]
        return [f"nvidia-driver-latest-dkms{part}" for part in driver] + [f"{name}-latest-dkms" for name in tools]

    def remedy(self) -> str:
        """NVIDIA's flavors branch-XXX have compiled modules only; latest-dkms ends with the last version that was the newest of its time."""
        return "request a version that it has, or install this one with nvidia_driver_source: runfile"


def packages_of(request: Request, host: GpuHost) -> Rpms:
    return (Rpms7 if host.major == "7" else Rpms)(request, host)
