"""The demo's commands as a person runs them at the repository's root."""

from __future__ import annotations

import subprocess

from hadoop_dl_dev.demo import images


def run(*command: str, status: int = 0) -> str:
    """What the command printed; it must end with this status."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=images.REPOSITORY, text=True, check=False, **streams)
    assert done.returncode == status, done.stdout[-6000:]
    return done.stdout
