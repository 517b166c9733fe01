"""Hosts of one cluster switch to an environment together or not at all, through the real ansible-playbook."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import ansible_programs
import pytest
from ansible.module_utils.hadoop_dl_host import environment_history
from environments import NAME, point, second_environment

OLD = "old-stack-000000000001"
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
        plan: {additional: []}
      loop: "{{ groups['all'] }}"
- ansible.builtin.import_playbook: %s
""" % (ansible_programs.REPOSITORY / "playbooks" / "layers" / "activate.yml")
GROUPS = {"data1": "data_nodes", "data2": "data_nodes", "edge1": "edge_nodes", "cdsw1": "cdsw_hosts"}


@pytest.fixture
def cluster(tmp_path, stages):
    """Four hosts, each a directory of this machine, with a sealed environment that is not active yet."""
    hosts = {}
    for name in GROUPS:
        root = tmp_path / name
        shutil.copytree(stages["active"], root, symlinks=True)
        point(root, "envs/old")
        hosts[name] = {"environment_root": str(root), "environment_path": str(root / "envs" / NAME)}
    ansible_programs.write_inventory(tmp_path / "hosts.yml", GROUPS, hosts)
    (tmp_path / "site.yml").write_text(PLAYS, encoding="utf-8")
    return tmp_path


def run(cluster: Path, seed: str = "0", limit: str = "all", **variables: object) -> tuple[int, str]:
    arguments = ("-i", cluster / "hosts.yml", cluster / "site.yml", "--limit", limit, "-e", json.dumps(variables))
    return ansible_programs.play(*arguments, timeout=300, PYTHONHASHSEED=seed)


def active(cluster: Path) -> dict[str, str]:
    return {name: os.readlink(cluster / name / "current") for name in GROUPS}


def test_hosts_that_failed_before_keep_the_whole_cluster_until_the_next_run_and_are_named_in_its_order(cluster):
    """A set of Python, with this seed, has data2 first."""
    code, output = run(cluster, "6", broken="{{ inventory_hostname in ['data1', 'data2'] }}")
    assert code == 2, output
    assert active(cluster) == {**dict.fromkeys(GROUPS, "envs/old"), "cdsw1": f"envs/{NAME}"}
    assert "is not ready on data1, data2, so it was not activated on any of data1, data2, edge1. " in output
    assert "run the same command again" in output
    root = cluster / "data1"
    for name in ("etc", f"envs/{NAME}.client"):
        (root / name).mkdir(exist_ok=True)
    probes = [root / name / ".new-probe" for name in (".", "etc", "envs", f"envs/{NAME}.client")]  # of a killed switch
    for probe in probes:
        probe.write_text("")
    code, output = run(cluster)
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, f"envs/{NAME}")), output
    assert not any(os.path.lexists(probe) for probe in probes)


def test_hosts_that_are_not_ready_at_the_last_moment_keep_the_cluster(cluster, small):
    """The environment of one is damaged; the file system of another is read-only, which is found before any host switches."""
    shutil.rmtree(next((cluster / "edge1" / "envs" / f"{NAME}.1").glob("lib/python*")))
    root = small("size=60m")
    shutil.copytree(cluster / "data2", root / "data2", symlinks=True)
    host_variables = {"environment_root": str(root / "data2"), "environment_path": str(root / "data2" / "envs" / NAME)}
    ansible_programs.change_host(cluster / "hosts.yml", "data2", host_variables)
    subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
    code, output = run(cluster)
    assert code == 2, output
    assert "is not ready on data2, edge1, so it was not activated on any of data1, data2, edge1." in output
    assert active(cluster) == {**dict.fromkeys(GROUPS, "envs/old"), "cdsw1": f"envs/{NAME}"}


def test_a_host_outside_the_cluster_holds_nobody_back(cluster):
    code, output = run(cluster, broken="{{ inventory_hostname == 'cdsw1' }}")
    assert code == 2, output
    assert active(cluster) == {**dict.fromkeys(GROUPS, f"envs/{NAME}"), "cdsw1": "envs/old"}


def sealed_old(root: Path) -> None:
    """`envs/old`, which `current` names, is an environment that could be removed."""
    second_environment(root, OLD, 7)
    (root / "envs" / NAME / ".deeplearning" / "activated.json").write_text('{"number": 0}')
    point(root, f"envs/{OLD}")


def test_where_one_host_fails_at_its_own_switch_the_others_go_back_and_keep_the_old_environment(cluster):
    for name in GROUPS:
        sealed_old(cluster / name)
    (cluster / "edge1" / ".new-current").mkdir()  # no rename can replace it
    code, output = run(cluster, environment_keep=0)
    assert code == 2, output
    assert active(cluster) == {**dict.fromkeys(GROUPS, f"envs/{OLD}"), "cdsw1": f"envs/{NAME}"}
    assert "but edge1 did not switch. data1 is back at" in output
    assert all((cluster / name / "envs" / OLD / "bin").is_dir() for name in GROUPS), "also if another host names it"
    for name in ("data1", "edge1"):
        words = f"no other environment was active (installed: {NAME}, {OLD})"
        assert environment_history.earlier(str(cluster / name)) == (None, words)
    (cluster / "edge1" / ".new-current").rmdir()
    code, output = run(cluster, environment_keep=0)
    assert active(cluster) == dict.fromkeys(GROUPS, f"envs/{NAME}"), output


def test_a_host_of_the_cluster_that_the_run_leaves_out_keeps_the_old_environment_everywhere(cluster):
    """Its jobs name what is active there for their executors on all data nodes."""
    for name in GROUPS:
        sealed_old(cluster / name)
    code, output = run(cluster, limit="data1,data2", environment_keep=0)
    assert code == 0, output
    new = dict.fromkeys(("data1", "data2"), f"envs/{NAME}")
    assert active(cluster) == {**dict.fromkeys(GROUPS, f"envs/{OLD}"), **new}
    assert all((cluster / name / "envs" / OLD / "bin").is_dir() for name in GROUPS)
    assert "because the active environment is unknown on edge1." in output
    assert run(cluster, environment_keep=0)[0] == 0
    assert not any((cluster / name / "envs" / OLD).exists() for name in GROUPS)


def test_after_a_switch_that_one_host_failed_the_others_are_back_at_what_they_had_and_named_by_it(cluster):
    """A killed run had switched one; nothing was active on another."""
    for name in ("data1", "edge1"):
        sealed_old(cluster / name)
    point(cluster / "data1", f"envs/{NAME}")
    (cluster / "data2" / "current").unlink()
    (cluster / "edge1" / ".new-current").mkdir()  # no rename can replace it
    code, output = run(cluster)
    assert code == 2, output
    assert os.readlink(cluster / "data1" / "current") == f"envs/{NAME}"
    assert f"data1 keeps {NAME}, which an earlier run activated. Correct" in output
    assert not (cluster / "data2" / "current").is_symlink()
    assert "data2 is back at no active environment." in output
    assert os.readlink(cluster / "edge1" / "current") == f"envs/{OLD}"


def test_no_host_switches_to_an_environment_that_fails_a_question_of_the_suite(cluster):
    """What is installed here is no TensorFlow. `verify_parts` is all that the hosts are asked about."""
    switch = PLAYS.splitlines()[-1]
    verified = PLAYS.replace(switch, switch.replace("activate.yml", "verify_environment.yml") + "\n" + switch)
    (cluster / "site.yml").write_text(verified, encoding="utf-8")
    (cluster / "data2" / "current").unlink()  # its first installation
    values = {
        "verify_environment": "{{ environment_path }}",
        "verify_stack": {},
        "verify_python": "",
        "verify_gpu_count": 0,
    }
    values |= {
        "verify_become": False,
        "verify_report_directory": str(cluster / "report"),
        "verify_parts": ["environment"],
    }
    code, output = run(cluster, **values)
    assert code == 2, output
    assert not (cluster / "data2" / "current").is_symlink()
    assert {os.readlink(cluster / name / "current") for name in ("data1", "edge1", "cdsw1")} == {"envs/old"}
    assert "FAILED on data2: tensorflow multiplies matrices" in output
    assert "No host switched to it: what was active is unchanged." in output
