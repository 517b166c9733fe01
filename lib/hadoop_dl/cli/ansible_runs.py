"""Runs of Ansible's programs by the commands of scripts/: those beside this Python, with this project's settings."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ansible or ansible-playbook to its end; stdout has all that it printed."""
    return subprocess.run(
        [str(Path(sys.executable).parent / program), *arguments],
        env={"ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), **os.environ, "ANSIBLE_NOCOLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def missing_inventory(inventories: Iterable[str]) -> str:
    """The first inventory that does not exist; empty if all do. Text with a comma is a list of hosts."""
    return next((inventory for inventory in inventories if "," not in inventory and not Path(inventory).exists()), "")
