"""Playbooks: each one in playbooks/ can be run alone, through the real ansible-playbook, and refuses in one sentence."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.mod_args import ModuleArgsParser
from ansible_programs import run

REPOSITORY = Path(__file__).resolve().parents[2]
PLAYBOOKS = sorted((REPOSITORY / "playbooks").glob("*.yml"))
# The way back and the way out make no plan: they must not wait until the inventory is in order. The report makes its own, which ends at no problem.
PLAN_FIRST = [path for path in PLAYBOOKS if path.stem not in ("preflight", "rollback", "remove", "report")]
LOCAL = "ansible_connection=local ansible_become=false ansible_python_interpreter=auto_silent"


def play(playbook: str, tmp_path: Path, groups: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook against this machine, which the plan only reads."""
    text = "".join(f"[{group}]\n{name} {LOCAL}\n" for name, group in groups.items())
    (tmp_path / "hosts").write_text(text, encoding="utf-8")
    path = REPOSITORY / "playbooks" / playbook
    return run("ansible-playbook", "-i", str(tmp_path / "hosts"), str(path), *options)


@pytest.mark.parametrize("path", PLAN_FIRST, ids=lambda path: path.stem)
def test_a_playbook_plans_before_it_addresses_hosts(path: Path) -> None:
    first = yaml.safe_load(path.read_text(encoding="utf-8"))[0]
    assert first["ansible.builtin.import_playbook"] == "preflight.yml"


@pytest.mark.parametrize(
    ("inventory", "command_line", "hosts"), [("2", (), 2), ("2", ("-e", "upgrade_batch=1"), 1), ("", (), 1)]
)
def test_the_batch_of_an_upgrade_is_read_from_the_inventory_too(
    inventory: str, command_line: tuple[str, ...], hosts: int, tmp_path: Path
) -> None:
    plays = yaml.safe_load((REPOSITORY / "playbooks" / "layers" / "upgrade.yml").read_text(encoding="utf-8"))
    (serial,) = {found["serial"] for found in plays if "serial" in found}
    group = "needs_nvidia_driver"
    shown = {"name": "Show", "ansible.builtin.debug": {"msg": "batch of {{ ansible_play_batch | length }}"}}
    probe = {"name": "Probe", "hosts": group, "gather_facts": False, "serial": serial, "tasks": [shown]}
    # As in the playbook, a play comes before: Ansible has no hostvars for the first one.
    before = {"name": "Plan", "hosts": group, "gather_facts": False}
    (tmp_path / "probe.yml").write_text(yaml.safe_dump([before, probe]), encoding="utf-8")
    variable = f" upgrade_batch={inventory}" if inventory else ""
    (tmp_path / "hosts").write_text("".join(f"[{group}]\n{name} {LOCAL}{variable}\n" for name in ("a", "b")))
    answer = run("ansible-playbook", "-i", str(tmp_path / "hosts"), str(tmp_path / "probe.yml"), *command_line)
    assert answer.stdout.count(f"batch of {hosts}") == 2, answer.stdout + answer.stderr


@pytest.mark.parametrize(
    ("playbook", "first", "changes", "may_replace_driver"),
    [
        ("driver", ["preflight.yml"], "main.yml", True),
        (
            "kernel",
            ["preflight.yml", "kernel_request.yml"],
            "kernel.yml",
            False,
        ),  # Debian is refused before repository.yml
    ],
)
def test_both_upgrades_are_one_rollout_with_checks_and_a_way_back_of_their_own(
    playbook: str, first: list[str], changes: str, may_replace_driver: bool
) -> None:
    _, confirm, lock, upgrade, *after = yaml.safe_load(
        (REPOSITORY / "playbooks" / f"upgrade_{playbook}.yml").read_text(encoding="utf-8")
    )
    assert confirm["ansible.builtin.import_playbook"] == "layers/confirm_batch.yml"
    assert lock["vars"] == {"run_lock_disrupts": True}
    # CDSW below 1.6 has the driver's version in its settings.
    last = ["layers/cdsw.yml"] * may_replace_driver + ["layers/run_unlock.yml"]
    assert [play["ansible.builtin.import_playbook"] for play in after] == last
    assert upgrade["ansible.builtin.import_playbook"] == "layers/upgrade.yml"
    given = upgrade["vars"]
    assert given["upgrade_checks"][: len(first) + 1] == [*first, "repository.yml"]  # which defines a repository
    role = REPOSITORY / "roles" / "nvidia_driver" / "tasks"
    assert [name for name in [*given["upgrade_checks"], given["upgrade_tasks"]] if not (role / name).exists()] == []
    assert given["upgrade_tasks"] == changes
    assert given["upgrade_way_back"].startswith(f"playbooks/upgrade_{playbook}.yml -e ")
    assert given.get("nvidia_driver_upgrade_allowed", False) is may_replace_driver
    variable = "nvidia_driver_version" if playbook == "driver" else "nvidia_driver_kernel_version"
    assert given["upgrade_reminder"].startswith(f"Set {variable}: ")


def test_a_rollout_checks_all_hosts_first_and_stops_at_the_first_failure() -> None:
    plays = yaml.safe_load((REPOSITORY / "playbooks" / "layers" / "upgrade.yml").read_text(encoding="utf-8"))
    check, change, remind = plays
    assert remind["tasks"][-1]["ansible.builtin.debug"]["msg"] == "{{ upgrade_reminder }}"
    assert (check["any_errors_fatal"], change["any_errors_fatal"]) == (True, True)
    assert "serial" not in check
    assert check["tasks"][-1]["ansible.builtin.include_role"]["tasks_from"] == "read_working_versions.yml"
    (rollout,) = change["tasks"]
    kept = (
        "manager_maintenance" in task for task in (rollout["block"].pop(0), rollout["block"].pop())
    )  # test_manager_changes.py
    assert all(kept)
    files = [task.get("ansible.builtin.include_role", {}).get("tasks_from") for task in rollout["block"]]
    written = files.index("write_working_versions.yml")
    assert written < files.index("{{ upgrade_tasks }}") < files.index("accept.yml")  # which removes them
    assert "include_tasks" in next(iter(rollout["block"][-1].keys() - {"name", "when"}))  # the host goes back last
    (stop,) = rollout["rescue"]
    for words in ("rollout stopped at", "resumes it", "{{ upgrade_way_back }} --limit"):
        assert words in stop["ansible.builtin.fail"]["msg"]


def test_the_layers_see_the_same_variables_as_the_playbooks() -> None:
    here, there = (REPOSITORY / "playbooks" / name / "group_vars" / "all.yml" for name in ("", "layers"))
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("playbook", ["gpu.yml", "mirror.yml", "frameworks.yml", "hadoop.yml"])
def test_a_playbook_that_is_run_alone_says_what_it_would_do(playbook: str, tmp_path: Path) -> None:
    answer = play(playbook, tmp_path, {"build1": "build_hosts"}, "--check")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "PLAN: 1 hosts are as planned; nothing to do." in answer.stdout


def test_a_sites_tasks_beside_the_inventory_are_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[data_nodes]\ndata1\n", encoding="utf-8")
    for name in ("upgrade_driver_before.yml", "upgrade_driver_after.yml"):
        (tmp_path / name).write_text("- name: Read the site's list\n  ansible.builtin.meta: noop\n", encoding="utf-8")
    answer = run("ansible-inventory", "--inventory", str(tmp_path), "--graph")
    assert "data1" in answer.stdout
    assert "WARNING" not in answer.stderr


def test_wrong_inputs_are_one_list_of_sentences_and_no_exception(tmp_path: Path) -> None:
    values = {
        "nvidia_driver_reboot_allowed": "maybe",
        "upgrade_batch": 0,
        "deeplearning_unreachable": "Continue",
        "mirror_url": "{{ nowhere }}",
        "gpu_count": "³",
        "deeplearning_request": {"tensorflow": 1.15},
        "cudnn_versions": [{"cuda": "12.2"}],
        "mirror_root": "/",
        "hadoop_client_java_home": "/usr/lib/jvm\nrogue",
    }
    answer = play("site.yml", tmp_path, {"build1": "build_hosts"}, "-e", json.dumps(values))
    said = answer.stdout + answer.stderr
    assert answer.returncode == 2
    assert "9 problems found; no host was changed." in said
    assert [name for name in values if f"build1: {name} " not in said] == []
    assert "mirror_url cannot be evaluated: 'nowhere' is undefined" in said
    assert [word for word in ("xception", "Traceback", "NoneType", "MODULE FAILURE") if word in said] == []


def test_a_file_for_the_plan_in_no_directory_is_refused_in_a_sentence(tmp_path: Path) -> None:
    there = tmp_path / "missing" / "plan.json"
    answer = play("plan.yml", tmp_path, {"build1": "build_hosts"}, "-e", f"preflight_plan_file={there}")
    assert answer.returncode == 2
    assert "preflight_plan_file must be a file that the controller can write" in answer.stdout
    assert "xception" not in answer.stdout + answer.stderr


def test_templates_may_use_hostvars_and_variables_of_the_plan(tmp_path: Path) -> None:
    values = {
        "address": "192.0.2.1",
        "mirror_url": "http://{{ hostvars[groups['build_hosts'][0]]['address'] }}:8900",
        "verify_python": "{{ plan.python }}",
    }
    answer = play("plan.yml", tmp_path, {"build1": "build_hosts"}, "-e", json.dumps(values))
    assert answer.returncode == 0, answer.stdout
    later = {**values, "verify_python": "{{ plan.gpu }}"}
    answer = play("plan.yml", tmp_path, {"build1": "build_hosts"}, "-e", json.dumps(later))
    assert "build1: verify_python must be text in quotes, but is {}" in answer.stdout


def test_an_ansible_without_this_projects_package_is_told_what_to_install() -> None:
    program = "import runpy, sys; sys.modules['hadoop_dl'] = None; runpy.run_path('plugins/action/host_facts.py')"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    told = done.stderr.strip().splitlines()[-1]
    assert f"({sys.executable}) needs this project's package hadoop_dl" in told
    assert "pip install --editable" in told


@pytest.mark.parametrize("action", ["verified_file", "verified_archive", "pinned_packages", "signed_repository"])
def test_an_action_that_refuses_prints_its_sentence_alone(action: str) -> None:
    answer = run("ansible", "-i", "localhost,", "-c", "local", "-m", action, "localhost")
    assert answer.returncode == 2
    assert f"{action} needs " in answer.stdout
    assert "xception" not in answer.stdout + answer.stderr


def test_values_that_no_file_of_settings_can_hold_are_refused_like_others(tmp_path: Path) -> None:
    """Dates as keys, expressions that raise, a vault without its password: what YAML and Jinja allow and JSON does not."""
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text(
        "places: {2026-01-01: 1, x: 2, 5: 3}\n"
        "deeplearning_request: {tensorflow: 2026-01-01, 2026-01-01: '1.15'}\n"
        "cuda_runfiles: {2026-01-01: {file: x}}\n"
        "mirror_url: '{{ 1 / 0 }}'\n"
        "spark_home: '{{ places[undefined_place] }}'\n"
        "verify_become: '{{ places }}'\n"
        "pip_timeout: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n",
        encoding="utf-8",
    )
    answer = play("plan.yml", tmp_path, {"build1": "build_hosts"})
    said = answer.stdout + answer.stderr
    assert answer.returncode == 2
    assert "6 problems found; no host was changed." in said
    names = ("deeplearning_request", "cuda_runfiles", "mirror_url", "spark_home", "verify_become", "pip_timeout")
    assert [name for name in names if f"build1: {name} " not in said] == []
    assert 'mirror_url cannot be evaluated: "division by zero"' in said
    assert [word for word in ("xception", "Traceback", "TypeError") if word in said] == []


@pytest.mark.parametrize("value", ["preflight_node=x", '{"preflight_node": {"facts": "x"}}', "plan=x", "stack=x"])
def test_a_variable_that_the_playbooks_make_is_refused_on_the_command_line(value: str, tmp_path: Path) -> None:
    answer = play("plan.yml", tmp_path, {"build1": "build_hosts"}, "-e", value)
    said = answer.stdout + answer.stderr
    assert answer.returncode == 2
    assert "is not an input and must not be set" in said
    assert [word for word in ("xception", "Traceback", "AttributeError") if word in said] == []


def test_verify_compares_every_byte_of_the_environment_and_site_does_not() -> None:
    """Half a minute on each host: too long for every run, and the only way to see a bit that a disk lost."""

    def compares(playbook: str) -> bool:
        plays = yaml.safe_load((REPOSITORY / "playbooks" / playbook).read_text(encoding="utf-8"))
        tasks = [task for found in plays for task in found.get("pre_tasks", []) + found.get("tasks", [])]
        roles = [task.get("ansible.builtin.include_role", {}) for task in tasks]
        return ("environment", "check") in [(role.get("name"), role.get("tasks_from")) for role in roles]

    assert compares("verify.yml")
    assert [path.name for path in PLAYBOOKS if compares(path.name)] == ["verify.yml"]


def test_no_path_of_an_include_is_read_as_options() -> None:
    """Ansible takes `name=value` in the short form for an option, also in a template's comparison, and only a run shows it."""
    for path in sorted(REPOSITORY.glob("roles/*/tasks/*.yml")):
        for task in tasks_of(yaml.safe_load(path.read_text(encoding="utf-8"))):
            for action in ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks"):
                if isinstance(task.get(action), str):
                    assert set(ModuleArgsParser(task).parse()[1]) == {"_raw_params"}, (path.name, task[action])


def tasks_of(found: object) -> Iterator[dict[str, Any]]:
    for item in found if isinstance(found, list) else []:
        yield item
        for part in ("block", "rescue", "always"):
            yield from tasks_of(item.get(part))


@pytest.mark.parametrize(("prune", "leaves"), [("true", True), ("false", False), (None, False)])
def test_mirror_prune_names_what_stacks_need_that_are_not_planned(prune: str | None, leaves: bool) -> None:
    given = {"plan": {"mirror_environments": [["tf1.15-cpu-py27-el7", "2.7"]]}}
    asked = "{{ mirror_superfluous | map(attribute='name') | join(' ') }} END {{ mirror_artifacts | map(attribute='name') | join(' ') }}"
    answer = run(
        *("ansible", "-i", "localhost,", "-c", "local", "-m", "debug", "-a", f"msg={asked!r}", "localhost"),
        *("-e", f"@{REPOSITORY / 'playbooks/group_vars/all.yml'}"),
        *("-e", json.dumps(given | ({"mirror_prune": prune} if prune else {}))),
    )
    assert answer.returncode == 0, answer.stdout
    superfluous, _, held = answer.stdout.partition(" END ")
    assert ("tensorflow_cpu-2.15" in superfluous) is leaves
    kept = next(name for name in held.split() if name.startswith("tensorflow_cpu-1.15"))
    assert kept not in superfluous


READ = re.compile(r"""(?<![\w.'"])__[a-z]\w*""")
SET = re.compile(r"(?:^\s*(?:- )?|register: |loop_var: |index_var: |\{% set )(__[a-z]\w*)", re.MULTILINE)


def private_variables(path: Path) -> tuple[set[str], set[str]]:
    """Names that begin with two underscores: those that a file reads, and those that it sets."""
    text = re.sub(r"(^|\s)#.*", "", path.read_text(encoding="utf-8"))
    return set(READ.findall(text)), set(SET.findall(text))


def test_every_private_variable_that_is_read_is_set_somewhere() -> None:
    """Also in scenarios that run rarely: a name that a role gave up would be found by make test-long alone."""
    files = [
        path
        for folder in ("roles", "playbooks", "molecule")
        for suffix in ("yml", "j2")
        for path in (REPOSITORY / folder).rglob(f"*.{suffix}")
    ]
    found = {path: private_variables(path) for path in files}
    known = set().union(*(names for _, names in found.values()))
    unknown = {str(path.relative_to(REPOSITORY)): sorted(names - known) for path, (names, _) in found.items()}
    assert {path: names for path, names in unknown.items() if names} == {}


@pytest.mark.parametrize("role", sorted(path.name for path in (REPOSITORY / "roles").iterdir()))
def test_no_result_of_a_task_has_the_name_of_a_variable(role: str) -> None:
    """Whoever asks for the variable after the task would get the task's result."""
    tasks, given = (
        [
            path.read_text(encoding="utf-8")
            for folder in folders
            for path in (REPOSITORY / "roles" / role / folder).glob("*.yml")
        ]
        for folders in (["tasks", "handlers"], ["vars", "defaults"])
    )
    results = {name for text in tasks for name in re.findall(r"^\s+register: (\w+)", text, re.MULTILINE)}
    assert results.isdisjoint({name for text in given for name in yaml.safe_load(text) or {}})
