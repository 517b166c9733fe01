"""A -dist.zip of bazel 4.2.3 that compiles without a network on Debian 12, made of Debian's source package bazel-bootstrap; and the packages for it.

bazel publishes its own -dist.zip on GitHub alone. It carries Java libraries and generated sources that Debian has as packages instead: this one
compiles against these, so it needs them on the node. demo/bazel/debian.sh names them to compile.sh, which is bazel's.
"""

import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

from hadoop_dl_dev.demo import artifacts, bazel_files, images, signed_packages
from hadoop_dl_dev.demo.images import CACHE
from hadoop_dl_dev.demo.shell import DemoError, print_path, run

VERSION = "4.2.3"
IMAGE = "debian12"
SETTINGS = bazel_files.SOURCE / "debian.sh"
PACKAGE = "bazel-bootstrap_4.2.3+ds"
# Of the source package in Debian 12, by the digests in its .dsc.
ARCHIVES = {
    f"{PACKAGE}.orig.tar.xz": "12da647c178ca4d5925a33c496cc3579db336be3aa6421a4319dc9238d40a1ff",
    f"{PACKAGE}-9.debian.tar.xz": "f0b1858512558752ee8c67262f68ea17f7b4000f34a9faab1acc697b9730e859",
}
# Debian's changes that its package needs: the result in another place, and a server that does not know its version.
LEFT_OUT = {"package_before_making_self-extracting.patch", "exclude_build_data.patch"}
# Build dependencies that make a Debian package and compile nothing.
PACKAGING = re.compile(r"debhelper|dh-|architecture-is|fonts-|jdupes|libjs-")


def source_archives() -> list[Path]:
    mirror, _ = images.find_mirror(images.definitions()["images"][IMAGE]["suite"], images.definitions()["mirrors"])
    pool = f"{mirror}/pool/main/b/bazel-bootstrap"
    sources = [artifacts.Artifact(name, sha256, f"{pool}/{name}") for name, sha256 in ARCHIVES.items()]
    return artifacts.fetch_all(sources, CACHE / "sources")


def ensure() -> Path:
    """The directory that a server of the scenario serves, made again when a fixture changed."""
    return signed_packages.made_once("bazel-dist", [SETTINGS, Path(__file__)], fill)


def fill(top: Path, target: Path) -> None:
    tree = top / "tree"
    for archive in source_archives():
        with tarfile.open(archive) as opened:
            opened.extractall(tree)  # noqa: S202  (its sha256 was just compared; Python 3.11.2 knows no filter)
    for name in (tree / "debian/patches/series").read_text(encoding="utf-8").split():
        if name not in LEFT_OUT:
            patch(tree, name)
    shutil.copyfile(SETTINGS, tree / SETTINGS.name)
    compile_sh, first = tree / "compile.sh", "source scripts/bootstrap/buildenv.sh\n"
    text = compile_sh.read_text(encoding="utf-8")
    if text.count(first) != 1:
        raise DemoError(f"compile.sh of bazel {VERSION} must have one line {first!r}, but has {text.count(first)}.")
    compile_sh.write_text(text.replace(first, f"source ./{SETTINGS.name}\n{first}"), encoding="utf-8")
    shutil.make_archive(str(target / f"bazel-{VERSION}-dist"), "zip", tree)


def patch(tree: Path, name: str) -> None:
    # git looks for a repository around the tree, and would apply the change there.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    run("git", "-C", str(tree), "apply", "--whitespace=nowarn", f"debian/patches/{name}", env=environment)


def packages() -> Path:
    """Debian's packages of the compilers and of the libraries that bazel is compiled against."""
    with tarfile.open(source_archives()[-1]) as opened:
        control = opened.extractfile("debian/control")
        text = control.read().decode("utf-8") if control else ""
    listed = re.search(r"^Build-Depends:(.*?)^\S", text, re.MULTILINE | re.DOTALL)
    if listed is None:
        raise DemoError(f"debian/control of {PACKAGE} must list its build dependencies, but does not.")
    names = [word for word in re.sub(r"\(.*?\)|,", "", listed[1]).split() if not PACKAGING.match(word)]
    return bazel_files.compiler(IMAGE, ("g++", *names))


def make(arguments: list[str]) -> Path:
    """What a site serves; with `packages` those for the node."""
    return packages() if arguments == ["packages"] else ensure()


if __name__ == "__main__":
    sys.exit(print_path("bazel_dist", lambda: make(sys.argv[1:])))
