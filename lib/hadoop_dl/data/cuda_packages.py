"""CUDA, cuDNN and NCCL on a host: names of their packages, places of their archives, what is removed, what is recorded.

Pure functions of what a role gives to roles/_cuda_package and of the role's record on the host; the filters of
plugins/filter/cuda_packages.py. A record keeps its form: hosts have records of earlier versions.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

Json = dict[str, Any]
ETC = "/opt/deeplearning/etc"
DOWNLOADS = "/opt/deeplearning/downloads"
PROFILE = "/etc/profile.d/deeplearning-cuda.sh"


@dataclass(frozen=True)
class Package:
    """One version for one toolkit; what its archive contains is in a directory of its own beside that toolkit."""

    version: str
    cuda: str
    name: ClassVar[str]

    @property
    def place(self) -> str:
        return f"/usr/local/cuda-{self.cuda}/{self.name}-{self.version}"

    @property
    def linker_file(self) -> str:
        return f"/etc/ld.so.conf.d/deeplearning-{self.place.rpartition('/')[2]}.conf"

    @property
    def linker_text(self) -> str:
        return f"{self.place}/lib64\n"

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]

    @property
    def owned_paths(self) -> tuple[str, ...]:
        """What is removed beside the packages."""
        return (self.place, self.linker_file)

    def packages(self) -> dict[str, str]:
        """The versions of its packages, by name; the library's is the first."""
        raise NotImplementedError


class Cudnn(Package):
    """libcudnn8-8.9.7.29-1.cuda12.2; from 9 on libcudnn9-cuda-12-9.1.0.70, and the headers are a package of their own."""

    name = "cudnn"

    def packages(self) -> dict[str, str]:
        library = f"libcudnn{self.major}"
        if self.major.isdigit() and int(self.major) < 9:
            return dict.fromkeys((library, f"{library}-devel"), f"{self.version}-1.cuda{self.cuda}")
        toolkit = f"-cuda-{self.cuda.partition('.')[0]}"
        return {f"{library}{part}{toolkit}": self.version for part in ("", "-devel", "-headers")}


class Nccl(Package):
    """libnccl-2.18.5-1+cuda12.2."""

    name = "nccl"

    def packages(self) -> dict[str, str]:
        return dict.fromkeys(("libnccl", "libnccl-devel"), f"{self.version}-1+cuda{self.cuda}")

    @property
    def major(self) -> str:
        return "2"  # of every libnccl.so


@dataclass(frozen=True)
class Toolkit(Package):
    """cuda-toolkit-12-2: an exact version of it, or the newest."""

    exact: str = field(default="", compare=False)
    name = "cuda"

    @property
    def place(self) -> str:
        return f"/usr/local/cuda-{self.cuda}"

    @property
    def linker_text(self) -> str:
        """TensorFlow's profiler opens CUPTI, which is in a directory of its own up to CUDA 10, and crashes without it."""
        profiler = f"{self.place}/extras/CUPTI/lib64\n" if int(self.major) < 11 else ""
        return f"{self.place}/lib64\n{profiler}"

    @property
    def owned_paths(self) -> tuple[str, ...]:
        return (self.linker_file,)  # packages or NVIDIA's installer own the toolkit's directory

    def packages(self) -> dict[str, str]:
        return {f"cuda-toolkit-{self.version.replace('.', '-')}": self.exact}


def read(name: str, listed: Sequence[Any], exact: Mapping[str, Any]) -> list[Package]:
    """The entries of an input or of a record: toolkits, or {version, cuda}. A version that YAML reads as a number is text here."""
    if name == "cuda":
        return [Toolkit(str(version), str(version), str(exact.get(str(version), ""))) for version in listed]
    kind = {"cudnn": Cudnn, "nccl": Nccl}[name]
    return [kind(str(entry["version"]), str(entry["cuda"])) for entry in listed]


def requested(inputs: Json) -> list[Package]:
    """What the host gets."""
    return read(inputs["name"], inputs["versions"], inputs.get("exact", {})) if inputs["state"] == "present" else []


def archive_of(version: str, cuda: str, archives: Mapping[str, Json], known_archives: Mapping[str, Json]) -> Json:
    """An archive of the site, completed by what is known of NVIDIA's for this CUDA, or for all of its major number."""
    default = known_archives.get(f"{version}/{cuda}") or known_archives.get(f"{version}/{cuda.partition('.')[0]}") or {}
    return {**default, **archives.get(version, {})}


def archive(package: Package, inputs: Json) -> Json:
    return archive_of(package.version, package.cuda, inputs.get("archives", {}), inputs.get("known_archives", {}))


def work(inputs: Json, slurped: Mapping[str, Any]) -> Json:
    """What a role does on a host. inputs: what it gives to roles/_cuda_package. slurped: its record, if there is one."""
    name, source = inputs["name"], inputs["source"]
    record: Json = json.loads(base64.b64decode(slurped["content"])) if slurped.get("content") else {}
    requested_packages, same_source = requested(inputs), record.get(f"{name}_source", source) == source
    previous = read(name, record.get("cuda" if name == "cuda" else f"{name}_items") or [], {})
    # An archive and packages of one version are not the same; a toolkit does not change its source (see `other_source`).
    kept_packages = requested_packages if same_source or name == "cuda" else []
    keeps_all = inputs["state"] == "present" and not inputs.get("purge", True)
    leaving = [] if keeps_all else [package for package in previous if package not in kept_packages]
    # Another version replaces the package of its name in one transaction.
    replaced = {next(iter(package.packages())) for package in requested_packages} if source == "package" else set()
    stays = {path for package in requested_packages for path in package.owned_paths} if source == "tarball" else set()
    return {
        "recorded": bool(record),
        "requested": [to_install(package, inputs) for package in requested_packages],
        "leaving": [
            {
                "title": f"{inputs['title']} {package.version}",
                "version": package.version,
                "packages": []
                if record.get(f"{name}_source") != "package" or replaced & package.packages().keys()
                else list(package.packages()),
                "paths": [path for path in package.owned_paths if path not in stays],
                "directory": f"/usr/local/cuda-{package.cuda}",
            }
            for package in leaving
        ],
        "nothing_left": not requested_packages and not keeps_all,
        "other_source": []
        if same_source
        else [package.version for package in requested_packages if package in previous],
        "record": to_record(inputs, requested_packages, record),
        "refusals": refusals(inputs, requested_packages),
    }


def to_install(package: Package, inputs: Json) -> Json:
    title = f"{inputs['title']} {package.version}"
    return {
        "version": package.version,
        "title": title if package.name == "cuda" else f"{title} for CUDA {package.cuda}",
        "packages": [{"name": name, "version": version} for name, version in package.packages().items()],
        "downgrade": all(package.packages().values()),  # one exact version may be older than the installed one
        "place": package.place,
        "linker_file": package.linker_file,
        "linker_text": package.linker_text,
        "archive": archive(package, inputs),
        "download": f"{DOWNLOADS}/{package.name}-{package.version}.archive",
        "library": f"lib*/lib{package.name}.so.{'.'.join(package.version.split('.')[:3])}",
    }


def record_file(name: str) -> str:
    """What gpu-check expects, and by which a later run knows what this one installed."""
    return f"{ETC}/gpu-check-{name}.json"


def to_record(inputs: Json, packages: Sequence[Package], record: Json) -> Json:
    name, source = inputs["name"], inputs["source"]
    if name == "cuda":
        return {
            "cuda": [package.version for package in packages],
            "cuda_default": inputs["default"] or (packages[-1].version if packages else ""),
            "cuda_source": source,
            # What /usr/local/cuda pointed to before this role ran.
            "cuda_link_before": record.get("cuda_link_before", "") if record else inputs["link"],
        }
    return {
        name: {package.version: package.place if source == "tarball" else "/usr" for package in packages},
        f"{name}_source": source,
        f"{name}_items": [{"version": package.version, "cuda": package.cuda} for package in packages],
    }


def refusals(inputs: Json, packages: Sequence[Package]) -> list[str]:
    """Why these versions of a library cannot be installed together, or from their archives."""
    if inputs["name"] == "cuda":
        return []
    title, variable = inputs["title"], f"{inputs['name']}_versions"
    versions, majors = [package.version for package in packages], [package.major for package in packages]
    problems = []
    if len(set(versions)) < len(versions):
        problems.append(
            f"The linker finds one {title} of a version, but {variable} has one twice: {json.dumps(inputs['versions'])}. "
            "Leave it for one toolkit and remove the other entry."
        )
    elif len(set(majors)) < len(majors):
        problems.append(
            f"A host has one {title} {inputs['one_each']}, because the linker takes the first that it finds, but {variable} has "
            f"{', '.join(versions)}. Leave the newest that every stack of the host supports."
        )
    if inputs["source"] == "tarball":
        problems += [refusal for package in packages if (refusal := archive_refusal(package, inputs))]
    return problems


def archive_refusal(package: Package, inputs: Json) -> str:
    """Why its archive cannot be fetched; empty if file and sha256 are known."""
    entry = archive(package, inputs)
    sha256 = str(entry.get("sha256", ""))
    if entry.get("file") and len(sha256) == 64 and set(sha256) <= set("0123456789abcdef"):
        return ""
    variable, known_names = f"{inputs['name']}_tarballs", ", ".join(inputs.get("known_archives", {}))
    missing = f"neither {variable} nor this role has them" if known_names else f"{variable} has none"
    return (
        f"The archive of {inputs['title']} {package.version} for CUDA {package.cuda} requires a file and its sha256, but {missing} for "
        f"{package.version}{f'; this role has {known_names}' if known_names else ''}. Get it from {inputs['archive_page']}, put it on the mirror or "
        f'the controller, and set {variable}: {{"{package.version}": {{file: PATH, sha256: …}}}}.'
    )


def paths(inputs: Json) -> list[str]:
    """The files by which a later run sees that this work is intact. A directory stands for all of its files."""
    name, requested_packages = inputs["name"], requested(inputs)
    if not requested_packages:
        return []
    files = [record_file(name)]
    if name == "cuda":
        files += ["/usr/local/cuda", *([PROFILE] if inputs["profile"] else [])]
        files += [package.linker_file for package in requested_packages] + [
            f"{package.place}/bin/nvcc" for package in requested_packages
        ]
        if inputs["source"] == "runfile":  # the mark, and the record of every file: plugins/modules/toolkit_files.py
            files += [
                f"{package.place}/.deeplearning-runfile{end}" for package in requested_packages for end in ("", ".json")
            ]
    elif inputs["source"] == "tarball":
        files += [package.place for package in requested_packages] + [
            package.linker_file for package in requested_packages
        ]
    return files
