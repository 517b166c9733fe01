"""Hosts that are directories and get another stack. The conftest.py of tests/unit and of tests/long offer the fixture."""

from __future__ import annotations

import getpass
import os
import shutil
from pathlib import Path

import ansible_programs
import pytest
from ansible.module_utils.hadoop_dl_host import environment_history, environment_packages, whole_files

NEW, OLD = "demo-stack-0123456789ab", "old-stack-000000000001"
STACK = "tf1.4-cpu-py27-el7"  # whose lock stands for the new environment's
GROUPS = {"data1": "data_nodes", "data2": "data_nodes", "edge1": "edge_nodes"}
PLAYS = """
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.add_host:
        name: "{{{{ item }}}}"
        groups: "{{{{ ['needs_environment'] if needed | default(true) else ['as_planned'] }}}}"
        plan:
          environment: {new}
          stack: {{name: {stack}, java: ["8"]}}
          python: "2.7"
          needs: "{{{{ ['environment'] if needed | default(true) else [] }}}}"
          additional: []
      loop: "{{{{ groups['all'] }}}}"
      changed_when: false
- ansible.builtin.import_playbook: {layers}/announce_stack.yml
- ansible.builtin.import_playbook: {layers}/run_lock.yml
- ansible.builtin.import_playbook: {layers}/canary.yml
- ansible.builtin.import_playbook: {layers}/activate.yml
"""


@pytest.fixture
def cluster(tmp_path, stages):
    """Three hosts on which OLD is active and NEW is built."""
    hosts = {}
    for name in GROUPS:
        root = tmp_path / name
        shutil.copytree(stages["active"], root, symlinks=True)
        shutil.copytree(root / "envs" / f"{NEW}.1", root / "envs" / f"{OLD}.1", symlinks=True)
        (root / "envs" / OLD).symlink_to(f"{OLD}.1")
        link = root / "envs" / OLD / ".deeplearning" / "client"
        link.unlink()
        link.symlink_to(f"../../{OLD}.client")
        state = environment_packages.state_file(str(root / "envs" / OLD), environment_history.ACTIVATED)
        whole_files.write_json(state, {"number": 7})
        Path(environment_packages.state_file(str(root / "envs" / NEW), environment_history.ACTIVATED)).unlink()
        (root / "current").unlink()
        (root / "current").symlink_to(f"envs/{OLD}")
        hosts[name] = {"environment_root": str(root), "environment_path": str(root / "envs" / NEW)}
    ansible_programs.write_inventory(tmp_path / "hosts.yml", GROUPS, hosts)
    plays = PLAYS.format(new=NEW, stack=STACK, layers=ansible_programs.REPOSITORY / "playbooks" / "layers")
    (tmp_path / "upgrade.yml").write_text(plays, encoding="utf-8")
    return tmp_path


def active(cluster: Path) -> dict[str, str]:
    return {name: os.readlink(cluster / name / "current").removeprefix("envs/") for name in GROUPS}


def canary(command: str, hosts: object = 1) -> dict[str, object]:
    return {
        "assume_yes": True,
        "upgrade_canary": hosts,
        "upgrade_canary_user": getpass.getuser(),
        "upgrade_canary_command": command,
    }
