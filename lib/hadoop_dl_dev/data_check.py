"""Compare compat/ with PyPI: what is newer there, what is missing here, and what is wrong.

scripts/stack data --check    needs the network; exit 1 if something is missing or wrong
scripts/stack data gpus ...   write the table of GPUs (gpu_table.py)
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from typing import Any

from ansible.module_utils.hadoop_dl_host import mirror_index
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from hadoop_dl.cli.arguments import Parser
from hadoop_dl.data.compat import Compat, Row, load
from hadoop_dl.resolver.versions import known, version
from hadoop_dl_dev import xid_module

Offers = Callable[[str], list[dict[str, Any]]]
Metadata = Callable[[Mapping[str, Any]], str]
# The lists of plain releases: package on PyPI, file and list here, and how to read the releases of a row.
RELEASES: tuple[tuple[str, str, str, Callable[[Row], Iterable[str]]], ...] = (
    ("keras", "keras", "releases", lambda row: [row["version"]]),
    ("tensorflow-io", "tensorflow_io", "releases", lambda row: [row["version"]] if row["on_pypi_linux"] else []),
    ("tensorflowonspark", "tensorflowonspark", "releases", lambda row: [row["version"]]),
    ("pyspark", "spark", "lines", lambda row: row["releases"]),
)
FIRST = {"keras": "2.0.8", "tensorflow": "1.0"}  # older ones are of no use here
WHEEL = re.compile(r"[\w.]+-(?P<version>[^-]+)-(?P<python>cp\d+)-(?P<abi>\w+)-(?P<platform>\S*linux\S*x86_64)\.whl")


@dataclass(frozen=True)
class Difference:
    """`kind` is newer (than all that is here), missing (here), or wrong (not what PyPI says)."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def published(offers: Iterable[Mapping[str, Any]]) -> set[str]:
    """The releases that have a file which pip installs, without pre-releases."""
    releases = set()
    for offer in offers:
        match = re.match(r".+?-(\d[^-]*?)(?:-.+\.whl|\.tar\.gz|\.zip)$", str(offer["name"]))
        if match and known(match[1]) and not version(match[1]).is_prerelease:
            releases.add(match[1])
    return releases


def release_differences(compat: Compat, offers: Offers) -> Iterator[Difference]:
    """Packages of which the data lists every release."""
    for project, subject, name, read in RELEASES:
        pypi_releases = {str(version(text)): text for text in published(offers(project)) if known(text)}
        own_releases = {str(version(text)): text for row in compat.rows(subject, name) for text in read(row)}
        newest = max(own_releases, key=version)
        for text in sorted(set(pypi_releases) - set(own_releases), key=version):
            if version(text) >= version(FIRST.get(project, "0")):
                kind = "newer" if version(text) > version(newest) else "missing"
                yield Difference(kind, f"{project} {text} is on PyPI and not in compat/{subject}.yml")
        for text in sorted(set(own_releases) - set(pypi_releases), key=version):
            yield Difference("wrong", f"{project} {text} is in compat/{subject}.yml and not on PyPI")


def wheel_differences(compat: Compat, offers: Offers) -> Iterator[Difference]:
    """TensorFlow's wheels for Linux on x86_64: releases, and their Pythons."""
    rows = {row["version"]: row for row in compat.rows("tensorflow", "releases")}
    newest = max(rows, key=version)
    for project in ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"):
        abis: dict[str, set[str]] = {}
        for offer in offers(project):
            match = WHEEL.fullmatch(offer["name"])
            if match and (
                offer.get("size") is None or offer["size"] > 1_000_000
            ):  # tensorflow-gpu 2.12 is an empty wheel
                abis.setdefault(match["version"], set()).add(match["abi"])
        own_abis = {
            text: set(wheel["abis"])
            for text, row in rows.items()
            for wheel in row["wheels"]
            if wheel["package"] == project
        }
        old = {text for text in abis if version(text).is_prerelease or version(text) < version(FIRST["tensorflow"])}
        for text in sorted({*abis, *own_abis} - old, key=version):
            if text not in own_abis:
                kind = "newer" if version(text) > version(newest) else "missing"
                yield Difference(kind, f"{project} {text} is on PyPI and not in compat/tensorflow.yml")
            elif text not in abis:
                yield Difference("wrong", f"{project} {text} is in compat/tensorflow.yml and has no wheel on PyPI")
            elif own_abis[text] != abis[text]:
                yield Difference(
                    "wrong",
                    f"{project} {text} has {sorted(abis[text])} on PyPI, and compat/tensorflow.yml {sorted(own_abis[text])}",
                )


def metadata_differences(compat: Compat, offers: Offers, metadata: Metadata) -> Iterator[Difference]:
    """The requirements that compat/tensorflow.yml copies from the METADATA of TensorFlow's wheels."""
    files: dict[tuple[str, str], Mapping[str, Any]] = {}
    for project in ("tensorflow", "tensorflow-gpu"):
        for offer in offers(project):
            match = WHEEL.fullmatch(offer["name"])
            if match:
                files.setdefault((project, match["version"]), offer)
    for row in compat.rows("tensorflow", "releases"):
        keys = (("tensorflow", row["version"]), ("tensorflow-gpu", row["version"]))
        wheel = next((files[key] for key in keys if key in files), None)
        if wheel is None or not (row.get("requires") or row.get("and_cuda")):
            continue
        own, extra = requirements(metadata(wheel))
        for texts, ranges in ((row.get("requires") or {}, own), (row.get("and_cuda") or {}, extra)):
            for name, text in texts.items():
                if not same_range(str(text), ranges.get(name, set())):
                    words = " | ".join(sorted(map(str, ranges.get(name, ())))) or "nothing"
                    yield Difference(
                        "wrong",
                        f"tensorflow {row['version']} requires {name} {words} on PyPI, and compat/tensorflow.yml has {text}",
                    )


def requirements(text: str) -> tuple[dict[str, set[SpecifierSet]], dict[str, set[SpecifierSet]]]:
    """The requirements of a wheel, and those that its extra and-cuda adds."""
    own: dict[str, set[SpecifierSet]] = {}
    extra: dict[str, set[SpecifierSet]] = {}
    for line in HeaderParser().parsestr(text).get_all("Requires-Dist") or []:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        target = extra if "and-cuda" in str(requirement.marker or "") else own
        target.setdefault(requirement.name.lower().replace("_", "-"), set()).add(requirement.specifier)
    return own, extra


def same_range(text: str, specifiers: set[SpecifierSet]) -> bool:
    """Whether the data's text is what the wheel says; the forms for several Pythons stand one after the other in it."""
    parts = {SpecifierSet(part.partition(";")[0].strip()) for part in text.split("|")}
    return parts <= specifiers


def nvidia_differences(compat: Compat, offers: Offers) -> Iterator[Difference]:
    """Releases that NVIDIA's wheels show: all of cuDNN, and the newest of CUDA and of the driver's branches."""
    newest = max((row["version"] for row in compat.rows("cuda", "cudnn")), key=version)
    for text in sorted(published(offers("nvidia-cudnn-cu12")), key=version):
        if version(text) > version(newest):
            yield Difference("newer", f"cuDNN {text} is on PyPI and not in compat/cuda.yml")
    newest = max((row["version"] for row in compat.rows("cuda", "toolkits")), key=version)
    lines = {".".join(text.split(".")[:2]): text for text in sorted(published(offers("cuda-toolkit")), key=version)}
    for line in sorted(lines, key=version):
        if version(line) > version(newest):
            yield Difference("newer", f"CUDA {line} is on PyPI (cuda-toolkit {lines[line]}) and not in compat/cuda.yml")
    known_branch = max(int(row["branch"]) for row in compat.rows("drivers", "branches"))
    branches = {version(text).minor: text for text in published(offers("nvidia-ml-py"))}  # 13.615.71 is of branch 615
    for branch in sorted(branches):
        if branch > known_branch:
            yield Difference(
                "newer",
                f"driver branch {branch} has a nvidia-ml-py on PyPI ({branches[branch]}) and is not in compat/drivers.yml",
            )


def differences(compat: Compat, offers: Offers, metadata: Metadata) -> list[Difference]:
    return [
        *release_differences(compat, offers),
        *wheel_differences(compat, offers),
        *metadata_differences(compat, offers, metadata),
        *nvidia_differences(compat, offers),
    ]


class RemoteFile(io.RawIOBase):
    """A file at an address, of which only the parts that are read are fetched: METADATA is at a wheel's end."""

    def __init__(self, url: str, size: int) -> None:
        self.url, self.size, self.place = url, size, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.place = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.place, io.SEEK_END: self.size}[whence]
        return self.place

    def tell(self) -> int:
        return self.place

    def readinto(self, buffer: Any) -> int:
        last = min(self.place + len(buffer), self.size) - 1
        if last < self.place:
            return 0
        with mirror_index.open_url(self.url, {"Range": f"bytes={self.place}-{last}"}) as answer:
            data: bytes = answer.read()
        buffer[: len(data)] = data
        self.place += len(data)
        return len(data)


def fetch_metadata(offer: Mapping[str, Any]) -> str:
    """METADATA of a wheel, without its hundreds of megabytes."""
    buffered = io.BufferedReader(RemoteFile(offer["url"], offer["size"]), 1 << 18)
    with zipfile.ZipFile(buffered) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return wheel.read(name).decode("utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0: nothing is missing or wrong; 1: something is."""
    words = list(arguments or ())
    if words[:1] == ["gpus"]:
        from hadoop_dl_dev import gpu_table

        return gpu_table.main(words[1:])
    if words == ["xids"]:
        return xid_module.main()
    from hadoop_dl.cli import mirror

    parser = Parser(
        prog="stack data",
        description="Compare compat/ with PyPI. `data gpus` writes the table of GPUs, `data xids` gpu-check's module of Xids.",
        allow_abbrev=False,
    )
    parser.add_argument("--check", action="store_true", required=True, help="print what is newer, missing or wrong")
    parser.parse_args(words)
    places = differences(load(), mirror.offers, fetch_metadata)
    for difference in places:
        print(difference)
    count = {kind: sum(difference.kind == kind for difference in places) for kind in ("newer", "missing", "wrong")}
    print(
        f"compat/ against PyPI: {count['newer']} newer there, {count['missing']} missing here, {count['wrong']} wrong."
    )
    return 1 if count["missing"] or count["wrong"] else 0
