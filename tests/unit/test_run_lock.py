"""One run at a time changes a host: layers/run_lock.yml with the real ansible-playbook; the hosts are directories."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest import mock

import ansible_programs
import pytest
import python_files
import run_lock as module
import yaml
from ansible_programs import LOCAL, REPOSITORY, tasks_in
from other_processes import ended, wait_until

from hadoop_dl.hosts import runs

LAYERS = REPOSITORY / "playbooks" / "layers"
RENEWAL = REPOSITORY / "plugins" / "callback" / "run_lock.py"
HOSTS = ("data1", "data2")
LOCK = f"""
- ansible.builtin.import_playbook: {LAYERS}/run_lock.yml
  vars: {{run_lock_hosts: all, run_lock_disrupts: "{{{{ disrupts | default(false) }}}}"}}
"""
UNLOCK = f"""
- ansible.builtin.import_playbook: {LAYERS}/run_unlock.yml
  vars: {{run_lock_hosts: all}}
"""
CHANGE = """
- hosts: all
  gather_facts: false
  tasks:
    - name: Change the host
      ansible.builtin.copy:
        src: "{{ environment_root }}/.run.json"
        dest: "{{ environment_root }}/seen"
        remote_src: true
        mode: "0644"
    - name: Do what a test asks for
      ansible.builtin.command: "{{ ask }}"
      when: ask is defined and inventory_hostname in asked | default(['data1'])
"""
REMOVE = """
- hosts: data2
  gather_facts: false
  tasks:
    - name: Remove the last file
      ansible.builtin.file:
        path: "{{ environment_root }}/seen"
        state: absent
"""
PLAYS = LOCK + CHANGE + UNLOCK


@pytest.fixture
def site(tmp_path: Path) -> Path:
    with_hosts(tmp_path, *HOSTS)
    (tmp_path / "change.yml").write_text(PLAYS, encoding="utf-8")
    return tmp_path


def with_hosts(site: Path, *names: str) -> None:
    hosts = {name: {"environment_root": str(site / name)} for name in names}
    (site / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": LOCAL, "hosts": hosts}}), encoding="utf-8")


def run(site: Path, *options: str, **environment: str) -> tuple[int, str]:
    return ansible_programs.play("-i", site / "hosts.yml", site / "change.yml", *options, **environment)


def record_of(pid: int, identity: dict[str, str] | None = None, hours: float = 0, **changes: str) -> dict[str, Any]:
    """What another run writes; alice started it in process `pid`, on this machine or the one of `identity`, and it was silent for some hours."""
    place = runs.identified(identity or runs.controller(), "other")
    renewal_time = {"boot": runs.machine()["boot"], "seconds": module.moment()["seconds"] - int(hours * 3600)}
    record = {**runs.this_run(pid, "site.yml"), **place, "id": "other", "who": "alice", "controller": "ctrl1"}
    return {**record, "renewed": renewal_time, **changes}


def other_run(site: Path, host: str, pid: int, **changes: Any) -> Path:
    """Another run has the host."""
    (site / host).mkdir(exist_ok=True)
    path = site / host / ".run.json"
    path.write_text(json.dumps(record_of(pid, **changes)), encoding="utf-8")
    return path


def records(site: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(site.glob("*/.run.json"))}


def locked(site: Path) -> list[str]:
    return list(records(site))


def test_a_run_has_its_hosts_until_it_ends(site: Path) -> None:
    code, output = run(site, "-v", "-e", json.dumps({"ask": "stat -c 'mode %a ' {{ environment_root }}/.run.json"}))
    assert code == 0, output
    text = (site / "data1" / "seen").read_text(encoding="utf-8")
    record = json.loads(text)
    assert (record["playbook"], record["controller"]) == ("change.yml", os.uname().nodename)
    assert record == json.loads((site / "data2" / "seen").read_text(encoding="utf-8")) | {
        key: record[key] for key in ("since", "renewed")
    }
    assert runs.started(int(record["pid"])) == "", "it was ansible-playbook's own process, which has ended"
    assert locked(site) == []
    # Who does not know the controller learns nothing about it.
    assert "mode 600" in output, output
    controller = runs.controller()
    for secret in (controller["boot"], controller["processes"], controller["system"]):
        assert not secret or secret not in text.replace(json.dumps(record["renewed"], sort_keys=True), "")


def test_a_run_that_leaves_nothing_on_a_host_leaves_no_directory_for_its_lock(site: Path) -> None:
    (site / "change.yml").write_text(PLAYS + LOCK + REMOVE + UNLOCK, encoding="utf-8")
    code, output = run(site)
    assert code == 0, output
    assert (site / "data1" / "seen").exists(), "what a host still needs stays, with its directory"
    assert not (site / "data2").exists()


ELSEWHERE = {"boot": "another", "processes": runs.FIRST_PROCESSES, "system": "another"}
CONTAINER = {"boot": "another", "processes": "pid:[4026532000]", "system": "image"}


def test_hosts_of_other_runs_are_refused_and_taken_over_on_request_only(site: Path) -> None:
    torn_records = {"empty": "", "cut": "{", "list": "[]", "nobody": '{"id": null}'}
    alice = {"lives": "20", "old": "20", "elsewhere": "20", "clock": "1970"}
    with_hosts(site, "free", *alice, *torn_records)
    other_run(site, "lives", os.getpid())
    os.utime(other_run(site, "old", os.getpid(), hours=200), (0, 0))
    other_run(site, "elsewhere", 1, identity=ELSEWHERE)
    # The clock of that host, or of the controller, was set: a step of a clock ends no run.
    os.utime(other_run(site, "clock", 1, identity=ELSEWHERE, since="1970-01-01 00:00:00 UTC"), (0, 0))
    for name, text in torn_records.items():
        other_run(site, name, 1).write_text(text, encoding="utf-8")
    before = records(site)
    code, output = run(site)
    assert (code, records(site)) == (2, before), output
    expected = [
        f"{name} is being changed by alice with site.yml from ctrl1 since {year}" for name, year in alice.items()
    ]
    expected += [f"{name} is being changed by an unidentified run" for name in torn_records]
    expected += [f"(process {os.getpid()}). No host was changed.", "If it is dead, add -e run_lock_takeover=true."]
    assert [sentence for sentence in expected if sentence not in output] == []
    assert not (site / "free" / "seen").exists()

    code, output = run(site, "-e", "run_lock_takeover=true")
    assert (code, records(site)) == (0, {}), output
    assert len(re.findall("is taken over: as requested[.]", output)) >= len(alice)


def test_the_locks_of_dead_runs_are_taken_over_with_what_was_found(site: Path) -> None:
    pid = ended()
    with_hosts(site, "ended", "number", "silent", "earlier")
    other_run(site, "ended", pid)
    other_run(site, "number", os.getpid(), started="1")  # another process has the number of the dead one
    other_run(site, "silent", 1, identity=ELSEWHERE, hours=25)
    path = other_run(site, "earlier", 1)  # an earlier release wrote no renewals and no place: its file has the time
    record = {"id": "other", "who": "alice", "pid": 1, "since": "2026-01-01 00:00:00 UTC"}
    path.write_text(json.dumps(record), encoding="utf-8")
    assert module.silence(record, str(path)) < 60
    os.utime(path, (time.time() - 25 * 3600,) * 2)
    code, output = run(site)
    assert (code, records(site)) == (0, {}), output
    expected = {"ended": f"process {pid} is gone", "number": f"process {os.getpid()} is gone"}
    expected |= dict.fromkeys(("silent", "earlier"), "it was last heard of 25 hours ago")
    missing_hosts = {
        host
        for host, why in expected.items()
        if not re.search(rf"{host}: the lock of alice .{{,80}}since 20.{{,80}}is taken over: {why}[.]", output)
    }
    assert not missing_hosts, output


@pytest.mark.parametrize(
    ("renewed", "silent"),
    [
        ({"boot": "B", "seconds": 100}, 4900),
        ({"boot": "B", "seconds": 9000}, 0),
        ({"boot": "A", "seconds": 100}, 5000),  # the host was restarted: it was silent since then at least
        (None, 0),  # torn
        ({"boot": "B", "seconds": "many"}, 0),
    ],
)
def test_silence_is_counted_since_the_host_was_started(
    renewed: Any, silent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "moment", lambda: {"boot": "B", "seconds": 5000})
    assert module.silence({"renewed": renewed, "since": "1970-01-01 00:00:00 UTC"}, "/absent") == silent


def test_a_controller_that_was_restarted_has_no_run_of_before() -> None:
    controller = {"boot": "now", "processes": runs.FIRST_PROCESSES, "system": "one"}
    record = record_of(1, {**controller, "boot": "before"})
    assert runs.dead(record, controller, 0) == "ctrl1 was restarted since"
    assert runs.dead(record, {**controller, "system": ""}, 0) == ""


def test_containers_of_one_image_are_not_one_controller() -> None:
    record = record_of(1, CONTAINER)
    assert runs.dead(record, {**CONTAINER, "boot": "now"}, 0) == ""
    assert runs.dead(record, {**CONTAINER, "processes": "pid:[4026532111]"}, 0) == "", "it may run beside this one"
    assert runs.dead({**record, "started": "1"}, CONTAINER, 0) == "process 1 is gone"


def test_a_job_that_was_started_again_is_not_refused_by_its_own_lock(site: Path) -> None:
    template = "awx_job_template_name=upgrade"
    other_run(site, "data1", 1, identity=CONTAINER, job="AWX job 41 of upgrade")
    code, output = run(site, "-e", "awx_job_id=42", "-e", template)
    assert code == 2, output
    assert re.search(r"since 20[^(]*[(]AWX job 41 of upgrade[)]", output), "where the operator looks"
    code, output = run(site, "-e", "awx_job_id=41", "-e", template, "-e", "awx_user_name=bob")
    assert code == 0, output
    assert "is taken over: AWX job 41 of upgrade was started again." in output
    record = json.loads((site / "data1" / "seen").read_text(encoding="utf-8"))
    assert (record["who"], record["job"]) == ("bob", "AWX job 41 of upgrade")


def test_text_of_a_lock_does_not_move_the_cursor() -> None:
    text = runs.told({"who": "a\x1b[2Jlice\n", "playbook": "x" * 999, "controller": 5, "since": None, "pid": "1"})
    assert text.isprintable()
    assert len(text) < 400


def fails(site: Path, *options: str) -> str:
    code, output = run(site, *options)
    assert code != 0, output
    return output


def test_a_run_that_skips_parts_has_its_hosts_and_leaves_no_lock_if_it_fails_on_all_of_them(site: Path) -> None:
    options = ("--skip-tags", "verify,environment")
    code, output = run(site, *options)
    assert code == 0, output
    assert (site / "data1" / "seen").exists(), "a copy of the lock"
    fails(site, *options, "-e", json.dumps({"ask": "false", "asked": HOSTS}))
    assert locked(site) == []


def test_a_run_takes_the_hosts_that_need_one_of_its_parts(site: Path) -> None:
    layers = "".join(f"- ansible.builtin.import_playbook: {LAYERS}/{name}.yml\n" for name in ("run_lock", "run_unlock"))
    (site / "change.yml").write_text(layers, encoding="utf-8")
    inventory = yaml.safe_load((site / "hosts.yml").read_text(encoding="utf-8"))
    groups = {"needs_environment": ["data1"], "needs_verify": HOSTS}
    inventory["all"]["children"] = {group: {"hosts": dict.fromkeys(names)} for group, names in groups.items()}
    (site / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    for options, hosts in (
        ((), HOSTS),
        (("--tags", "environment"), HOSTS),  # the verification runs with every part
        (("--tags", "plan"), ()),
        (("--skip-tags", "environment"), HOSTS),
        (("--skip-tags", "verify"), ("data1",)),
    ):
        code, output = run(site, *options)
        assert code == 0, output
        assert output.count("TASK [Lock the host]") == bool(hosts)
        assert re.findall(r"(data\d) +: ok=", output) == list(hosts), output


def test_a_run_without_the_callback_takes_no_host_and_names_the_setting(site: Path) -> None:
    code, output = run(site, ANSIBLE_CALLBACK_PLUGINS=str(site / "none"))
    assert code == 2, output
    assert f"Add {RENEWAL.parent} to callback_plugins in ansible.cfg" in output
    assert locked(site) == []


def test_the_playbooks_have_the_callback_also_where_another_setting_names_others(site: Path) -> None:
    """ansible-runner sets this variable. Ansible loads a plugin that it finds twice once."""
    shutil.copytree(REPOSITORY / "playbooks", site / "playbooks", symlinks=True)
    (site / "plugins").symlink_to(REPOSITORY / "plugins")
    (site / "playbooks" / "change.yml").write_text(PLAYS, encoding="utf-8")
    loads = set()
    for path in (str(site / "none"), str(RENEWAL.parent)):
        code, output = ansible_programs.play(
            *("-i", site / "hosts.yml", site / "playbooks" / "change.yml", "-e", '{"ask": "false"}', "-vvvvv"),
            ANSIBLE_CALLBACK_PLUGINS=path,
        )
        assert (code, locked(site)) == (2, []), output
        loads.add(output.count("Attempting to use 'run_lock' callback"))
    assert len(loads) == 1, loads


@pytest.fixture
def renewal() -> Any:
    return python_files.load(RENEWAL).CallbackModule()


@pytest.mark.parametrize("ended", [False, True])
def test_a_process_without_its_own_session_or_gone_keeps_no_lock(renewal: Any, ended: bool) -> None:
    child = subprocess.Popen(["true" if ended else "sleep", "60"])
    if ended:
        child.wait()
    released: list[str] = []
    renewal.renewing, renewal.held, renewal.every_host = (
        child.pid,
        {"data1"},
        lambda state: released.append(state) or [],
    )
    renewal.v2_playbook_on_stats(None)
    assert (released, renewal.renewing, renewal.held) == (["released"], 0, set())
    assert child.wait(10) is not None


def test_a_host_that_is_lost_while_it_is_taken_may_have_the_lock(renewal: Any) -> None:
    result = mock.Mock(_task=mock.Mock(action="run_lock"))
    result._host.get_name.return_value = "data1"
    renewal.v2_runner_on_unreachable(result)
    assert renewal.held == {"data1"}


def test_a_run_that_ends_at_a_fatal_error_leaves_no_lock(site: Path) -> None:
    play = CHANGE.replace("  tasks:", "  any_errors_fatal: true\n  tasks:")
    (site / "change.yml").write_text(LOCK + play + UNLOCK, encoding="utf-8")
    fails(site, "-e", json.dumps({"ask": "false"}))
    assert locked(site) == []


def test_a_host_that_keeps_the_lock_of_a_run_that_failed_is_named(site: Path) -> None:
    command = "sh -c 'cd {{ environment_root }} && rm .lock && mkdir .lock'"
    output = fails(site, "-e", json.dumps({"ask": command}))
    words = "The locks of this run could not be released on data1. The next run from this controller takes them over"
    assert words in output
    assert locked(site) == ["data1"]


@pytest.fixture
def hasty(tmp_path: Path) -> str:
    """The callback, with an hour in a second."""
    text = RENEWAL.read_text(encoding="utf-8")
    for constant in ("EVERY = 1800", "GLANCE = 2"):
        assert constant in text
        text = text.replace(constant, constant.split()[0] + " = 0.2")
    (tmp_path / "callback").mkdir()
    (tmp_path / "callback" / "run_lock.py").write_text(text, encoding="utf-8")
    return str(tmp_path / "callback")


WAIT = """
import json, os, sys, time
path, known, end = sys.argv[1] + "/.run.json", set(), time.time() + 60
while len(known) < 3 and time.time() < end:
    known.add(json.load(open(path))["renewed"]["seconds"])
    time.sleep(0.1)
sys.exit(len(known) < 3)
"""


def test_the_locks_of_every_host_are_renewed_while_one_task_of_one_host_lasts(site: Path, hasty: str) -> None:
    (site / "wait.py").write_text(WAIT, encoding="utf-8")
    variables = {"ask": f"{sys.executable} {site}/wait.py {site}/data2", "asked": ["data1"]}
    code, output = run(site, "-e", json.dumps(variables), ANSIBLE_CALLBACK_PLUGINS=hasty)
    assert code == 0, output
    assert locked(site) == []


def test_the_process_that_renews_ends_with_a_run_that_is_killed(site: Path, hasty: str) -> None:
    variables = {"ask": "sleep 61.5", "asked": ["data1"]}
    arguments = ("-i", site / "hosts.yml", site / "change.yml", "-e", json.dumps(variables))
    run_of_ours = ansible_programs.start(*arguments, ANSIBLE_CALLBACK_PLUGINS=hasty)
    try:
        wait_until((site / "data1" / "seen").exists)
        wait_until(lambda: renewed(site) > json.loads((site / "data1" / "seen").read_text())["renewed"]["seconds"])
    finally:
        os.killpg(run_of_ours.pid, signal.SIGKILL)
        run_of_ours.communicate()
    time.sleep(3)
    last = renewed(site)
    time.sleep(2.5)
    assert renewed(site) == last
    assert locked(site) == list(HOSTS)


def renewed(site: Path) -> int:
    return int(json.loads((site / "data2" / ".run.json").read_text(encoding="utf-8"))["renewed"]["seconds"])


def test_check_mode_takes_no_host(site: Path) -> None:
    other_run(site, "data2", os.getpid())
    (site / "change.yml").write_text(LOCK, encoding="utf-8")
    code, output = run(site, "--check")
    assert (code, locked(site)) == (0, ["data2"]), output
    assert not (site / "data1").exists()


def test_a_playbook_that_ends_what_runs_on_a_host_refuses_the_controller(site: Path) -> None:
    code, output = run(site, "-e", '{"disrupts": true}')
    assert code == 2, output
    assert "is the machine that runs Ansible. No host was changed." in output
    assert (locked(site), (site / "data1" / "seen").exists()) == ([], False)
    code, output = run(site, "-e", '{"disrupts": true}', "-e", "upgrade_controller_allowed=true")
    assert code == 0, output


def test_a_container_on_the_controller_is_not_the_controller() -> None:
    machine = runs.machine()
    assert runs.is_controller(machine, machine)
    assert not runs.is_controller({**machine, "processes": "pid:[1]"}, machine)


ASKING = ("layers/announce_stack.yml", "layers/confirm_batch.yml", "layers/hadoop_login.yml")
RELEASING = {"remove": "layers/remove.yml"}  # the record goes with the last part that the host has


def imports(name: str) -> list[str]:
    plays = yaml.safe_load((REPOSITORY / "playbooks" / f"{name}.yml").read_text(encoding="utf-8"))
    return [play.get("ansible.builtin.import_playbook", "") for play in plays]


# What changes hosts is in layers; plan.yml, preflight.yml, report.yml and verify.yml have none.
PLAYBOOKS = sorted(path.stem for path in (REPOSITORY / "playbooks").glob("*.yml"))
CHANGING = [name for name in PLAYBOOKS if any(layer.startswith("layers/") for layer in imports(name))]


def test_playbooks_without_a_layer_only_read() -> None:
    assert set(PLAYBOOKS) - set(CHANGING) <= {"accept_gpus", "benchmark", "plan", "preflight", "report", "verify"}


@pytest.mark.parametrize("name", CHANGING)
def test_every_playbook_that_changes_hosts_takes_them_first_and_releases_them_last(name: str) -> None:
    imported = imports(name)
    take_index, release_index = (
        imported.index(layer) for layer in ("layers/run_lock.yml", RELEASING.get(name, "layers/run_unlock.yml"))
    )
    changing = [index for index, layer in enumerate(imported) if layer.startswith("layers/")]
    assert all(take_index <= index <= release_index for index in changing if imported[index] not in ASKING)


def test_no_task_of_the_lock_waits_longer_than_a_minute() -> None:
    tasks = [task for path in LAYERS.glob("*.yml") for task in tasks_in(path)]
    limits = [task.get("timeout", 0) for task in tasks if "run_lock" in task]
    assert len(limits) >= 4
    assert all(0 < limit <= 60 for limit in limits)
