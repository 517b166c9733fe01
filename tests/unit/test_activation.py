"""Hosts of one cluster switch to an environment together or not at all, through the real ansible-playbook."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import ansible_programs
import pytest
import yaml
from ansible_programs import LOCAL

REPOSITORY = Path(__file__).resolve().parents[2]
NAME = "demo-stack-0123456789ab"
PLAYS = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Fail in an earlier layer
      ansible.builtin.fail:
        msg: the disk of {{ inventory_hostname }} is full
      when: broken | default(false)
    - ansible.builtin.add_host:
        name: "{{ item }}"
        groups: [needs_environment]
      loop: "{{ groups['all'] }}"
- ansible.builtin.import_playbook: %s
""" % (REPOSITORY / "playbooks" / "layers" / "activate.yml")
GROUPS = {"data1": "data_nodes", "data2": "data_nodes", "edge1": "edge_nodes", "cdsw1": "cdsw_hosts"}


@pytest.fixture
def cluster(tmp_path, stages):
    """Four hosts, each a directory of this machine, with a sealed environment that is not active yet."""
    hosts: dict[str, dict[str, dict[str, object]]] = {group: {} for group in GROUPS.values()}
    for name, group in GROUPS.items():
        root = tmp_path / name
        shutil.copytree(stages["active"], root, symlinks=True)
        (root / "current").unlink()
        (root / "current").symlink_to("envs/old")
        hosts[group][name] = {"environment_root": str(root), "environment_path": str(root / "envs" / NAME)}
    inventory = {"all": {"vars": LOCAL, "children": {group: {"hosts": members} for group, members in hosts.items()}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    (tmp_path / "site.yml").write_text(PLAYS, encoding="utf-8")
    return tmp_path


def run(cluster: Path, seed: str = "0", **variables: object) -> subprocess.CompletedProcess[str]:
    (cluster / "group_vars").mkdir(exist_ok=True)
    arguments = ("-i", cluster / "hosts.yml", cluster / "site.yml", "-e", json.dumps(variables))
    return ansible_programs.run("ansible-playbook", *arguments, PYTHONHASHSEED=seed)


def active(cluster: Path) -> dict[str, str]:
    return {name: os.readlink(cluster / name / "current") for name in GROUPS}


def test_all_hosts_of_the_cluster_switch(cluster):
    done = run(cluster)
    assert done.returncode == 0, done.stdout
    assert active(cluster) == dict.fromkeys(GROUPS, f"envs/{NAME}")


@pytest.mark.parametrize("seed", ["1", "2", "3"])  # of Python's sets
def test_hosts_that_failed_before_keep_the_whole_cluster_and_are_named_in_its_order(cluster, seed):
    done = run(cluster, seed, broken="{{ inventory_hostname in ['data1', 'data2'] }}")
    assert done.returncode == 2, done.stdout
    assert active(cluster) == {**dict.fromkeys(GROUPS, "envs/old"), "cdsw1": f"envs/{NAME}"}
    said = " ".join(done.stdout.split())
    assert "is not ready on data1, data2, so it was not activated on any of data1, data2, edge1. " in said
    assert "run the same command again" in said


def test_a_host_whose_environment_is_damaged_at_the_last_moment_keeps_the_cluster(cluster):
    shutil.rmtree(next((cluster / "edge1" / "envs" / f"{NAME}.1").glob("lib/python*")))
    done = run(cluster)
    assert done.returncode == 2, done.stdout
    assert active(cluster) == {**dict.fromkeys(GROUPS, "envs/old"), "cdsw1": f"envs/{NAME}"}
    assert "is not ready on edge1" in " ".join(done.stdout.split())


def test_a_host_outside_the_cluster_holds_nobody_back(cluster):
    done = run(cluster, broken="{{ inventory_hostname == 'cdsw1' }}")
    assert done.returncode == 2, done.stdout
    assert active(cluster) == {**dict.fromkeys(GROUPS, f"envs/{NAME}"), "cdsw1": "envs/old"}


def test_the_next_run_switches_them(cluster):
    run(cluster, broken="{{ inventory_hostname == 'data2' }}")
    assert run(cluster).returncode == 0
    assert active(cluster) == dict.fromkeys(GROUPS, f"envs/{NAME}")
