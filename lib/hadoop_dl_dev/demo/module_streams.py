"""NVIDIA's repository as dnf sees it without module_hotfixes: each branch of the driver has module streams, and the active one hides all others.

The rules are those of genmodules.py (https://github.com/NVIDIA/cuda-repo-management, commit 2944b7a): a stream has every version of its branch's packages,
but of the module that dkms builds the newest alone; latest-dkms, the default, is the newest branch.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hadoop_dl_dev.demo.shell import run

OF_BRANCH = (
    "cuda-drivers",
    "nvidia-driver",
    "nvidia-driver-NVML",
    "nvidia-driver-NvFBCOpenGL",
    "nvidia-driver-cuda",
    "nvidia-driver-cuda-libs",
    "nvidia-driver-devel",
    "nvidia-driver-libs",
    "nvidia-fabric-manager",
    "nvidia-kmod-common",
    "nvidia-modprobe",
    "nvidia-persistenced",
)
LATEST = ("dnf-plugin-nvidia",)
MODULES = {"": (), "-dkms": ("kmod-nvidia-latest-dkms",), "-open": ("kmod-nvidia-open-dkms",)}


class Package(NamedTuple):
    version: tuple[int, ...]
    name: str
    nevra: str


def packages(directory: Path) -> list[Package]:
    """Those in the directory of which streams speak."""
    tags = "%{VERSION} %{NAME} %{NAME}-%{EPOCHNUM}:%{VERSION}-%{RELEASE}.%{ARCH}\n"
    output = run("rpm", "-qp", "--nosignature", "--qf", tags, *sorted(map(str, directory.glob("*.rpm")))).stdout
    rows = [line.split() for line in output.splitlines()]
    names = {*OF_BRANCH, *LATEST, *MODULES["-dkms"], *MODULES["-open"]}
    return [Package(tuple(map(int, row[0].split("."))), row[1], row[2]) for row in rows if row[1] in names]


def newest(packages: Iterable[Package], names: Sequence[str]) -> list[str]:
    return [rpm.nevra for rpm in {rpm.name: rpm for rpm in sorted(packages) if rpm.name in names}.values()]


def stream(name: str, branch: int, kind: str, packages: Sequence[Package]) -> dict[str, Any]:
    """The description of one stream. https://github.com/fedora-modularity/libmodulemd, yaml_specs/modulemd_stream_v2.yaml"""
    own = [rpm for rpm in packages if rpm.version[0] == branch]
    rpms = [rpm.nevra for rpm in own if rpm.name in OF_BRANCH]
    content = {
        "name": "nvidia-driver",
        "stream": name,
        "version": 1,
        "context": "a" * 10,
        "arch": "x86_64",
        "summary": f"Nvidia driver for {name} branch",
        "description": "Stand-ins",
        "license": {"module": ["MIT"]},
        "artifacts": {"rpms": rpms + newest(packages, LATEST) + newest(own, MODULES[kind])},
    }
    return {"document": "modulemd", "version": 2, "data": content}


def documents(packages: Sequence[Package]) -> list[dict[str, Any]]:
    branches = sorted({rpm.version[0] for rpm in packages if rpm.name == "nvidia-driver"})
    specs = [(f"{branch}{kind}", branch, kind) for branch in branches for kind in MODULES]
    specs += [
        ("latest", branches[-1], ""),
        ("latest-dkms", branches[-1], "-dkms"),
        ("open-dkms", branches[-1], "-open"),
    ]
    default = {"module": "nvidia-driver", "stream": "latest-dkms"}
    return [
        *(stream(*row, packages) for row in specs),
        {"document": "modulemd-defaults", "version": 1, "data": default},
    ]


def add(repository: Path) -> None:
    """Add the streams of its packages to the index of a directory."""
    listed = repository / "modules.yaml"
    listed.write_text(yaml.safe_dump_all(documents(packages(repository)), explicit_end=True), encoding="utf-8")
    run("modifyrepo_c", "--mdtype=modules", str(listed), str(repository / "repodata"))
    listed.unlink()
