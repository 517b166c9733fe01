"""Make the files of a release of HEAD: `make release`. It publishes nothing and makes no tag; it prints the command that does.

The version is in pyproject.toml alone. The same commit gives the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hadoop_dl_dev import check_steps, collection

REPOSITORY = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"^version = \"(\d+\.\d+\.\d+)\"$", re.MULTILINE)
DESCRIPTION = re.compile(r"^description = \"(.+)\"$", re.MULTILINE)


class Refused(Exception):
    """Why this commit is no release."""


def git(repository: Path, *arguments: str) -> bytes:
    completed = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, check=False)
    if completed.returncode != 0:
        raise Refused(f"A release is made in a clone, but git reports: {completed.stderr.decode().strip()}")
    return completed.stdout


def only(pattern: re.Pattern[str], text: str) -> str:
    matches = pattern.findall(text)
    if len(matches) != 1:
        raise Refused(f"pyproject.toml must have one line like {pattern.pattern}, but has {len(matches)}.")
    return str(matches[0])


def check(repository: Path, version: str) -> None:
    changed = git(repository, "status", "--porcelain").decode().splitlines()
    if changed:
        raise Refused(
            f"A release is made from a commit, but {len(changed)} files differ from it, such as {changed[0][3:]}. Commit or remove them."
        )
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        raise Refused(
            f"CHANGELOG.md must have the section '## {version} (YYYY-MM-DD)', because pyproject.toml has version {version}. "
            "Rename 'Unreleased', or correct the version."
        )


def make(repository: Path, output: Path) -> tuple[str, list[Path]]:
    """The version and the files: the tree, the collection, the documents, and the checksums of all."""
    project = (repository / "pyproject.toml").read_text(encoding="utf-8")
    version = only(VERSION, project)
    check(repository, version)
    commit = git(repository, "rev-parse", "HEAD").decode().strip()
    when = int(git(repository, "show", "--no-patch", "--format=%ct", commit))
    output.mkdir(parents=True, exist_ok=True)
    name = f"hadoop-deeplearning-{version}"
    tree = output / f"{name}.tar.gz"
    tree.write_bytes(gzip.compress(git(repository, "archive", "--format=tar", f"--prefix={name}/", commit), mtime=0))
    with tempfile.TemporaryDirectory() as directory:
        collection.copy(repository, commit, Path(directory), version, only(DESCRIPTION, project))
        files = [tree, collection.build(Path(directory), output, when), documents(repository, output, name, when)]
    sums = output / "SHA256SUMS"
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    sums.write_text("".join(lines), encoding="utf-8")
    return version, [*files, sums]


def documents(repository: Path, output: Path, name: str, when: int) -> Path:
    """The archive of the site, with the time of the commit everywhere."""

    def as_committed(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = when, 0, 0, "root", "root"
        entry.mode = 0o755 if entry.isdir() else 0o644
        return entry

    environment = {**os.environ, **check_steps.NO_ADVERTISEMENT, "SOURCE_DATE_EPOCH": str(when)}
    archive = io.BytesIO()
    with tempfile.TemporaryDirectory() as directory, tarfile.open(fileobj=archive, mode="w") as target:
        program = str(Path(sys.executable).parent / "mkdocs")
        command = [program, "build", "--strict", "--site-dir", directory]
        completed = subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, check=False
        )
        if completed.returncode != 0:
            raise Refused(f"mkdocs could not build the documents: {completed.stderr}")
        target.add(directory, f"{name}-docs", filter=as_committed)  # in the order of names
    path = output / f"{name}-docs.tar.gz"
    path.write_bytes(gzip.compress(archive.getvalue(), mtime=0))
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make release", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=REPOSITORY / ".cache" / "release", metavar="DIRECTORY")
    options = parser.parse_args(arguments)
    try:
        version, files = make(REPOSITORY, options.output)
    except (Refused, ValueError) as refusal:
        print(f"No release was made. {refusal}", file=sys.stderr)
        return 1
    commit = git(REPOSITORY, "rev-parse", "HEAD").decode().strip()
    print(*files, sep="\n")
    print(f"\nThese sign the release with your key, and make its tag:\n  gpg --armor --detach-sign {files[-1]}")
    print(f"  git tag --sign v{version} --message 'hadoop-deeplearning {version}' {commit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
