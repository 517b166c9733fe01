"""All TensorFlow builds in the data: release x package x wheel or build from source x Python x CUDA, newest first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from hadoop_dl.data.compat import Compat, Row
from hadoop_dl.resolver.versions import cc, newest, ranges, version

WINDOW = 2  # lines before and after that count as neighbours


@lru_cache(maxsize=256)
def python_of(abi: str) -> str:
    """`3.10` from cp310, `2.7` from cp27mu."""
    digits = re.sub(r"\D", "", abi)
    return f"{digits[0]}.{digits[1:]}"


@dataclass(frozen=True, eq=False)
class TensorflowBuild:
    """One TensorFlow: a wheel on PyPI, or what a build from source makes. All other versions of a stack depend on it."""

    index: int
    version: str
    line: Row
    release: Row
    package: str
    source: str
    python: str
    cuda: str | None
    tested: bool  # with this CUDA, or without CUDA

    @cached_property
    def name(self) -> str:
        return self.line["line"]  # type: ignore[no-any-return]

    @property
    def gpu(self) -> bool:
        return self.cuda is not None

    @property
    def from_source(self) -> bool:
        return self.source == "built"

    @cached_property
    def glibc_min(self) -> str | None:
        """The glibc that the wheel requires; a build from source requires that of its build host."""
        if self.from_source:
            return None
        wheels = [wheel for wheel in self.release["wheels"] if wheel["package"] == self.package]
        match = re.search(r"manylinux_2_(\d+)", wheels[0]["platform_tag"])
        tagged = f"2.{match[1]}" if match else "2.0"
        return max(self.line["wheel_min_glibc"], tagged, self.abi_glibc or "2.0", key=version)  # type: ignore[no-any-return]

    @cached_property
    def abi_glibc(self) -> str | None:
        """The glibc that the wheel for this Python requires, if those for other Pythons run with an older one."""
        glibcs = [wheel.get("abi_glibc", {}) for wheel in self.release["wheels"] if wheel["package"] == self.package]
        return next((glibc for abi, glibc in glibcs[0].items() if python_of(abi) == self.python), None)

    @property
    def nccl(self) -> str | None:
        """The version that the and-cuda extra pins, or the lowest that it admits."""
        text = self.line["nccl"] if self.gpu else None
        return re.sub(r"^[<>=~]+([\d.]+).*$", r"\1", text) if text else None

    @property
    def pip_cuda(self) -> str | None:
        """The wheel's requirement on NVIDIA's CUDA wheels, if it has an extra for them that can be installed on this Python."""
        if self.from_source or self.python not in self.release.get("and_cuda_pythons", [self.python]):
            return None
        return (self.release.get("and_cuda") or {}).get("nvidia-cuda-runtime-cu12")


class BuildCatalog:
    """All builds in their order of preference, and the rows that messages about them quote."""

    def __init__(self, compat: Compat) -> None:
        self.compat = compat
        self.lines = sorted(compat.rows("tensorflow", "lines"), key=lambda row: version(row["line"]))
        self.line_names = [row["line"] for row in self.lines]
        self.toolkits = {row["version"]: row for row in compat.rows("cuda", "toolkits")}
        self.builds = list(self._builds())

    def _builds(self) -> Iterator[TensorflowBuild]:
        lines = {row["line"]: row for row in self.lines}
        releases = sorted(
            self.compat.rows("tensorflow", "releases"), key=lambda row: version(row["version"]), reverse=True
        )
        index = 0
        for release in releases:
            line = lines[release["line"]]
            for package, source, python, cuda, tested in self._ways(line, release):
                yield TensorflowBuild(index, release["version"], line, release, package, source, python, cuda, tested)
                index += 1

    def _ways(self, line: Row, release: Row) -> Iterator[tuple[str, str, str, str | None, bool]]:
        order = {"tensorflow": 0, "tensorflow-gpu": 1, "tensorflow-cpu": 2}
        for wheel in sorted(release["wheels"], key=lambda row: (row["variant"] != "gpu", order[row["package"]])):
            for python in newest(python_of(abi) for abi in wheel["abis"]):
                yield wheel["package"], "prebuilt", python, line["cuda"] if wheel["variant"] == "gpu" else None, True
        pythons = newest({python_of(abi) for wheel in release["wheels"] for abi in wheel["abis"]})
        other_cudas = [
            row["cuda"] for row in self.compat.rows("tensorflow_build", "other_cuda") if row["line"] == line["line"]
        ]
        for cuda in [line["cuda"], *other_cudas]:
            for python in pythons:
                yield "tensorflow", "built", python, cuda, cuda == line["cuda"]
        for python in pythons:
            yield "tensorflow", "built", python, None, True

    def neighbours(self, name: str) -> list[Row]:
        place = self.line_names.index(name)
        return self.lines[max(0, place - WINDOW) : place + WINDOW + 1]

    def other_cuda(self, build: TensorflowBuild) -> Row | None:
        """The row about a build of this line with a CUDA that is not the tested one; None for the tested one."""
        rows = self.compat.rows("tensorflow_build", "other_cuda")
        return (
            None
            if build.tested
            else next(row for row in rows if (row["line"], row["cuda"]) == (build.name, build.cuda))
        )

    @cached_property
    def pythons(self) -> list[str]:
        return sorted({build.python for build in self.builds}, key=version)

    @cached_property
    def cudas(self) -> list[str]:
        return sorted({build.cuda for build in self.builds if build.cuda}, key=version)

    def toolkit_max_cc(self, build: TensorflowBuild) -> tuple[int, int]:
        """The newest capability that the CUDA libraries beside this wheel have kernels for."""
        own = cc(self.toolkits[build.cuda or ""]["nvcc_max_cc"])
        limits = build.pip_cuda
        if not limits or limits.startswith("=="):
            return own
        admitted = [row for text, row in self.toolkits.items() if ranges(limits).contains(text) or text == build.cuda]
        return max(cc(row["nvcc_max_cc"]) for row in admitted)
