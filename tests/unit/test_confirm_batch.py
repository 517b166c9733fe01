"""More than a quarter of the hosts at a time must be confirmed: layers/confirm_batch.yml with the real ansible-playbook."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PLAYS = f"""
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.group_by: {{key: needs_nvidia_driver}}
- ansible.builtin.import_playbook: {REPOSITORY}/playbooks/layers/confirm_batch.yml
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.debug: {{msg: a host changes}}
"""


@pytest.mark.parametrize(
    ("hosts", "options", "question"),
    [
        (8, ["upgrade_batch=3"], "3 of 8 hosts change at once"),
        (8, ["upgrade_batch=100%"], "8 of 8 hosts change at once"),
        (8, ["upgrade_batch=25%"], ""),
        (2, [], ""),
        (8, ["upgrade_batch=100%", "assume_yes=true"], ""),
    ],
)
def test_many_hosts_at_once_must_be_confirmed(tmp_path: Path, hosts: int, options: list[str], question: str) -> None:
    (tmp_path / "change.yml").write_text(PLAYS, encoding="utf-8")
    program = str(Path(sys.executable).parent / "ansible-playbook")
    names = ",".join(f"data{number}" for number in range(hosts)) + ","
    done = subprocess.run(
        [
            program,
            "-i",
            names,
            "-c",
            "local",
            str(tmp_path / "change.yml"),
            *(word for one in options for word in ("-e", one)),
        ],
        env={**os.environ, "ANSIBLE_CONFIG": str(REPOSITORY / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = " ".join((done.stdout + done.stderr).split())
    assert ("a host changes" in said) is not bool(question), said
    assert done.returncode == (2 if question else 0)
    assert question in said
    assert ("No host was changed." in said) is bool(question)
