"""Ansible's own programs with the project's settings; hosts are directories of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Variables of a host that is this machine, as the user of the tests.
LOCAL = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}


def run(
    program: str, *arguments: str | Path, timeout: int = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook, ansible or another one, without a terminal."""
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *map(str, arguments)],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            **environment,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def play(*arguments: str | Path, timeout: int = 120, **environment: str) -> tuple[int, str]:
    """Exit status and output of ansible-playbook, without line breaks."""
    done = run("ansible-playbook", *arguments, timeout=timeout, **environment)
    return done.returncode, " ".join((done.stdout + done.stderr).split())
