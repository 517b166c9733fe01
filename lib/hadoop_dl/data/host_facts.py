"""What a host answered, typed once: plugins/module_utils/host_reader.py reads it there, read_facts makes it HostFacts here.

A new fact is a key in the reader's answer and a field of the same name here (tests/unit/test_host_facts.py compares the two).
None means that the host could not tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hadoop_dl.data import json_text, typed


class FactsError(ValueError):
    """An answer that cannot be used; the message names the fact."""


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU on the PCI bus. compute_cap: as nvidia-smi reports it, for devices that may be in no table."""

    vendor: str
    device: str
    address: str = ""
    compute_cap: str | None = None

    @property
    def pci_id(self) -> str:
        return f"{self.vendor}:{self.device}"

    @property
    def name(self) -> str:
        """The key under which its data is looked up: the PCI id, with the compute capability where that is known."""
        return f"{self.pci_id} cc={self.compute_cap}" if self.compute_cap else self.pci_id


@dataclass(frozen=True)
class OperatingSystem:
    id: str | None
    name: str | None
    version: str | None
    major: str | None
    family: str | None
    short: str | None


@dataclass(frozen=True)
class Cpu:
    features: tuple[str, ...] | None


@dataclass(frozen=True)
class Kernel:
    """`headers`: kernels whose headers are installed; `modules`: those that matter here, loaded now."""

    running: str | None
    default_boot: str | None
    installed: tuple[str, ...]
    headers: tuple[str, ...]
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Nvidia:
    """`driver` runs in the kernel now, `installed` is that of the library; `listed` are nvidia-smi's names without a PCI bus."""

    gpus: tuple[Gpu, ...]
    listed: tuple[str, ...] | None
    nvswitches: int
    driver: str | None
    module: str | None
    installed: str | None
    module_kernels: tuple[str, ...]

    @property
    def count(self) -> int:
        """The host's GPUs: from the PCI bus, or, where a container shows none, from nvidia-smi."""
        return len(self.gpus or self.listed or ())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its models, each once."""
        return tuple(sorted({gpu.name for gpu in self.gpus} or set(self.listed or ())))


@dataclass(frozen=True)
class Cuda:
    """The versions on the host, whoever installed them; toolkits with their directories."""

    toolkits: Mapping[str, str]
    cudnn: tuple[str, ...]
    nccl: tuple[str, ...]


@dataclass(frozen=True)
class Library:
    """A cuDNN or NCCL as an entry of its role's input."""

    version: str
    cuda: str


@dataclass(frozen=True)
class Managed:
    """What this project's roles installed of CUDA, cuDNN and NCCL, by their own records."""

    cuda: tuple[str, ...]
    cudnn: tuple[str, ...]
    nccl: tuple[str, ...]
    cudnn_items: tuple[Library, ...]
    nccl_items: tuple[Library, ...]


@dataclass(frozen=True)
class Java:
    home: str
    version: str | None
    major: str | None


@dataclass(frozen=True)
class Hadoop:
    distribution: str
    home: str
    version: str | None
    conf_dir: str | None


@dataclass(frozen=True)
class Workbench:
    """Cloudera Data Science Workbench (CDSW); `drivers`: directories of nvidia-docker 1; `settings`: those of cdsw.conf that matter."""

    kind: str
    release: str | None
    settings: Mapping[str, str]
    master: bool
    drivers: tuple[str, ...]
    sessions: int | None
    images: tuple[str, ...] | None
    mig: bool | None


@dataclass(frozen=True)
class Containers:
    """Docker, and what of NVIDIA's is in it."""

    runtimes: tuple[str, ...]
    daemon_json_problem: str | None
    packages: Mapping[str, str]


@dataclass(frozen=True)
class Environment:
    """An installed environment; `added`: files that appeared in it after it was sealed."""

    problem: str | None
    added: tuple[str, ...] = ()


@dataclass(frozen=True)
class Receipt:
    digest: str | None
    problem: str | None


@dataclass(frozen=True)
class DeepLearning:
    """What this project installed: the active environment, all of them, and the receipts of the roles. `notice`: CURRENT.txt is there."""

    current: str | None
    environments: Mapping[str, Environment]
    receipts: Mapping[str, Receipt]
    notice: bool = True


@dataclass(frozen=True)
class HostFacts:
    """Everything about a host that decisions need."""

    os: OperatingSystem
    architecture: str
    cpu: Cpu
    glibc: str | None
    kernel: Kernel
    secure_boot: bool | None
    nvidia: Nvidia
    cuda: Cuda
    managed: Managed
    pythons: Mapping[str, str]
    java: tuple[Java, ...]
    hadoop: Hadoop | None
    cdsw: bool
    disk_free_mb: Mapping[str, int]
    unanswered: tuple[str, ...]
    deeplearning: DeepLearning
    libstdcxx: str | None = None
    workbench: Workbench | None = None
    containers: Containers | None = None

    @cached_property
    def profile(self) -> HostProfile:
        """What decides which versions fit the host; hosts with equal ones get the same verdicts."""
        version = self.os.version
        hadoop = self.hadoop
        majors = {java.major for java in self.java if java.major}
        return HostProfile(
            os=f"{self.os.id}-{version}" if self.os.id and version else self.os.short,
            gpus=self.nvidia.names,
            hadoop=hadoop_name(hadoop.distribution, hadoop.version) if hadoop else None,
            glibc=self.glibc,
            cpu_features=self.cpu.features,
            pythons=tuple(sorted(self.pythons, key=_numbers)),
            javas=tuple(sorted(majors, key=_numbers)),
            driver=self.nvidia.driver,
            driver_module=self.nvidia.module,
            architecture=self.architecture,
            cdsw=self.cdsw,
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
class Answer:
    """The result of one check of gpu-check."""

    name: str
    outcome: str
    message: str


@dataclass(frozen=True)
class Health:
    """gpu-check's results, or why there are none; both None on a host without GPUs."""

    results: tuple[Answer, ...] | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Times:
    """When something was changed on the host and when it was verified, in seconds."""

    changed: int | None = None
    verified: int | None = None


@dataclass(frozen=True)
class HostProfile:
    """The facts that decide which versions fit. None means not known; an empty tuple means known to be none."""

    os: str | None = None
    gpus: tuple[str, ...] | None = None
    hadoop: str | None = None
    glibc: str | None = None
    cpu_features: tuple[str, ...] | None = None
    pythons: tuple[str, ...] | None = None
    javas: tuple[str, ...] | None = None
    driver: str | None = None
    driver_module: str | None = None
    architecture: str | None = None
    cdsw: bool = False


def read_facts(answer: Any) -> HostFacts:
    """The facts in what host_reader answered."""
    try:
        return typed.read(HostFacts, answer)
    except typed.TypedError as error:
        raise FactsError(
            f"the host's answer is incomplete or malformed: {error}. Run again; if it remains, check that the host's Python "
            "runs nothing of its own at its start (sitecustomize, usercustomize)."
        ) from error


def hadoop_name(distribution: str, release: str | None) -> str | None:
    """`cdh-5.16.2` from `2.6.0-cdh5.16.2`, `apache-3.3.6` from `3.3.6`."""
    if distribution == "apache":
        return f"apache-{release}" if release else None
    match = re.search(rf"{distribution}-?(\d+(?:\.\d+)+)", release or "")
    return f"{distribution}-{match[1]}" if match else None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]
