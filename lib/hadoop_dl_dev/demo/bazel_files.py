"""What the scenario bazel installs: real executables from npm, a signed repository of packages with them, and a stand-in of a -dist.zip.

Also the compiler that bazel builds with: Debian's packages for a node's image, fetched once.
"""

import os
import re
import sys
import tarfile
import zipfile
from pathlib import Path

from hadoop_dl_dev.demo import artifacts, debs, signed_packages
from hadoop_dl_dev.demo.images import CACHE, DATA
from hadoop_dl_dev.demo.shell import DemoError, print_path

SOURCE = DATA / "bazel"
PACKAGE = "bazel-linux_x64"
# Versions of npm's package @bazel/bazel-linux_x64 with the sha256 of its archive.
VERSIONS = {
    "0.26.1": "178e02ced40dce5d3957a71d5ce8b19b2eb436ce53a2eb037700639dc32bc5e5",
    "0.28.1": "3d79f715bb52566768487c2ebea5321be1cd962f3edf9af3379d2425d5ac3ccb",
    "2.0.0": "527052dbb2d3540474c6d03e090114ffca76e6f57a0cfbb244be2d5e174845fe",
    "2.1.0": "14cb6958e46fd5130720c26ae0b7c98e181dcb8bd111b0bfb23c7b4744e3609a",
}
PACKAGED = ("0.26.1", "0.28.1")  # those that the signed repository has
BOOTSTRAPPED = "0.26.1"
COMPILER = ("g++", "zip", "unzip")
# What a build of TensorFlow takes, by image. bazel-bootstrap is bazel 4.2.3, with a compiler.
BUILDING = {
    "el7": (*COMPILER, "git", "libpython2.7-dev"),
    "debian12": ("bazel-bootstrap", "git", "libpython3.11-dev"),
}


def registry() -> str:
    """npm's registry, as npm itself finds it, where it is configured for this user; npm need not be installed."""
    for name in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/")
    settings = Path(os.environ.get("NPM_CONFIG_USERCONFIG") or Path.home() / ".npmrc")
    text = settings.read_text(encoding="utf-8") if settings.exists() else ""
    configured = re.search(r"^\s*registry\s*=\s*(\S+)", text, re.MULTILINE)
    return (configured[1] if configured else "https://registry.npmjs.org").rstrip("/")


def archives() -> list[artifacts.Artifact]:
    names = {version: f"{PACKAGE}-{version}.tgz" for version in VERSIONS}
    return [
        artifacts.Artifact(names[version], sha256, f"{registry()}/@bazel/{PACKAGE}/-/{names[version]}")
        for version, sha256 in VERSIONS.items()
    ]


def ensure() -> Path:
    """The directory that a server of the scenario serves, made again when a fixture changed."""
    return signed_packages.made_once("bazel", [*SOURCE.iterdir(), Path(__file__)], fill)


def fill(top: Path, target: Path) -> None:
    fetched = artifacts.fetch_all(archives(), CACHE / "npm")
    programs = {version: unpack(version, path, target) for version, path in zip(VERSIONS, fetched, strict=True)}
    make_dist(programs[BOOTSTRAPPED], target)
    make_repository({version: programs[version] for version in PACKAGED}, top, target / "rpm")


def unpack(version: str, archive: Path, target: Path) -> Path:
    """The executable, under the name that bazel's own releases give it."""
    name = f"bazel-{version}-linux-x86_64"
    with tarfile.open(archive) as opened:
        content = opened.extractfile(f"package/{name}")
        if content is None:
            raise DemoError(f"{archive} must have the file package/{name} but does not. Remove it and repeat.")
        (target / name).write_bytes(content.read())
    (target / name).chmod(0o755)
    return target / name


def make_dist(program: Path, target: Path) -> None:
    with zipfile.ZipFile(target / f"bazel-{BOOTSTRAPPED}-dist.zip", "w") as archive:
        archive.write(SOURCE / "compile.sh", "compile.sh")
        archive.write(program, "fixture-bazel")


def make_repository(programs: dict[str, Path], directory: Path, repository: Path) -> None:
    repository.mkdir(mode=0o755)
    for version, program in programs.items():
        macros = {"bazel_version": version, "bazel_program": str(program)}
        signed_packages.build(SOURCE / "bazel.spec", directory / f"build-{version}", repository, macros)
    signed_packages.publish(repository)


def compiler(image: str, packages: tuple[str, ...] = COMPILER) -> Path:
    """Debian's packages of a C++ compiler for this image."""
    return debs.fetch("compiler", image, packages)


def make(arguments: list[str]) -> Path:
    """The files of the scenarios; with `compiler IMAGE` or `building IMAGE` the packages for a node of this image."""
    if not arguments:
        return ensure()
    kind, image = arguments[0], arguments[1]
    if kind == "compiler":
        return compiler(image)
    if image not in BUILDING:
        raise DemoError(f"an image is required, one of {', '.join(BUILDING)}, but it is {image}.")
    return compiler(image, BUILDING[image])


if __name__ == "__main__":
    sys.exit(print_path("bazel_files", lambda: make(sys.argv[1:]), "name the image of the compiler"))
