"""What the scenario container_runtime installs: Debian's Docker for a node, and a signed repository with fixtures of NVIDIA's runtimes.

`python -m hadoop_dl_dev.demo.container_packages` prints the repository's directory; `… docker el9` that of Docker's packages.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from hadoop_dl_dev.demo import debs
from hadoop_dl_dev.demo.fixtures import signing_key
from hadoop_dl_dev.demo.gpu_packages import sign, write_keys
from hadoop_dl_dev.demo.images import CACHE, DATA, digest
from hadoop_dl_dev.demo.shell import only_one, print_path, run

SOURCE = DATA / "containers"
DOCKER = ("docker.io",)
TOOLKIT = "1.17.8"


def ensure(cache: Path = CACHE) -> Path:
    """The repository, made again when a fixture changed."""
    files = sorted([*SOURCE.iterdir(), Path(__file__)])
    wanted = digest(*(path.name.encode() + path.read_bytes() for path in files))
    target = cache / "container-packages"
    with only_one(cache / "container-packages.lock"):
        stamp = target / ".digest"
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return target
        with tempfile.TemporaryDirectory(dir=cache) as directory:
            made = Path(directory) / "made"
            made.mkdir(mode=0o755)
            for spec in sorted(SOURCE.glob("*.spec")):
                build(spec, Path(directory) / spec.stem, made)
            home = signing_key(cache / "gpg")
            sign(made, home)
            run("createrepo_c", "--quiet", str(made))
            write_keys(made, home)
            (made / ".digest").write_text(wanted, encoding="utf-8")
            shutil.rmtree(target, ignore_errors=True)
            made.rename(target)
    return target


def build(spec: Path, top: Path, made: Path) -> None:
    options = {
        "files_dir": str(SOURCE),
        "toolkit": TOOLKIT,
        "_topdir": str(top),
        "_rpmdir": str(made),
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "_binary_payload": "w1.gzdio",  # EL7's rpm reads gzip
        "__os_install_post": "%{nil}",
        "debug_package": "%{nil}",
    }
    defines = [word for key, value in options.items() for word in ("--define", f"{key} {value}")]
    run("rpmbuild", "-bb", "--quiet", "--target", "x86_64", *defines, str(spec))


def make(arguments: list[str]) -> Path:
    return debs.fetch("docker", arguments[1], DOCKER) if arguments[:1] == ["docker"] else ensure()


if __name__ == "__main__":
    sys.exit(print_path("container_packages", lambda: make(sys.argv[1:]), "name the image of Docker"))
