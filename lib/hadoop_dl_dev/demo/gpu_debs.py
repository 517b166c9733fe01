"""Fixture packages of the GPU layer for Debian: demo/gpu/debian.yml as packages and a signed repository of them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl_dev.demo.shell import run
from hadoop_dl_dev.demo.signed_packages import KEY_NAME

SCRIPTS = ("postinst", "prerm", "postrm")


def packages(described: dict[str, Any], listed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every package with the driver and the kernel that its files are taken from."""
    driver, kernel = listed["drivers"][0], listed["kernels"][0]
    for version in listed["drivers"]:
        yield from group(described["driver"], driver=version, kernel=kernel)
    for release in listed["kernels"]:
        yield from group(described["kernel"], driver=driver, kernel=release)
    for package in described["other"]:
        yield {"source": package["name"], "driver": driver, "kernel": kernel, **package}


def group(described: dict[str, Any], **words: str) -> Iterator[dict[str, Any]]:
    for name, package in described["packages"].items():
        texts = {key: value.format(**words) for key, value in package.items() if isinstance(value, str)}
        common = {"source": described["source"], "version": described["version"].format(**words)}
        yield {**package, **texts, **common, **words, "name": name.format(**words)}


def control(package: dict[str, Any]) -> str:
    fields = {
        "Package": package["name"],
        "Source": package["source"],
        "Version": package["version"],
        "Architecture": "amd64",
        "Maintainer": "Fixtures <fixtures@example.com>",
        "Depends": package.get("depends"),
        "Provides": package.get("provides"),
        "Description": "Stand-in for Debian's package",
    }
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def build(package: dict[str, Any], tree: Path, top: Path, repository: Path) -> str:
    """One package, and its entry in the repository's index."""
    root = top / f"{package['name']}_{package['version']}"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(control(package), encoding="utf-8")
    for name in SCRIPTS:
        if name in package:
            (root / "DEBIAN" / name).write_text(f"#!/bin/sh\nset -e\n{package[name]}\n", encoding="utf-8")
            (root / "DEBIAN" / name).chmod(0o755)
    for pattern in package.get("files", []):
        for path in sorted(tree.glob(pattern)):
            target = root / path.relative_to(tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            run("cp", "--archive", str(path), str(target))
    file = repository / f"{root.name}_amd64.deb"
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", str(root), str(file))
    content = file.read_bytes()
    return f"{control(package)}Filename: ./{file.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"


def make(source: Path, listed: dict[str, Any], directory: Path, repository: Path, home: Path) -> None:
    """The packages of a Debian system in `repository`, with an index that the fixtures' key signs."""
    described = yaml.safe_load((source / "debian.yml").read_text(encoding="utf-8"))
    entries: list[str] = []
    trees: dict[tuple[str, str], Path] = {}
    for package in packages(described, listed):
        words = (package["driver"], package["kernel"])
        if words not in trees:
            trees[words] = directory / f"tree-{len(trees)}"
            trees[words].mkdir()
            run("sh", str(source / "files/debian_tree.sh"), str(trees[words]), *words)
        entries.append(build(package, trees[words], directory / "packages", repository))
    write_index(entries, directory, repository, home)
    shutil.rmtree(directory / "packages")


def write_index(entries: list[str], directory: Path, repository: Path, home: Path) -> None:
    """Packages and InRelease, signed by the fixtures' key."""
    index = "\n".join(entries).encode()
    (repository / "Packages").write_bytes(index)
    date = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
    release = f"Date: {date}\nSHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n"
    (directory / "Release").write_text(release, encoding="utf-8")
    sign = ["gpg", "--homedir", str(home), "--batch", "--local-user", KEY_NAME, "--clearsign"]
    run(*sign, "--output", str(repository / "InRelease"), str(directory / "Release"))
