"""What a host answered, typed once: plugins/module_utils/hadoop_dl_host/host_reader.py reads it there, read_facts makes it HostFacts here.

A new fact is a key in the reader's answer and a field of the same name here (tests/unit/test_host_facts.py compares the two); the field's
type is its form (typed.py). None means that the host could not tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal, TypeVar

from ansible.module_utils.hadoop_dl_host.host_system import VGPU

from hadoop_dl.data import json_text, typed
from hadoop_dl.data.typed import Number, Sentence, Text
from hadoop_dl.data.versions import numbers

T = TypeVar("T")

Word = Annotated[str, Text(r"[A-Za-z0-9_.+~^:-]*", "letters, digits and . _ + ~ ^ : -", "x86_64", 100)]
Line = Annotated[str, Text(r".*", "one line of at most 200 printable characters", "tf2.15-py3-el9")]
Path = Annotated[str, Text(r"/.*", "a path from the root", "/usr/bin/python3", 500)]
UnitPath = Annotated[str, Text(r"(/(?!\.)[A-Za-z0-9_.+-]+)+", "a path of plain characters", "/sys/fs/cgroup", 200)]
Setting = Annotated[str, Text(r"(\[[a-z]+\] )?[A-Za-z0-9_.-]*", "a setting's name", "yarn.resource-types", 300)]
Version = Annotated[str, Text(r"[0-9]{1,9}(\.[0-9]{1,9}){0,5}", "a version of numbers and points", "12.2")]
CudaVersion = Annotated[str, Text(r"[0-9]{1,3}\.[0-9]{1,3}", "two numbers with a point", "12.2")]
Release = Annotated[str, Text(r"[0-9][A-Za-z0-9_.+~-]*", "a release that begins with a number", "1.8.0_412", 100)]
Kernel = Annotated[str, Text(r"[ -~]+", "a kernel's release", "5.14.0-427.el9.x86_64", 128)]
Hexadecimal = Annotated[str, Text(r"[0-9a-f]{0,8}", "up to 8 hexadecimal digits", "10de")]
Address = Annotated[str, Text(r"[0-9A-Fa-f:.]*", "an address of a PCI bus", "0000:03:00.0", 20)]
Capability = Annotated[str, Text(r"[0-9]{1,2}\.[0-9]{1,2}", "a compute capability", "9.0")]
Said = Annotated[str, Sentence()]
Count = Annotated[int, Number(0, 100_000)]
Seconds = Annotated[int, Number(0, 2**40)]  # since 1970
Megabytes = Annotated[int, Number(0, 10**12)]


class FactsError(ValueError):
    """An answer that cannot be used; the message names the fact."""


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU on the PCI bus. compute_cap: as nvidia-smi reports it, for devices that may be in no table. virtual: its vGPU type.

    subsystem: the PCI subsystem's device, if its vendor is NVIDIA.
    """

    vendor: Hexadecimal
    device: Hexadecimal
    address: Address = ""
    compute_cap: Capability | None = None
    virtual: Said | None = None
    subsystem: Hexadecimal | None = None

    @property
    def pci_id(self) -> str:
        return f"{self.vendor}:{self.device}"

    @property
    def name(self) -> str:
        """The key under which its data is looked up: the PCI id, with the compute capability if that is known."""
        return f"{self.pci_id} cc={self.compute_cap}" if self.compute_cap else self.pci_id


@dataclass(frozen=True)
class OperatingSystem:
    id: Word | None
    name: Said | None
    version: Word | None
    major: Word | None
    family: Literal["RedHat", "Debian"] | None
    short: Word | None


@dataclass(frozen=True)
class Cpu:
    features: tuple[Word, ...] | None


@dataclass(frozen=True)
class Kernels:
    """`headers`: kernels whose headers are installed; `modules`: those that matter here, loaded now."""

    running: Kernel | None
    default_boot: Kernel | None
    installed: tuple[Kernel, ...]
    headers: tuple[Kernel, ...]
    modules: tuple[Word, ...]


@dataclass(frozen=True)
class Nvidia:
    """`driver` runs in the kernel now, `installed` is that of the library; `listed` are nvidia-smi's names without a PCI bus."""

    gpus: tuple[Gpu, ...]
    listed: tuple[Said, ...] | None
    nvswitches: Count
    driver: Version | None
    module: Literal["open", "proprietary"] | None
    installed: Version | None
    module_kernels: tuple[Kernel, ...]
    divided: Count = 0  # GPUs that MIG divides

    @property
    def count(self) -> int:
        """The host's GPUs: from the PCI bus, or, if a container shows none, from nvidia-smi."""
        return len(self.gpus or self.listed or ())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its models, each once."""
        return tuple(sorted({gpu.name for gpu in self.gpus} or set(self.listed or ())))

    @property
    def virtual(self) -> tuple[str, ...]:
        """The vGPU types among them, each once; without a running driver a vGPU looks like its card."""
        listed = {name for name in self.listed or () if VGPU.search(name)}
        return tuple(sorted({gpu.virtual for gpu in self.gpus if gpu.virtual} | listed))


@dataclass(frozen=True)
class Cuda:
    """The versions on the host, whoever installed them; toolkits with their directories."""

    toolkits: Mapping[CudaVersion, Path]
    cudnn: tuple[Version, ...]
    nccl: tuple[Version, ...]


@dataclass(frozen=True)
class Library:
    """A cuDNN or NCCL as an entry of its role's input."""

    version: Version
    cuda: CudaVersion


@dataclass(frozen=True)
class Managed:
    """CUDA, cuDNN and NCCL that this project's roles installed, by their own records."""

    cuda: tuple[CudaVersion, ...]
    cudnn: tuple[Version, ...]
    nccl: tuple[Version, ...]
    cudnn_items: tuple[Library, ...]
    nccl_items: tuple[Library, ...]


@dataclass(frozen=True)
class Java:
    home: Path
    version: Line | None  # IBM's has more than a release: 8.0.7.20 - pxa6480sr7fp20
    major: Line | None


@dataclass(frozen=True)
class Hadoop:
    distribution: Literal["cdh", "hdp", "mapr", "apache"]
    home: Path
    version: Release | None
    conf_dir: Path | None


@dataclass(frozen=True)
class Workbench:
    """Cloudera Data Science Workbench (CDSW); `drivers`: directories of nvidia-docker 1; `settings`: those of cdsw.conf that matter."""

    kind: Literal["rpm", "parcel"]
    release: Version | None
    settings: Mapping[Word, Line]
    master: bool
    drivers: tuple[Word, ...]
    sessions: Count | None
    images: tuple[Line, ...] | None
    mig: bool | None
    restart_pending: bool = False


@dataclass(frozen=True)
class Containers:
    """Docker, and what of NVIDIA's is in it."""

    runtimes: tuple[Line, ...]
    daemon_json_problem: Said | None
    packages: Mapping[Word, Word]


@dataclass(frozen=True)
class HadoopFile:
    """Of one of Hadoop's files the settings that matter for GPUs; `ours`: what this project set."""

    settings: Mapping[Setting, Said]
    ours: Mapping[Setting, Said]
    problem: Said | None


@dataclass(frozen=True)
class GpuHealth:
    """gpu-check's last answer for YARN: what the NodeManager reads, what the last look was, and the age in minutes."""

    line: Said
    look: Said
    minutes: Annotated[int, Number(0, 100_000, clipped=True)]


@dataclass(frozen=True)
class Yarn:
    """`manager`: whose agent writes the files. `drained`: nodes that node_maintenance took out of YARN, and since when.

    devices: where the controller devices of cgroup v1 is mounted.
    devices_unused: the kernel has it, but it is mounted nowhere, as in RHEL 9.
    """

    manager: Literal["cloudera_manager", "ambari"] | None
    files: Mapping[Path, HadoopFile]
    drained: Mapping[Line, Said] = field(default_factory=dict)
    executor_config: UnitPath | None = None  # container-executor.cfg
    devices: UnitPath | None = None
    devices_unused: bool = False
    gpu_health: GpuHealth | None = None


@dataclass(frozen=True)
class Kerberos:
    """Whether Hadoop asks for it, and its web interfaces too; `realm`: krb5.conf's default; `missing`: programs of the client.

    clock: the host's; received: this controller's when the answer came, which no host says. clockskew: of krb5.conf, in seconds.
    """

    secure: bool
    web: bool
    realm: Said | None
    missing: tuple[Word, ...]
    clock: Seconds | None = None
    clockskew: Count | None = None
    received: Seconds | None = None


@dataclass(frozen=True)
class Environment:
    """An installed environment; `added`: files that appeared in it after it was sealed.

    lock: the sha256 of TensorFlow's section of it, which hosts with and without GPUs may not share. python: the build of the interpreter.
    contents: the digest of all files but bytecode, which is one for all hosts with the same lock and build: Python does not mark shared
    constants alike in each process that compiles. All three are None in trees of earlier versions.
    """

    problem: Said | None
    added: tuple[Said, ...] = ()
    python: Said | None = None
    contents: Word | None = None
    lock: Word | None = None


@dataclass(frozen=True)
class Receipt:
    digest: Word | None
    problem: Said | None


@dataclass(frozen=True)
class DeepLearning:
    """The state of this project's installation."""

    current: Line | None
    environments: Mapping[Line, Environment]
    receipts: Mapping[Line, Receipt]


@dataclass(frozen=True)
class Account:
    uid: Annotated[int, Number(0, 2**32)]
    home: Line  # a directory service may name none


@dataclass(frozen=True)
class Named:
    """Paths and accounts that inputs name: whether each path exists, its Spark's release, and each account, None if there is none."""

    paths: Mapping[Path, bool]
    accounts: Mapping[Line, Account | None]
    sparks: Mapping[Path, Version] = field(default_factory=dict)


@dataclass(frozen=True)
class HostFacts:
    """Everything about a host that decisions need."""

    os: OperatingSystem
    architecture: Word
    cpu: Cpu
    glibc: Version | None
    kernel: Kernels
    secure_boot: bool | None
    nvidia: Nvidia
    cuda: Cuda
    managed: Managed
    pythons: Mapping[Version, Path]
    java: tuple[Java, ...]
    hadoop: Hadoop | None
    cdsw: bool
    disk_free_mb: Mapping[Path, Megabytes]
    unanswered: tuple[Said, ...]
    deeplearning: DeepLearning
    libstdcxx: Version | None = None
    workbench: Workbench | None = None
    containers: Containers | None = None
    cell_problem: Said | None = None  # why no program can be confined (hadoop_dl_host/sandbox_cell.py)
    named: Named | None = None
    yarn: Yarn | None = None
    kerberos: Kerberos | None = None
    mapr_mount: Path | None = None  # /mapr/CLUSTER, if MapR's file system is mounted there

    @cached_property
    def profile(self) -> HostProfile:
        """The facts that decide which versions fit the host; hosts with equal ones get the same verdicts."""
        version = self.os.version
        hadoop = self.hadoop
        majors = {java.major for java in self.java if java.major}
        return HostProfile(
            os=f"{self.os.id}-{version}" if self.os.id and version else self.os.short,
            gpus=self.nvidia.names,
            hadoop=hadoop_name(hadoop.distribution, hadoop.version) if hadoop else None,
            glibc=self.glibc,
            cpu_features=self.cpu.features,
            pythons=tuple(sorted(self.pythons, key=numbers)),
            javas=tuple(sorted(majors, key=numbers)),
            driver=self.nvidia.driver,
            architecture=self.architecture,
            cdsw=self.cdsw,
            spark=next(iter(self.named.sparks.values()), None) if self.named else None,
        )

    @cached_property
    def deciding_text(self) -> str:
        """The facts that decide what most roles do, as sorted JSON. It is in digests: if it changes, every host runs them again."""
        names = ("os", "java", "hadoop", "pythons")
        return json_text.encoded({name: typed.as_json(getattr(self, name)) for name in names}, sort_keys=True)

    @cached_property
    def system_text(self) -> str:
        """The operating system alone, in the same form."""
        return json_text.encoded({"os": typed.as_json(self.os)}, sort_keys=True)


@dataclass(frozen=True)
class HostProfile:
    """The facts that decide which versions fit. None means not known; an empty tuple means known to be none.

    spark: the release of the site's own Spark, that of the input spark_home.
    """

    os: str | None = None
    gpus: tuple[str, ...] | None = None
    hadoop: str | None = None
    glibc: str | None = None
    cpu_features: tuple[str, ...] | None = None
    pythons: tuple[str, ...] | None = None
    javas: tuple[str, ...] | None = None
    driver: str | None = None
    architecture: str | None = None
    cdsw: bool = False
    spark: str | None = None


def read_facts(answer: Any) -> HostFacts:
    """The facts in what host_reader answered."""
    return read(HostFacts, answer)


def read(kind: type[T], answer: Any) -> T:
    """The answer of a host as this dataclass."""
    try:
        return typed.read(kind, answer)
    except typed.TypedError as error:
        raise FactsError(
            f"answered {error}. Repair what makes that answer; the host's Python must run nothing of its own at its start "
            "(sitecustomize, usercustomize)."
        ) from error


def hadoop_name(distribution: str, release: str | None) -> str | None:
    """`cdh-5.16.2` from `2.6.0-cdh5.16.2`, `cdp-7.1.9.0` from `3.1.1.7.1.9.0-387`, `apache-3.3.6` from `3.3.6`.

    MapR's jars do not name its release (`2.7.0-mapr-1808`): `mapr` is known alone.
    """
    if distribution == "apache":
        return f"apache-{release}" if release else None
    match = re.search(rf"{distribution}-?(\d+(?:\.\d+)+)", release or "")
    if match is None and distribution in ("cdh", "hdp"):  # Apache's release, then its own; CDP's parcel is called CDH
        match = re.match(r"\d+\.\d+\.\d+\.(\d+(?:\.\d+)+)-\d+$", release or "")
        distribution = {"cdh": "cdp"}.get(distribution, distribution)
    if match:
        return f"{distribution}-{match[1]}"
    return distribution if distribution == "mapr" else None
