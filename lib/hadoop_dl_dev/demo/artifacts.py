"""Public artifacts that the images hold, fetched once and verified: jars from Maven Central, one source archive from PyPI.

The locks are written by Maven and sha256sum on a maintainer's machine (demo/README.md); whoever runs the demo needs no Maven.
"""

import hashlib
import os
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible.module_utils.hadoop_dl_host import mirror_files, mirror_index

from hadoop_dl_dev.demo.shell import DemoError, run, say

MAVEN = os.environ.get("MAVEN_CENTRAL_URL", "https://repo1.maven.org/maven2").rstrip("/")
VARIABLES = "On this machine these are variables of the environment: https_proxy, SSL_CERT_FILE, PIP_INDEX_URL."


@dataclass(frozen=True)
class Artifact:
    """A file by the digest of its bytes. `url` is its address, or that of its project's page in a package index (with / at the end)."""

    name: str
    sha256: str
    url: str


def read_lock(path: Path) -> list[Artifact]:
    """A lock as sha256sum prints it: digest, two spaces, path below the Maven repository."""
    artifacts = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S+)", line)
        if match is None:
            raise DemoError(f"{path}:{number}: a line is a sha256, two spaces and a path, and is {line!r}.")
        artifacts.append(Artifact(Path(match.group(2)).name, match.group(1), f"{MAVEN}/{match.group(2)}"))
    return artifacts


def index_url() -> str | None:
    """The package index that this machine's pip uses, where it is not the public one."""
    configured = run(sys.executable, "-m", "pip", "config", "get", "global.index-url", check=False).stdout.strip()
    return (os.environ.get("PIP_INDEX_URL") or configured).rstrip("/") or None


def libhdfs() -> Artifact:
    """libhdfs's sources are inside pydoop's source archive: https://pypi.org/project/pydoop/2.0.0/#files"""
    return Artifact(
        "pydoop-2.0.0.tar.gz",
        "c7eb2ad8c36d2a75dc1c6cee701928334614f2e862a70798b0cb278e3102f77d",
        f"{index_url() or mirror_index.DEFAULT_INDEX}/pydoop/",
    )


def fetch_packages(listing: Path, directory: Path) -> list[Path]:
    """Files of the package index, which `listing` names as sha256sum prints them."""
    index = index_url() or mirror_index.DEFAULT_INDEX
    artifacts = []
    for line in listing.read_text(encoding="utf-8").splitlines():
        sha256, name = line.split()
        project = re.sub("[-_.]+", "-", re.split(r"-[0-9]", name)[0]).lower()
        artifacts.append(Artifact(name, sha256, f"{index}/{project}/"))
    return fetch_all(artifacts, directory)


def fetch_all(artifacts: Iterable[Artifact], directory: Path) -> list[Path]:
    """Fetch what is missing or incomplete, eight at a time, as the mirror does; every file is verified before it gets its name."""
    (directory / ".staging").mkdir(parents=True, exist_ok=True)
    requested = list(artifacts)
    missing = [artifact for artifact in requested if not is_complete(artifact, directory / artifact.name)]
    if missing:
        say(f"    fetching {len(missing)} files …")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda artifact: fetch(artifact, directory), missing))
    return [directory / artifact.name for artifact in requested]


def is_complete(artifact: Artifact, path: Path) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == artifact.sha256


def fetch(artifact: Artifact, directory: Path) -> None:
    file: dict[str, Any] = {"folder": "", "name": artifact.name, "sha256": artifact.sha256}
    index = None
    if artifact.url.endswith("/"):
        index, _, file["project"] = artifact.url.rstrip("/").rpartition("/")
    else:
        file["url"] = artifact.url
    try:
        mirror_files.fetch_one(file, str(directory), index)
    except mirror_index.MirrorError as error:
        raise DemoError(f"{error} {VARIABLES}") from error
