"""Another stack, hosts that are directories: what is shown and asked, and canaries. The real ansible-playbook runs the layers of upgrade_stack.yml."""

from __future__ import annotations

import getpass
import json
import os
import shutil
from pathlib import Path

import ansible_programs
import pytest
import yaml
from ansible.module_utils import environment_history, environment_packages
from ansible_programs import LOCAL

from hadoop_dl.hosts import canaries

REPOSITORY = Path(__file__).resolve().parents[2]
NEW, OLD = "demo-stack-0123456789ab", "old-stack-000000000001"
STACK = "tf1.4-cpu-py27-el7"  # whose lock stands for the new environment's
GROUPS = {"data1": "data_nodes", "data2": "data_nodes", "edge1": "edge_nodes", "cdsw1": "cdsw_hosts"}
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
      loop: "{{{{ groups['all'] }}}}"
      changed_when: false
- ansible.builtin.import_playbook: {layers}/announce_stack.yml
- ansible.builtin.import_playbook: {layers}/run_lock.yml
- ansible.builtin.import_playbook: {layers}/canary.yml
- ansible.builtin.import_playbook: {layers}/activate.yml
"""


@pytest.fixture
def cluster(tmp_path, stages):
    """Four hosts on which OLD is active and NEW is built."""
    hosts: dict[str, dict[str, dict[str, object]]] = {group: {} for group in GROUPS.values()}
    for name, group in GROUPS.items():
        root = tmp_path / name
        shutil.copytree(stages["active"], root, symlinks=True)
        shutil.copytree(root / "envs" / f"{NEW}.1", root / "envs" / f"{OLD}.1", symlinks=True)
        (root / "envs" / OLD).symlink_to(f"{OLD}.1")
        link = root / "envs" / OLD / ".deeplearning" / "client"
        link.unlink()
        link.symlink_to(f"../../{OLD}.client")
        state = environment_packages.state_file(str(root / "envs" / OLD), environment_history.ACTIVATED)
        environment_packages.write_json(state, {"number": 7})
        Path(environment_packages.state_file(str(root / "envs" / NEW), environment_history.ACTIVATED)).unlink()
        (root / "current").unlink()
        (root / "current").symlink_to(f"envs/{OLD}")
        hosts[group][name] = {"environment_root": str(root), "environment_path": str(root / "envs" / NEW)}
    inventory = {"all": {"vars": LOCAL, "children": {group: {"hosts": members} for group, members in hosts.items()}}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    plays = PLAYS.format(new=NEW, stack=STACK, layers=REPOSITORY / "playbooks" / "layers")
    (tmp_path / "upgrade.yml").write_text(plays, encoding="utf-8")
    return tmp_path


def run(cluster: Path, *options: str, **variables: object) -> tuple[int, str]:
    arguments = ("-i", cluster / "hosts.yml", cluster / "upgrade.yml", *options, "-e", json.dumps(variables))
    done = ansible_programs.run("ansible-playbook", *arguments)
    return done.returncode, done.stdout + done.stderr


def active(cluster: Path) -> dict[str, str]:
    return {name: os.readlink(cluster / name / "current").removeprefix("envs/") for name in GROUPS}


def canary(command: str, hosts: object = 1) -> dict[str, object]:
    return {
        "assume_yes": True,
        "upgrade_canary": hosts,
        "upgrade_canary_user": getpass.getuser(),
        "upgrade_canary_command": command,
    }


def test_without_a_terminal_and_without_assume_yes_nothing_is_changed(cluster):
    code, said = run(cluster)
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), said
    told = " ".join(said.split())
    assert "No host was changed. Type yes, or add -e assume_yes=true where there is no terminal." in told


def test_what_changes_is_shown_and_a_confirmed_upgrade_switches_all_hosts(cluster):
    code, said = run(cluster, assume_yes=True)
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, NEW)), said
    assert f"data1, data2, edge1, cdsw1: {OLD} -> {NEW}" in said
    rows = [line.split() for line in said.splitlines()]
    assert ["TensorFlow", "1.0", "1.4.1"] in rows
    assert ["TensorFlowOnSpark", "none", "1.4.4"] in rows
    assert ["Java", "unknown", "8"] in rows, "the old stack is none of those that this project knows"
    assert ["numpy", "none", "1.16.6"] in rows
    assert all((cluster / name / "envs" / OLD).is_dir() for name in GROUPS), "the way back"


def test_a_request_that_is_installed_is_a_sentence_and_no_change(cluster):
    run(cluster, assume_yes=True)
    code, said = run(cluster, needed=False)
    assert code == 0, said
    assert f"{NEW} is installed and active on every host already. No host was changed." in " ".join(said.split())
    assert "changed=0" in said
    assert "changed=1" not in said


def test_a_canary_has_the_new_environment_while_its_job_runs_and_the_others_follow(cluster):
    look = f"readlink {cluster}/*/current | sort | uniq -c; echo $DEEPLEARNING_ENVIRONMENT"
    code, said = run(cluster, **canary(f"({look}) > {cluster}/seen"))
    assert code == 0, said
    seen = (cluster / "seen").read_text().split()
    assert seen == ["1", f"envs/{NEW}", "3", f"envs/{OLD}", NEW]
    assert active(cluster) == dict.fromkeys(GROUPS, NEW)


@pytest.mark.parametrize("hosts", ["data1,edge1", "50%"])
def test_a_job_that_fails_sends_the_canaries_back_and_stops(cluster, hosts):
    code, said = run(cluster, **canary("echo the executors say no; exit 3", hosts))
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), said
    told = " ".join(said.split())
    assert "ended with status 3: the executors say no" in told
    assert "are back at what was active before; no other host was switched" in told
    assert all((cluster / name / "envs" / NEW).is_dir() for name in GROUPS), "the same command tries again"
    assert not list(cluster.glob("*/.run.json"))
    code, said = run(cluster, **canary("true", hosts))
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, NEW)), said


def test_a_canary_that_is_not_ready_keeps_all_canaries_and_all_hosts(cluster):
    shutil.rmtree(next((cluster / "data2" / "envs" / f"{NEW}.1").glob("lib/python*")))
    code, said = run(cluster, **canary("true", "data1,data2"))
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), said


def test_with_no_environments_to_keep_the_old_one_stays_until_all_hosts_have_switched(cluster):
    """Of a canary's job the executors may run anywhere, and jobs of the other hosts too."""
    look = f"ls -d {cluster}/*/envs/{OLD} | wc -l > {cluster}/seen"
    code, said = run(cluster, **canary(look), environment_keep=0)
    assert code == 0, said
    assert (cluster / "seen").read_text().split() == ["4"]
    assert not any((cluster / name / "envs" / OLD).exists() for name in GROUPS)


def test_check_mode_shows_what_would_change_and_asks_nothing(cluster):
    code, said = run(cluster, "--check", **canary("false") | {"assume_yes": False})
    assert (code, active(cluster)) == (0, dict.fromkeys(GROUPS, OLD)), said
    assert "TensorFlowOnSpark" in said


def test_canaries_without_an_account_for_their_job_are_refused(cluster):
    code, said = run(cluster, assume_yes=True, upgrade_canary=1)
    assert (code, active(cluster)) == (2, dict.fromkeys(GROUPS, OLD)), said
    assert "but upgrade_canary_user is not set. No host was changed." in " ".join(said.split())


HOSTS = ["data1", "data2", "data3", "edge1"]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ("", []),
        (None, []),
        (0, []),
        (1, ["data1"]),
        ("2", ["data1", "data2"]),
        ("10%", ["data1"]),
        ("50%", ["data1", "data2"]),
        ("edge1, data2", ["edge1", "data2"]),
        (["data3"], ["data3"]),
    ],
)
def test_canaries_are_a_number_a_share_or_names(request_, expected):
    assert canaries.chosen(HOSTS, request_) == expected


@pytest.mark.parametrize("request_", [4, "100%", "data1,data2,data3,edge1", "9999999", "1.5", "data9", True])
def test_a_request_for_canaries_that_cannot_be_met_is_refused(request_):
    with pytest.raises(ValueError, match=r"No host was changed\."):
        canaries.chosen(HOSTS, request_)
