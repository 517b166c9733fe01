"""Clones of this repository, for tests that need a commit of their own."""

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")


def git(directory: Path, *arguments: str, **environment: str) -> None:
    command = ["git", *AUTHOR, *arguments]
    subprocess.run(command, cwd=directory, env={**os.environ, **environment}, check=True, capture_output=True)


def clone(source: Path, directory: Path) -> Path:
    git(source, "clone", "--quiet", "--shared", str(source), str(directory))
    return directory


def with_changes(directory: Path) -> Path:
    """A clone with one commit more: the files as they are now."""
    clone(REPOSITORY, directory)
    git(directory, "add", "--all", GIT_WORK_TREE=str(REPOSITORY))
    git(directory, "commit", "--quiet", "--allow-empty", "--message", "test")
    git(directory, "reset", "--quiet", "--hard")
    return directory
