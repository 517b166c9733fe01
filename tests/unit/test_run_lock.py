"""One run at a time changes a host: layers/run_lock.yml with the real ansible-playbook; the hosts are directories."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import ansible_programs
import pytest
import yaml
from ansible_programs import LOCAL

from hadoop_dl.hosts import runs

REPOSITORY = Path(__file__).resolve().parents[2]
LAYERS = REPOSITORY / "playbooks" / "layers"
HOSTS = ("data1", "data2")
PLAYS = f"""
- ansible.builtin.import_playbook: {LAYERS}/run_lock.yml
  vars: {{run_lock_hosts: all, run_lock_disrupts: "{{{{ disrupts | default(false) }}}}"}}
- hosts: all
  gather_facts: false
  tasks:
    - name: Change the host
      ansible.builtin.copy:
        src: "{{{{ environment_root }}}}/.run.json"
        dest: "{{{{ environment_root }}}}/seen"
        remote_src: true
        mode: "0644"
- ansible.builtin.import_playbook: {LAYERS}/run_unlock.yml
  vars: {{run_lock_hosts: all}}
"""

REMOVE = f"""
- ansible.builtin.import_playbook: {LAYERS}/run_lock.yml
  vars: {{run_lock_hosts: all}}
- hosts: data2
  gather_facts: false
  tasks:
    - name: Remove the last file
      ansible.builtin.file:
        path: "{{{{ environment_root }}}}/seen"
        state: absent
- ansible.builtin.import_playbook: {LAYERS}/run_unlock.yml
  vars: {{run_lock_hosts: all}}
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    hosts = {name: {"environment_root": str(tmp_path / name)} for name in HOSTS}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": LOCAL, "hosts": hosts}}), encoding="utf-8")
    (tmp_path / "change.yml").write_text(PLAYS, encoding="utf-8")
    return tmp_path


def run(site: Path, *options: str) -> tuple[int, str]:
    return ansible_programs.play("-i", site / "hosts.yml", site / "change.yml", *options)


def other_run(site: Path, host: str, pid: int, **changes: str) -> Path:
    """Another run has the host; alice started it in process `pid` of this machine."""
    found = {**runs.this_run(pid, "site.yml"), "id": "other", "who": "alice", "controller": "ctrl1", **changes}
    (site / host).mkdir(exist_ok=True)
    path = site / host / ".run.json"
    path.write_text(json.dumps(found), encoding="utf-8")
    return path


def locked(site: Path) -> list[str]:
    return [name for name in HOSTS if (site / name / ".run.json").exists()]


def test_a_run_has_its_hosts_until_it_ends(site: Path) -> None:
    code, said = run(site)
    assert code == 0, said
    seen = json.loads((site / "data1" / "seen").read_text(encoding="utf-8"))
    assert (seen["playbook"], seen["controller"]) == ("change.yml", os.uname().nodename)
    assert seen == json.loads((site / "data2" / "seen").read_text(encoding="utf-8")) | {"since": seen["since"]}
    assert runs.started(int(seen["pid"])) == "", "it was ansible-playbook's own process, which has ended"
    assert locked(site) == []


def test_a_run_that_leaves_nothing_on_a_host_leaves_no_directory_for_its_lock(site: Path) -> None:
    change = (site / "change.yml").read_text(encoding="utf-8")
    (site / "change.yml").write_text(change + REMOVE, encoding="utf-8")
    code, said = run(site)
    assert code == 0, said
    assert (site / "data1" / "seen").exists(), "what a host still needs stays, with its directory"
    assert not (site / "data2").exists()


def test_a_second_run_is_told_who_has_the_host_and_takes_none(site: Path) -> None:
    path = other_run(site, "data2", os.getpid())
    code, said = run(site)
    assert code == 2, said
    assert "data2 is being changed by alice with site.yml from ctrl1 since 20" in said
    assert f"(process {os.getpid()}). No host was changed." in said
    assert locked(site) == ["data2"]
    assert json.loads(path.read_text(encoding="utf-8"))["who"] == "alice"
    assert not (site / "data1" / "seen").exists()


def test_the_lock_of_a_dead_run_is_taken_over_with_what_was_found(site: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    other_run(site, "data1", ended.pid)
    code, said = run(site)
    assert code == 0, said
    assert "data1: the lock of alice with site.yml from ctrl1 since 20" in said
    assert f"is taken over: process {ended.pid} is gone." in said
    assert locked(site) == []


def test_a_process_that_has_the_number_of_a_dead_run_is_not_it(site: Path) -> None:
    other_run(site, "data1", os.getpid(), started="1")
    code, said = run(site)
    assert code == 0, said
    assert "is gone" in said


ELSEWHERE = {"boot": "another", "system": "another"}


def test_a_run_of_another_controller_is_taken_over_on_request_only(site: Path) -> None:
    other_run(site, "data1", 1, **ELSEWHERE)
    code, said = run(site)
    assert code == 2, said
    assert "Where it is dead, add -e run_lock_takeover=true." in said
    code, said = run(site, "-e", "run_lock_takeover=true")
    assert code == 0, said
    assert "is taken over: as requested." in said


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"id": null}'])
def test_a_record_that_nobody_can_read_is_no_free_host(site: Path, torn: str) -> None:
    other_run(site, "data1", 1).write_text(torn, encoding="utf-8")
    code, said = run(site)
    assert code == 2, said
    assert "is being changed by a run of which nothing is known" in said
    assert run(site, "-e", "run_lock_takeover=true")[0] == 0


def test_a_lock_that_is_a_day_old_is_of_a_dead_run(site: Path) -> None:
    path = other_run(site, "data1", 1, **ELSEWHERE)
    os.utime(path, (path.stat().st_mtime - 25 * 3600,) * 2)
    code, said = run(site)
    assert code == 0, said
    assert "it took the host 25 hours ago" in said


def test_a_controller_that_was_restarted_has_no_run_of_before() -> None:
    own = runs.this_run(os.getpid(), "site.yml")
    before = {**own, "boot": "before", "controller": "ctrl1"}
    assert runs.dead(before, {**own, "system": "one"}, 0) == ""
    assert runs.dead({**before, "system": "one"}, {**own, "system": "one"}, 0) == "ctrl1 was restarted since"


def test_check_mode_takes_no_host(site: Path) -> None:
    other_run(site, "data2", os.getpid())
    (site / "change.yml").write_text(PLAYS[: PLAYS.index("- hosts")], encoding="utf-8")
    code, said = run(site, "--check")
    assert (code, locked(site)) == (0, ["data2"]), said
    assert not (site / "data1").exists()


def test_a_playbook_that_ends_what_runs_on_a_host_refuses_the_controller(site: Path) -> None:
    code, said = run(site, "-e", '{"disrupts": true}')
    assert code == 2, said
    assert "is the machine that runs Ansible. No host was changed." in said
    assert (locked(site), (site / "data1" / "seen").exists()) == ([], False)
    code, said = run(site, "-e", '{"disrupts": true}', "-e", "upgrade_controller_allowed=true")
    assert code == 0, said


def test_a_container_on_the_controller_is_not_the_controller() -> None:
    own = runs.machine()
    assert runs.is_controller(own, own)
    assert not runs.is_controller({**own, "processes": "pid:[1]"}, own)


ASKING = ("layers/announce_stack.yml", "layers/confirm_batch.yml")
RELEASING = {"remove": "layers/remove.yml"}  # the record goes with the last part that the host has


def imports(name: str) -> list[str]:
    plays = yaml.safe_load((REPOSITORY / "playbooks" / f"{name}.yml").read_text(encoding="utf-8"))
    return [play.get("ansible.builtin.import_playbook", "") for play in plays]


# What changes hosts is in layers; plan.yml, preflight.yml, report.yml and verify.yml have none.
PLAYBOOKS = sorted(path.stem for path in (REPOSITORY / "playbooks").glob("*.yml"))
CHANGING = [name for name in PLAYBOOKS if any(layer.startswith("layers/") for layer in imports(name))]


def test_playbooks_without_a_layer_only_read() -> None:
    assert set(PLAYBOOKS) - set(CHANGING) <= {"plan", "preflight", "report", "verify"}


@pytest.mark.parametrize("name", CHANGING)
def test_every_playbook_that_changes_hosts_takes_them_first_and_releases_them_last(name: str) -> None:
    imported = imports(name)
    taken, released = (
        imported.index(layer) for layer in ("layers/run_lock.yml", RELEASING.get(name, "layers/run_unlock.yml"))
    )
    changing = [index for index, layer in enumerate(imported) if layer.startswith("layers/")]
    assert all(taken <= index <= released for index in changing if imported[index] not in ASKING)
