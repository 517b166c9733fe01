"""A stand-in of CDSW's base engine image (demo/engine), and fixtures of CUDA's packages in a signed apt repository.

`python -m hadoop_dl_dev.demo.engine_base` prints the directory with both: engine.tar (docker load) and apt/.
"""

import hashlib
import sys
import zipfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.cli import mirror
from hadoop_dl_dev.demo import images, signed_packages
from hadoop_dl_dev.demo.images import DATA, NAME, digest
from hadoop_dl_dev.demo.shell import DemoError, run

SOURCE = DATA / "engine"
SUITE, PACKAGES = "bullseye", ("python2.7", "python3")
IMAGE = "cdsw/engine:stand-in"  # its name on a node
# What engines of that time had. It cannot install wheels for manylinux2010 and later.
OLD_PIP: dict[str, Any] = {
    "folder": "wheels",
    "name": "pip-9.0.3-py2.py3-none-any.whl",
    "project": "pip",
    "sha256": "c3ede34530e0e0b2381e7363aded78e0c33291654937e7373032fda04e8803e5",
    "size": 1400985,
}


def ensure() -> Path:
    """The directory, made again when one of its sources changed."""
    files = [*SOURCE.iterdir(), Path(__file__), DATA / "gpu/files/elf.py"]
    return signed_packages.made_once("engine-base", files, fill)


def fill(top: Path, target: Path) -> None:
    (target / "apt").mkdir()
    save_image(top, target / "engine.tar")
    make_repository(top, target / "apt", signed_packages.own_key())


def save_image(directory: Path, file: Path) -> None:
    base = f"{NAME}/engine-base:{digest(SUITE.encode(), ' '.join(PACKAGES).encode())}"
    if not images.exists(base):
        images.make_root(base, SUITE, PACKAGES)
    context = directory / "context"
    mirror.fetch_artifacts([OLD_PIP], directory / "pip")
    with zipfile.ZipFile(directory / "pip" / "wheels" / OLD_PIP["name"]) as wheel:
        wheel.extractall(context / "pip")
    text = (SOURCE / "Dockerfile").read_text(encoding="utf-8").replace("FROM BASE", f"FROM {base}")
    (context / "Dockerfile").write_text(text, encoding="utf-8")
    images.docker_build(IMAGE, context)
    run("docker", "save", "--output", str(file), IMAGE)
    run("docker", "image", "rm", IMAGE)
    file.chmod(0o644)


def make_repository(directory: Path, repository: Path, home: Path) -> None:
    """Fixtures of CUDA's packages; their libraries load and answer nothing."""
    entries = []
    for package in yaml.safe_load((SOURCE / "cuda.yml").read_text(encoding="utf-8"))["packages"]:
        tree = directory / package["name"]
        tree.mkdir()
        for path, soname in package.get("libraries", {}).items():
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            run(sys.executable, str(DATA / "gpu/files/elf.py"), "library", str(file), soname)
            (file.parent / soname).symlink_to(file.name)
        entries.append(build(package, tree, repository))
    write_index(entries, directory, repository, home)
    signed_packages.export_key(home, repository / "key.asc")


def build(package: dict[str, Any], tree: Path, repository: Path) -> str:
    """One package, and its entry in the repository's index."""
    fields = {
        "Package": package["name"],
        "Version": package["version"],
        "Architecture": "amd64",
        "Maintainer": "Fixtures <fixtures@example.com>",
        "Depends": package.get("depends"),
        "Description": "Stand-in",
    }
    control = "".join(f"{key}: {value}\n" for key, value in fields.items() if value)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(control, encoding="utf-8")
    file = repository / f"{package['name']}_{package['version']}_amd64.deb"
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(tree), str(file))
    content = file.read_bytes()
    return f"{control}Filename: ./{file.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"


def write_index(entries: list[str], directory: Path, repository: Path, home: Path) -> None:
    """Packages and InRelease, signed by the fixtures' key."""
    index = "\n".join(entries).encode()
    (repository / "Packages").write_bytes(index)
    date = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
    release = f"Date: {date}\nSHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    (directory / "Release").write_text(release, encoding="utf-8")
    sign = ["gpg", "--homedir", str(home), "--batch", "--local-user", signed_packages.KEY_NAME, "--clearsign"]
    run(*sign, "--output", str(repository / "InRelease"), str(directory / "Release"))


def main() -> int:
    try:
        print(ensure())
    except (DemoError, mirror.MirrorError) as error:
        print(f"engine_base: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
