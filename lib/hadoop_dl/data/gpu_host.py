"""The answer of the module gpu_host_info, typed once: a field for each key of its answer. None means that there is none."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hadoop_dl.data import typed
from hadoop_dl.data.host_facts import Count, Line, Megabytes, Path, Said, Word
from hadoop_dl.data.typed import Number, Sentence, Text

Kernel = Annotated[str, Text(r"[A-Za-z0-9_.+~^:-]+", "a kernel's release", "5.14.0-427.el9.x86_64", 128)]
Argument = Annotated[str, Sentence(4096)]  # of a kernel; a site's own may be long
Base64 = Annotated[str, Text(r"[A-Za-z0-9+/=]*", "base64", "MIIB", 100_000)]
Printed = Annotated[str, Sentence(2000)]
Pid = Annotated[int, Number(0, 2**31)]
Kind = Literal["open", "proprietary"]
Source = Literal["package", "runfile"]
Packages = Mapping[Word, tuple[Word, ...]]


@dataclass(frozen=True)
class Kernels:
    """`needed`: those that may run, now or after the next boot. `headers`: where the headers of each are."""

    running: Kernel
    installed: tuple[Kernel, ...]
    default_boot: Kernel | None
    needed: tuple[Kernel, ...]
    headers: Mapping[Kernel, Path | None]


@dataclass(frozen=True)
class Locks:
    """`lines` pin what is installed; `ours`: the list has lines of this project."""

    manager: Literal["dnf", "yum"]
    file: Path
    file_exists: bool
    ours: bool
    plugin: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Driver:
    source: Source | None
    version: Word | None
    packages: Packages
    library: Path | None


@dataclass(frozen=True)
class Module:
    path: Path
    version: Word | None
    built_for: Said | None
    other_kernel: bool
    signer: Said | None
    open: bool


@dataclass(frozen=True)
class Loaded:
    """`dependents`: loaded modules that keep the driver's in the kernel, besides its own."""

    version: Word | None
    kind: Kind | None
    nouveau: bool
    dependents: tuple[Word, ...]


@dataclass(frozen=True)
class User:
    pid: Pid
    name: Said


@dataclass(frozen=True)
class Image:
    """An initramfs."""

    readable: bool
    nouveau: bool


@dataclass(frozen=True)
class Original:
    """The host's state before the role's first change."""

    arguments: tuple[Argument, ...] = ()
    runfile: bool = False
    unit: bool = False
    stream: bool = True  # earlier releases recorded no module stream: one that is enabled stays


@dataclass(frozen=True)
class Versions:
    driver: Word | None
    kernel: Kernel


@dataclass(frozen=True)
class Records:
    """The records of earlier runs of the role in /opt/deeplearning/etc."""

    before: Original | None
    dcgm_before: tuple[Word, ...] | None
    headers: tuple[Word, ...] | None
    packages_before: tuple[Word, ...] | None
    working_versions: Versions | None


@dataclass(frozen=True)
class Files:
    """Files that exist: settings of the role, a unit of the persistence daemon, dnf's state of the driver's module, marks of what did not
    end."""

    settings: bool
    unit: bool
    stream: bool
    installing: bool
    leaving: bool


@dataclass(frozen=True)
class Signing:
    """The site's certificate. Under Secure Boot also what mokutil says about it, and dkms about itself."""

    certificate: Base64 | None
    mokutil: Printed
    dkms: Printed


@dataclass(frozen=True)
class GpuHost:
    family: Literal["RedHat", "Debian"]
    distribution: Word | None
    major: Word | None
    kernels: Kernels
    kernel_packages: Packages
    header_packages: Packages
    locks: Locks
    disk_free_mb: Mapping[Path, Megabytes | None]
    boot_arguments: Mapping[Kernel, tuple[Argument, ...]]
    driver: Driver
    dcgm_packages: Packages
    modules: Mapping[Kernel, Module | None]
    loaded: Loaded
    users: tuple[User, ...]
    services: tuple[Word, ...]
    gpus: tuple[Word, ...]
    nvswitches: Count
    secure_boot: bool | None
    container: bool
    machine_id: Word
    boot_id: Word
    initramfs: Mapping[Kernel, Image | None]
    records: Records
    files: Files
    signing: Signing | None


def read(answer: Any) -> GpuHost:
    """The answer in its form, or typed.TypedError."""
    return typed.read(GpuHost, answer)
