"""examples/upgrade_driver: the tasks that take a host out of YARN and give it back, run by Ansible with stand-ins of yarn and systemctl."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml
from ansible_programs import LOCAL, REPOSITORY, play

EXAMPLE = REPOSITORY / "examples" / "upgrade_driver"


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)


def test_a_host_leaves_yarn_before_its_driver_changes_and_comes_back(tmp_path: Path) -> None:
    excluded, log = tmp_path / "yarn.exclude", tmp_path / "log"
    excluded.write_text("gone1\n", encoding="utf-8")
    program(tmp_path / "yarn", f'echo "yarn $*: $(echo $(cat {excluded}))" >> {log}\n')
    program(
        tmp_path / "systemctl",
        f'[ "$1" = show ] && printf "LoadState=loaded\\nActiveState=inactive\\n" || echo "$*" >> {log}\n',
    )
    site = {
        "yarn_exclude_file": str(excluded),
        "yarn_admin": "yarn",
        "yarn_nodemanager_unit": "nm",
        "drain_seconds": 60,
    }
    groups: dict[str, Any] = {"data_nodes": ["data1"], "resource_managers": ["rm1", "rm2"]}
    children = {group: {"hosts": dict.fromkeys(hosts, {})} for group, hosts in groups.items()}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": {**LOCAL, **site}, "children": children}}))
    tasks = [
        {"ansible.builtin.include_tasks": str(EXAMPLE / f"upgrade_driver_{when}.yml")} for when in ("before", "after")
    ]
    playbook = [{"hosts": "data_nodes", "gather_facts": False, "tasks": tasks}]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(playbook), encoding="utf-8")
    status, said = play("-i", tmp_path / "hosts.yml", tmp_path / "play.yml", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert status == 0, said
    assert log.read_text(encoding="utf-8").splitlines() == [
        "yarn rmadmin -refreshNodes -g 60 -client: gone1 data1",
        "yarn rmadmin -refreshNodes: gone1",
        "start nm",
    ]


def test_every_variable_of_the_example_is_in_its_page() -> None:
    page = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for name in (
        "yarn_exclude_file",
        "yarn_admin",
        "yarn_nodemanager_unit",
        "drain_seconds",
        "yarn_node",
        "resource_managers",
    ):
        assert name in page
