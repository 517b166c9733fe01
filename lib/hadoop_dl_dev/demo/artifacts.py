"""Public artifacts that the images hold, fetched once and verified: jars from Maven Central, one source archive from PyPI.

The locks are written by Maven and sha256sum on a maintainer's machine (demo/README.md); whoever runs the demo needs no Maven.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hadoop_dl_dev.demo.shell import DemoError, run, say

MAVEN = os.environ.get("MAVEN_CENTRAL_URL", "https://repo1.maven.org/maven2").rstrip("/")
TIMEOUT = 60  # seconds without a byte


@dataclass(frozen=True)
class Artifact:
    """A file by the digest of its bytes. `url` may be a project's page of a package index; the link to the file is taken then."""

    name: str
    sha256: str
    url: str


def read_lock(path: Path) -> list[Artifact]:
    """A lock as sha256sum prints it: digest, two spaces, path below the Maven repository."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = re.fullmatch(r"([0-9a-f]{64})  (\S+)", line)
        if match is None:
            raise DemoError(f"{path}:{number}: a line is a sha256, two spaces and a path, and is {line!r}.")
        found.append(Artifact(Path(match.group(2)).name, match.group(1), f"{MAVEN}/{match.group(2)}"))
    return found


def index_url() -> str | None:
    """The package index that this machine's pip uses, where it is not the public one."""
    configured = run(sys.executable, "-m", "pip", "config", "get", "global.index-url", check=False).stdout.strip()
    return (os.environ.get("PIP_INDEX_URL") or configured).rstrip("/") or None


def libhdfs() -> Artifact:
    """libhdfs's sources are inside pydoop's source archive: https://pypi.org/project/pydoop/2.0.0/#files"""
    return Artifact(
        "pydoop-2.0.0.tar.gz",
        "c7eb2ad8c36d2a75dc1c6cee701928334614f2e862a70798b0cb278e3102f77d",
        f"{index_url() or 'https://pypi.org/simple'}/pydoop/",
    )


def fetch_packages(listing: Path, directory: Path) -> list[Path]:
    """Files of the package index, which `listing` names as sha256sum prints them."""
    index = index_url() or "https://pypi.org/simple"
    found = []
    for line in listing.read_text(encoding="utf-8").splitlines():
        sha256, name = line.split()
        project = re.sub("[-_.]+", "-", re.split(r"-[0-9]", name)[0]).lower()
        found.append(Artifact(name, sha256, f"{index}/{project}/"))
    return fetch_all(found, directory)


def fetch_all(artifacts: Iterable[Artifact], directory: Path) -> list[Path]:
    """Fetch what is missing or incomplete, eight at a time; every file is verified before it gets its name."""
    directory.mkdir(parents=True, exist_ok=True)
    wanted = list(artifacts)
    missing = [artifact for artifact in wanted if not is_whole(artifact, directory / artifact.name)]
    if missing:
        say(f"    fetching {len(missing)} files …")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda artifact: fetch(artifact, directory), missing))
    return [directory / artifact.name for artifact in wanted]


def is_whole(artifact: Artifact, path: Path) -> bool:
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == artifact.sha256


def fetch(artifact: Artifact, directory: Path) -> None:
    url = artifact.url if not artifact.url.endswith("/") else file_url(artifact)
    content = download(url)
    found = hashlib.sha256(content).hexdigest()
    if found != artifact.sha256:
        raise DemoError(
            f"{artifact.name} must have the sha256 {artifact.sha256} but what {url} sent ({len(content)} bytes) has {found}. "
            "A proxy that answers with a page of its own is the usual cause: look at it with curl."
        )
    partial = directory / f".{artifact.name}.partial"
    partial.write_bytes(content)
    partial.rename(directory / artifact.name)


def file_url(artifact: Artifact) -> str:
    """The link to the file on the project's page: HTML (PEP 503), or JSON (PEP 691) from an index that has only that."""
    page = download(artifact.url).decode("utf-8", "replace")
    link = rf"""["']((?:[^"'#]*/)?{re.escape(artifact.name)})(?:#[^"']*)?["']"""
    match = re.search(rf"href\s*=\s*{link}", page) or re.search(rf'"url"\s*:\s*{link}', page)
    if match is None:
        raise DemoError(f"{artifact.url} must list {artifact.name} but does not. Is PIP_INDEX_URL a full index?")
    return str(urllib.parse.urljoin(artifact.url, html.unescape(match.group(1))))


def download(url: str) -> bytes:
    for attempt in (1, 2, 3):
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310 (an https address of this project's own)
                content: bytes = answer.read()
                return content
        except (urllib.error.URLError, OSError) as error:
            if attempt == 3 or (isinstance(error, urllib.error.HTTPError) and error.code in (401, 403, 404)):
                raise DemoError(
                    f"{url} is required, but the server answers: {error}. Check the network, https_proxy, SSL_CERT_FILE."
                ) from error
    raise AssertionError("unreachable")
