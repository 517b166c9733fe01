"""Hosts that are directories and get another stack. The conftest.py of tests/unit and of tests/long offer the fixture."""

import getpass
import os
import shutil
from pathlib import Path

import ansible_programs
import pytest
from environments import NAME, point, second_environment

NEW, OLD = NAME, "old-stack-000000000001"
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
        second_environment(root, OLD, 7)
        (root / "envs" / NEW / ".deeplearning" / "activated.json").unlink()
        point(root, f"envs/{OLD}")
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
