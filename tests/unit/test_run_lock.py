"""One run at a time changes a host: layers/run_lock.yml with the real ansible-playbook; the hosts are directories."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import ansible_programs
import pytest
import python_files
import yaml
from ansible_programs import LOCAL, REPOSITORY, imports, tasks_in
from other_processes import ended

from hadoop_dl.hosts import runs

LAYERS = REPOSITORY / "playbooks" / "layers"
CALLBACK = REPOSITORY / "plugins" / "callback" / "run_lock.py"
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


def record_of(pid: int, **changes: str) -> dict[str, Any]:
    """What another run writes; alice started it in process `pid` of this machine."""
    return {**runs.this_run(pid, "site.yml"), "id": "other", "who": "alice", "controller": "ctrl1", **changes}


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


def test_a_run_has_its_hosts_until_it_ends(site):
    code, output = run(site, "-v", "-e", json.dumps({"ask": "stat -c 'mode %a ' {{ environment_root }}/.run.json"}))
    assert code == 0, output
    text = (site / "data1" / "seen").read_text(encoding="utf-8")
    record = json.loads(text)
    assert (record["playbook"], record["controller"]) == ("change.yml", os.uname().nodename)
    assert record == json.loads((site / "data2" / "seen").read_text(encoding="utf-8")) | {"since": record["since"]}
    assert runs.started(int(record["pid"])) == "", "it was ansible-playbook's own process, which has ended"
    assert locked(site) == []
    assert "mode 600" in output, output


def test_a_run_that_leaves_nothing_on_a_host_leaves_no_directory_for_its_lock(site):
    (site / "change.yml").write_text(PLAYS + LOCK + REMOVE + UNLOCK, encoding="utf-8")
    code, output = run(site)
    assert code == 0, output
    assert (site / "data1" / "seen").exists(), "what a host still needs stays, with its directory"
    assert not (site / "data2").exists()


def test_hosts_of_other_runs_are_refused_and_taken_over_on_request_only(site):
    torn_records = {"empty": "", "cut": "{", "list": "[]", "nobody": '{"id": null}'}
    alice = {"lives": "20", "old": "20", "elsewhere": "20", "clock": "1970"}
    with_hosts(site, "free", *alice, *torn_records)
    other_run(site, "lives", os.getpid())
    os.utime(other_run(site, "old", os.getpid()), (0, 0))
    other_run(site, "elsewhere", ended(), machine="another")
    # The clock of that host, or of the controller, was set: a step of a clock ends no run.
    os.utime(other_run(site, "clock", 1, machine="another", since="1970-01-01 00:00:00 UTC"), (0, 0))
    for name, text in torn_records.items():
        other_run(site, name, 1).write_text(text, encoding="utf-8")
    before = records(site)
    code, output = run(site)
    assert (code, records(site)) == (2, before), output
    expected = [
        f"{name} is being changed by alice with site.yml from ctrl1 since {year}" for name, year in alice.items()
    ]
    expected += [f"{name} is being changed by an unidentified run" for name in torn_records]
    expected += [f"(process {os.getpid()}). No host was changed.", "If it was killed, add -e run_lock_takeover=true."]
    assert [sentence for sentence in expected if sentence not in output] == []
    assert not (site / "free" / "seen").exists()

    code, output = run(site, "-e", "run_lock_takeover=true")
    assert (code, records(site)) == (0, {}), output
    assert len(re.findall("is taken over: as requested[.]", output)) >= len(alice)


def test_the_locks_of_runs_that_have_ended_here_are_taken_over(site):
    pid = ended()
    with_hosts(site, "ended", "number")
    other_run(site, "ended", pid)
    other_run(site, "number", os.getpid(), started="1")  # another process has the number of the one that ended
    code, output = run(site)
    assert (code, records(site)) == (0, {}), output
    for host, number in {"ended": pid, "number": os.getpid()}.items():
        words = rf"{host}: the lock of alice .{{,80}}since 20.{{,80}}is taken over: process {number} is gone[.]"
        assert re.search(words, output), output


@pytest.mark.parametrize("changes", [{"machine": ""}, {"machine": "another"}, {"pid": 1, "who": "alice"}])
def test_of_a_run_elsewhere_or_of_an_earlier_release_nothing_is_known(changes):
    record = changes if "who" in changes else {**record_of(ended()), **changes}
    assert not runs.has_ended(record)
    assert runs.has_ended({**record_of(ended()), "pid": "many"}), "a torn one of this machine"


def test_text_of_a_lock_does_not_move_the_cursor():
    text = runs.told({"who": "a\x1b[2Jlice\n", "playbook": "x" * 999, "controller": 5, "since": None, "pid": "1"})
    assert text.isprintable()
    assert len(text) < 400


def fails(site: Path, *options: str) -> str:
    code, output = run(site, *options)
    assert code != 0, output
    return output


def test_a_run_that_skips_parts_has_its_hosts_and_leaves_no_lock_if_it_fails_on_all_of_them(site):
    options = ("--skip-tags", "verify,environment")
    code, output = run(site, *options)
    assert code == 0, output
    assert (site / "data1" / "seen").exists(), "a copy of the lock"
    fails(site, *options, "-e", json.dumps({"ask": "false", "asked": HOSTS}))
    assert locked(site) == []


def test_a_run_takes_the_hosts_that_need_one_of_its_parts(site):
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


def test_a_run_without_the_callback_takes_no_host_and_names_the_setting(site):
    code, output = run(site, ANSIBLE_CALLBACK_PLUGINS=str(site / "none"))
    assert code == 2, output
    assert f"Add {CALLBACK.parent} to callback_plugins in ansible.cfg" in output
    assert locked(site) == []


def test_the_playbooks_have_the_callback_also_where_another_setting_names_others(site):
    """ansible-runner sets this variable. Ansible loads a plugin that it finds twice once."""
    shutil.copytree(REPOSITORY / "playbooks", site / "playbooks", symlinks=True)
    (site / "plugins").symlink_to(REPOSITORY / "plugins")
    (site / "playbooks" / "change.yml").write_text(PLAYS, encoding="utf-8")
    loads = set()
    for path in (str(site / "none"), str(CALLBACK.parent)):
        code, output = ansible_programs.play(
            *("-i", site / "hosts.yml", site / "playbooks" / "change.yml", "-e", '{"ask": "false"}', "-vvvvv"),
            ANSIBLE_CALLBACK_PLUGINS=path,
        )
        assert (code, locked(site)) == (2, []), output
        loads.add(output.count("Attempting to use 'run_lock' callback"))
    assert len(loads) == 1, loads


def test_a_host_that_is_lost_while_it_is_taken_may_have_the_lock():
    callback = python_files.load(CALLBACK).CallbackModule()
    result = mock.Mock(_task=mock.Mock(action="run_lock"))
    result._host.get_name.return_value = "data1"
    callback.v2_runner_on_unreachable(result)
    assert callback.held == {"data1"}


def test_a_run_that_ends_at_a_fatal_error_leaves_no_lock(site):
    play = CHANGE.replace("  tasks:", "  any_errors_fatal: true\n  tasks:")
    (site / "change.yml").write_text(LOCK + play + UNLOCK, encoding="utf-8")
    fails(site, "-e", json.dumps({"ask": "false"}))
    assert locked(site) == []


def test_a_host_that_keeps_the_lock_of_a_run_that_failed_is_named(site):
    command = "sh -c 'cd {{ environment_root }} && rm .lock && mkdir .lock'"
    output = fails(site, "-e", json.dumps({"ask": command}))
    words = "The locks of this run could not be released on data1. The next run from this machine takes them over"
    assert words in output
    assert locked(site) == ["data1"]


def test_check_mode_takes_no_host(site):
    other_run(site, "data2", os.getpid())
    (site / "change.yml").write_text(LOCK, encoding="utf-8")
    code, output = run(site, "--check")
    assert (code, locked(site)) == (0, ["data2"]), output
    assert not (site / "data1").exists()


def test_a_playbook_that_ends_what_runs_on_a_host_refuses_the_controller(site):
    code, output = run(site, "-e", '{"disrupts": true}')
    assert code == 2, output
    assert "is the machine that runs Ansible. No host was changed." in output
    assert (locked(site), (site / "data1" / "seen").exists()) == ([], False)
    code, output = run(site, "-e", '{"disrupts": true}', "-e", "upgrade_controller_allowed=true")
    assert code == 0, output


ASKING = (
    "layers/announce_stack.yml",
    "layers/confirm_batch.yml",
    "layers/hadoop_login.yml",
    "layers/plan_packages.yml",
)
RELEASING = {"remove": "layers/remove.yml"}  # the record goes with the last part that the host has


# What changes hosts is in layers; preflight.yml, report.yml and verify.yml have none, plan.yml one that only asks.
PLAYBOOKS = sorted(path.stem for path in (REPOSITORY / "playbooks").glob("*.yml"))
CHANGING = [name for name in PLAYBOOKS if any(layer.startswith("layers/") for layer in {*imports(name)} - {*ASKING})]


def test_playbooks_without_a_layer_only_read():
    """But for bootstrap_ssh, which comes before a host can be locked, and adds a line to its login's own file."""
    reading = {"accept_gpus", "plan", "preflight", "report", "verify"}
    assert set(PLAYBOOKS) - set(CHANGING) <= {*reading, "bootstrap_ssh"}


@pytest.mark.parametrize("name", CHANGING)
def test_every_playbook_that_changes_hosts_takes_them_first_and_releases_them_last(name):
    imported = imports(name)
    take_index, release_index = (
        imported.index(layer) for layer in ("layers/run_lock.yml", RELEASING.get(name, "layers/run_unlock.yml"))
    )
    changing = [index for index, layer in enumerate(imported) if layer.startswith("layers/")]
    assert all(take_index <= index <= release_index for index in changing if imported[index] not in ASKING)


def test_no_task_of_the_lock_waits_longer_than_a_minute():
    tasks = [task for path in LAYERS.glob("*.yml") for task in tasks_in(path)]
    limits = [task.get("timeout", 0) for task in tasks if "run_lock" in task]
    assert len(limits) >= 4
    assert all(0 < limit <= 60 for limit in limits)
