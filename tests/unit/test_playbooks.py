"""Playbooks: each one in playbooks/ can be run alone, through the real ansible-playbook, and refuses in one sentence."""

import functools
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.mod_args import ModuleArgsParser
from ansible_programs import READ_ONLY, REPOSITORY, imports, plays_of, run, tasks_in

from hadoop_dl.plan import inputs

PLAYBOOKS = sorted((REPOSITORY / "playbooks").glob("*.yml"))
# The way back and the way out make no plan: they must not wait until the inventory is in order, nor must cards that are measured before anything
# is installed. A host leaves YARN and comes back whatever is planned. The report makes its own plan, which ends at no problem.
NO_PLAN = ("accept_gpus", "bootstrap_ssh", "node_maintenance", "remove", "report", "rollback")
PLAN_FIRST = [path for path in PLAYBOOKS if path.stem not in ("preflight", *NO_PLAN)]
EXCEPTIONS = ("xception", "Traceback", "NoneType", "TypeError", "AttributeError", "MODULE FAILURE")


def play(playbook: str, tmp_path: Path, groups: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook against this machine, which the plan only reads."""
    text = "".join(f"[{group}]\n{name} {READ_ONLY}\n" for name, group in groups.items())
    (tmp_path / "hosts").write_text(text, encoding="utf-8")
    path = REPOSITORY / "playbooks" / playbook
    return run("ansible-playbook", "-i", str(tmp_path / "hosts"), str(path), *options)


def refusal(tmp_path: Path, *options: str, playbook: str = "plan.yml") -> str:
    """What a playbook says that refuses its inputs, which is never an exception."""
    answer = play(playbook, tmp_path, {"build1": "build_hosts"}, *options)
    output = answer.stdout + answer.stderr
    assert answer.returncode == 2, output
    assert [word for word in EXCEPTIONS if word in output] == []
    return output


@pytest.mark.parametrize("path", PLAN_FIRST, ids=lambda path: path.stem)
def test_a_playbook_plans_before_it_addresses_hosts(path):
    first = plays_of(path.stem)[0]
    assert first["ansible.builtin.import_playbook"] == "preflight.yml"
    # What it says to the plan changes none of the inputs that are refused.
    assert [name for name in first.get("vars", {}) if not name.startswith("preflight_")] == []


def layers_of(name: str) -> list[str]:
    """All layers that a playbook imports, also those of its layers, in their order."""
    files = [Path(name).parent / file for file in imports(name) if file]
    return [layer for file in files for layer in (file.stem, *layers_of(str(file.with_suffix(""))))]


@pytest.mark.parametrize("name", [path.stem for path in PLAYBOOKS if "activate" in layers_of(path.stem)])
def test_an_environment_is_verified_before_a_host_switches_to_it(name):
    layers = layers_of(name)
    switches = [index for index, layer in enumerate(layers) if layer in ("activate", "canary")]
    changes = [index for index, layer in enumerate(layers) if layer in ("gpu", "frameworks", "hadoop")]
    assert max(changes) < layers.index("verify_environment") < min(switches)


# Playbooks that begin alike refuse alike: one that begins with the plan, and those without it.
BEGINNINGS = [
    REPOSITORY / "playbooks" / "site.yml",
    *(path for path in PLAYBOOKS if path not in PLAN_FIRST and path.stem != "preflight"),
]


# A wrong value of each kind that every playbook refuses; the way back and the report refuse those of their own inputs.
WRONG: dict[str, Any] = {
    "environment_root": "/opt",
    "upgrade_controller_allowed": "{{ nowhere }}",
    "run_lock_takeover": "flase",
    "remove_parts": ["everything"],
    "environment_path": "/etc",
}
OWN = {
    "site": {
        **WRONG,
        "nvidia_driver_reboot_allowed": "maybe",
        "upgrade_batch": 0,
        "deeplearning_unreachable": "Continue",
        "mirror_url": "{{ nowhere }}",
        "gpu_count": "³",
        "deeplearning_request": {"tensorflow": 1.15},
        "cudnn_versions": [{"cuda": "12.2"}],
        "mirror_root": "/",
        "hadoop_client_java_home": "/usr/lib/jvm\nrogue",
    },
    "remove": {**WRONG, "environment_path": None, "remove_confirmed": "perhaps"},
    "rollback": {**WRONG, "rollback_to": "{{ plan.environment }}", "remove_parts": None},
    "accept_gpus": {"gpu_count": "{{ nowhere }}"},
    "bootstrap_ssh": {"assume_yes": "perhaps", "bootstrap_public_key": "id.pub\nrogue"},
    "node_maintenance": {
        **{"environment_root": "/opt", "run_lock_takeover": "flase", "node_maintenance_seconds": "{{ nowhere }}"},
    },
    "report": {"environment_root": "/opt", "report_directory": "{{ nowhere }}", "verify_report_directory": 10.1},
}


def values_of(path: Path) -> dict[str, Any]:
    return {name: value for name, value in OWN.get(path.stem, WRONG).items() if value is not None}


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], subprocess.CompletedProcess[str]]:
    """What a playbook answers to its wrong inputs, with one of almost the name of another; each is run once."""

    @functools.cache
    def answer(path: Path) -> subprocess.CompletedProcess[str]:
        hosts = {"data1": "data_nodes", "cdsw1": "cdsw_hosts"}
        values = {"remove_confirmed": True, **values_of(path), "remove_part": "gpu"}
        return play(path.name, tmp_path_factory.mktemp(path.stem), hosts, "-e", json.dumps(values))

    return answer


Refused = Callable[[Path], subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("path", BEGINNINGS, ids=lambda path: path.stem)
def test_every_playbook_refuses_wrong_inputs_before_a_task_changes_a_host(path, refused):
    answer = refused(path)
    assert answer.returncode == 2, answer.stdout + answer.stderr
    output = answer.stdout.replace("data1, cdsw1", "cdsw1, data1")
    addressed = "data1" if path.stem == "node_maintenance" else "cdsw1, data1"
    assert [name for name in values_of(path) if f"{addressed}: {name} " not in output] == []
    tasks = re.findall(r"^TASK \[(?:preflight : )?(.+?)\]", answer.stdout, re.MULTILINE)
    assert tasks == (["Read the host", "Plan what must change"] if path in PLAN_FIRST else ["Check the inputs"])
    assert "no host was changed" in answer.stdout
    assert [word for word in EXCEPTIONS if word in answer.stdout + answer.stderr] == []


def test_an_input_of_almost_that_name_is_a_warning_where_no_plan_is_made(refused):
    answer = refused(REPOSITORY / "playbooks" / "remove.yml")
    output = " ".join(answer.stderr.split())
    assert "remove_part is not an input of this project and is not used; remove_parts is one." in output


def test_a_value_that_needs_the_plan_is_refused_where_none_is_made(refused):
    """`default('')` took it for no value, and the rollback went to another environment."""
    answer = refused(REPOSITORY / "playbooks" / "rollback.yml")
    assert re.search("data1.*: rollback_to must have a value without a plan", answer.stdout)


@pytest.mark.parametrize("playbook", NO_PLAN)
def test_a_playbook_without_a_plan_checks_every_input_that_it_uses(playbook):
    checks = plays_of(playbook)[0]["tasks"][0]["checked_inputs"]
    known_inputs = inputs.all_inputs(REPOSITORY)
    assert set(checks["names"]) <= set(known_inputs)
    texts, queue = [], [REPOSITORY / "playbooks" / f"{playbook}.yml"]
    while queue:
        path = queue.pop()
        text = path.read_text(encoding="utf-8")
        texts.append(text)
        queue += [path.parent / name for name in re.findall(r"import_playbook: (\S+)", text)]
        queue += [path.parent / name for name in re.findall(r"(?:include|import)_tasks: (\w+\.yml)", text)]
        for role, _, tasks in re.findall(r"_role:\n +name: (\w+)(\n +tasks_from: (\w+))?", text):
            if role not in checks.get("roles", ()):
                queue.append(REPOSITORY / "roles" / role / "tasks" / f"{tasks or 'main'}.yml")
    other_words = {"container_runtime", "yarn_gpu", "deeplearning_request"}  # names of roles, and a word of a message
    given_here = set(re.findall(r"^ +(\w+):", "".join(texts), re.MULTILINE)) & inputs.reserved(REPOSITORY)
    mentioned_inputs = set(re.findall(r"\w+", " ".join(texts))) & set(known_inputs) - other_words - given_here
    assert mentioned_inputs - inputs.used(checks["names"], checks.get("roles", ()), REPOSITORY) == set()


@pytest.mark.parametrize(
    ("command_line", "batches"), [((), {"changed": 2, "other": 1}), (("-e", "upgrade_batch=1"), {"changed": 1})]
)
@pytest.mark.parametrize(
    ("layer", "concerned"),
    [("upgrade", "needs_nvidia_driver"), ("yarn_gpu", "data_nodes"), ("remove", "data_nodes")],
)
def test_the_batch_of_an_upgrade_is_read_from_the_inventory_too(layer, concerned, command_line, batches, tmp_path):
    """The hosts of the group `other` have no value for it."""
    plays = plays_of(f"layers/{layer}")
    (serial,) = {entry["serial"] for entry in plays if "upgrade_batch" in str(entry.get("serial"))}
    lines = []
    for group in batches:
        variable = "upgrade_batch=2" if group != "other" else ""
        lines += [f"[{group}]", *(f"{group}{number} {READ_ONLY} {variable}" for number in (1, 2))]
    (tmp_path / "hosts").write_text("\n".join(lines) + "\n")
    task = {"ansible.builtin.debug": {"msg": "{{ group_names[0] }}: {{ ansible_play_batch | length }}"}}
    # As in the playbook, a play comes before: Ansible has no hostvars for the first one.
    probe: list[Any] = [{"name": "Plan", "hosts": "all", "gather_facts": False}]
    for group in batches:
        batch = serial.replace(concerned, group)
        probe += [{"name": "Probe", "hosts": group, "gather_facts": False, "serial": batch, "tasks": [task]}]
    (tmp_path / "probe.yml").write_text(yaml.safe_dump(probe), encoding="utf-8")
    answer = run("ansible-playbook", "-i", str(tmp_path / "hosts"), str(tmp_path / "probe.yml"), *command_line)
    for group, hosts in batches.items():
        assert answer.stdout.count(f"{group}: {hosts}") == 2, answer.stdout + answer.stderr


@pytest.mark.parametrize("version", ["driver", "kernel"])
def test_an_upgrade_takes_the_lock_as_a_run_that_disrupts_its_hosts(version):
    plays = plays_of(f"upgrade_{version}")
    locks = [entry["vars"] for entry in plays if entry["ansible.builtin.import_playbook"] == "layers/run_lock.yml"]
    assert locks == [{"run_lock_disrupts": True}]


def test_a_playbook_that_is_run_alone_says_what_it_would_do(tmp_path):
    """Four of them, one after the other: each makes its own plan."""
    playbooks = [REPOSITORY / "playbooks" / name for name in ("frameworks.yml", "hadoop.yml", "mirror.yml")]
    answer = play("gpu.yml", tmp_path, {"build1": "build_hosts"}, *map(str, playbooks), "--check")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.count("PLAN: 1 hosts are as planned; nothing to do.") == 4, answer.stdout


def test_a_sites_tasks_beside_the_inventory_are_none_of_it(tmp_path):
    (tmp_path / "hosts").write_text("[data_nodes]\ndata1\n", encoding="utf-8")
    for name in ("upgrade_driver_before.yml", "upgrade_driver_after.yml"):
        (tmp_path / name).write_text("- name: Read the site's list\n  ansible.builtin.meta: noop\n", encoding="utf-8")
    answer = run("ansible-inventory", "--inventory", str(tmp_path), "--graph")
    assert "data1" in answer.stdout
    assert "WARNING" not in answer.stderr


def test_a_file_for_the_plan_in_no_directory_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "missing" / "plan.json"
    output = refusal(tmp_path, "-e", f"preflight_plan_file={path}")
    assert "preflight_plan_file must be a file that the controller can write" in output


def test_templates_may_use_hostvars_and_variables_of_the_plan(tmp_path):
    values = {
        "address": "192.0.2.1",
        "mirror_url": "http://{{ hostvars[groups['build_hosts'][0]]['address'] }}:8900",
        "verify_python": "{{ plan.gpu if inventory_hostname == 'build2' else plan.python }}",
    }
    hosts = {"build1": "build_hosts", "build2": "build_hosts"}
    answer = play("plan.yml", tmp_path, hosts, "-e", json.dumps(values))
    assert "1 problem" in answer.stdout
    assert 'build2: verify_python must be a version of Python in quotes, such as "3.6", but is {}' in answer.stdout


def test_an_ansible_without_this_projects_package_is_told_what_to_install():
    program = "import runpy, sys; sys.modules['hadoop_dl'] = None; runpy.run_path('plugins/action/host_facts.py')"
    probe = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert probe.returncode == 1
    message = probe.stderr.strip().splitlines()[-1]
    assert f"({sys.executable}) needs this project's package hadoop_dl" in message
    assert "pip install --editable" in message


def test_an_action_that_refuses_prints_its_sentence_alone():
    answer = run("ansible", "-i", "localhost,", "-c", "local", "-m", "verified_file", "localhost")
    assert answer.returncode == 2
    assert "verified_file needs " in answer.stdout
    assert "xception" not in answer.stdout + answer.stderr


def test_values_that_no_file_of_settings_can_hold_are_refused_like_others(tmp_path):
    """Dates as keys, expressions that raise, a vault without its password: what YAML and Jinja allow and JSON does not."""
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text(
        "places: {2026-01-01: 1, x: 2, 5: 3}\n"
        "deeplearning_request: {tensorflow: 2026-01-01, 2026-01-01: '1.15'}\n"
        "cuda_runfiles: {2026-01-01: {file: x}}\n"
        "mirror_url: '{{ 1 / 0 }}'\n"
        "spark_home: '{{ places[undefined_place] }}'\n"
        "verify_become: '{{ places }}'\n"
        "tensorflow_timeout: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n",
        encoding="utf-8",
    )
    output = refusal(tmp_path)
    assert "6 problems found; no host was changed." in output
    names = ("deeplearning_request", "cuda_runfiles", "mirror_url", "spark_home", "verify_become", "tensorflow_timeout")
    assert [name for name in names if f"build1: {name} " not in output] == []
    assert 'mirror_url cannot be evaluated: "division by zero"' in output


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("preflight_node=x plan=x stack=x", ["preflight_node", "plan", "stack"]),
        ('{"preflight_node": {"facts": "x"}}', ["preflight_node"]),
    ],
)
def test_variables_that_the_playbooks_make_are_refused_on_the_command_line(value, names, tmp_path):
    output = refusal(tmp_path, "-e", value)
    assert [name for name in names if f"{name} is not an input and must not be set" not in output] == [], output


def test_verify_compares_every_byte_of_the_environment_and_site_does_not():
    """Half a minute on each host: too long for every run, and the only way to see a bit that a disk lost."""

    def compares(path: Path) -> bool:
        roles = [task.get("ansible.builtin.include_role", {}) for task in tasks_in(path)]
        return ("environment", "check") in [(role.get("name"), role.get("tasks_from")) for role in roles]

    assert [path.stem for path in PLAYBOOKS if compares(path)] == ["verify"]


def test_no_path_of_an_include_is_read_as_options():
    """Ansible takes `name=value` in the short form for an option, also in a template's comparison, and only a run shows it."""
    for path in sorted(REPOSITORY.glob("roles/*/tasks/*.yml")):
        for task in tasks_in(path):
            for action in ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks"):
                if isinstance(task.get(action), str):
                    assert set(ModuleArgsParser(task).parse()[1]) == {"_raw_params"}, (path.name, task[action])


def test_mirror_prune_names_what_stacks_need_that_are_not_planned(tmp_path):
    variables = {"plan": {"mirror_environments": [["tf1.15-cpu-py27-el7", "2.7"]]}}
    template = "{{ mirror_superfluous | map(attribute='name') | join(' ') }} END {{ mirror_artifacts | map(attribute='name') | join(' ') }}"
    prunes: dict[str, dict[str, str]] = {"yes": {"mirror_prune": "true"}, "no": {"mirror_prune": "false"}, "unset": {}}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": prunes}}), encoding="utf-8")
    answer = run(
        *("ansible", "-i", str(tmp_path / "hosts.yml"), "-c", "local", "-m", "debug", "-a", f"msg={template!r}", "all"),
        *("-e", f"@{REPOSITORY / 'playbooks/group_vars/all.yml'}", "-e", json.dumps(variables)),
        ANSIBLE_CALLBACK_RESULT_FORMAT="json",
    )
    assert answer.returncode == 0, answer.stdout
    messages = dict(re.findall(r'^(\w+) \| SUCCESS => \{\s+"msg": "(.*)"$', answer.stdout, re.MULTILINE))
    assert messages.keys() == prunes.keys(), answer.stdout
    for host, text in messages.items():
        superfluous_names, _, mirror_names = text.partition(" END ")
        assert ("tensorflow_cpu-2.15" in superfluous_names) is (host == "yes")
        wheel = next(name for name in mirror_names.split() if name.startswith("tensorflow_cpu-1.15"))
        assert wheel not in superfluous_names


READ = re.compile(r"""(?<![\w.'"])__[a-z]\w*""")
SET = re.compile(r"(?:^\s*(?:- )?|register: |loop_var: |index_var: |\{% set )(__[a-z]\w*)", re.MULTILINE)


def private_variables(path: Path) -> tuple[set[str], set[str]]:
    """Names that begin with two underscores: those that a file reads, and those that it sets."""
    text = re.sub(r"(^|\s)#.*", "", path.read_text(encoding="utf-8"))
    return set(READ.findall(text)), set(SET.findall(text))


def test_every_private_variable_that_is_read_is_set_somewhere():
    """Also in scenarios that run rarely: a name that a role gave up would be found by make test-long alone."""
    folders = ("roles", "playbooks", "molecule")
    files = [
        path for folder in folders for suffix in ("yml", "j2") for path in (REPOSITORY / folder).rglob(f"*.{suffix}")
    ]
    usage = {path: private_variables(path) for path in files}
    defined_names = set().union(*(names for _, names in usage.values()))
    unknown = {str(path.relative_to(REPOSITORY)): sorted(names - defined_names) for path, (names, _) in usage.items()}
    assert {path: names for path, names in unknown.items() if names} == {}


@pytest.mark.parametrize("role", sorted(path.name for path in (REPOSITORY / "roles").iterdir()))
def test_no_result_of_a_task_has_the_name_of_a_variable(role):
    """Whoever asks for the variable after the task would get the task's result."""

    def texts(*folders: str) -> list[str]:
        place = REPOSITORY / "roles" / role
        return [path.read_text(encoding="utf-8") for folder in folders for path in (place / folder).glob("*.yml")]

    tasks, defaults = texts("tasks", "handlers"), texts("vars", "defaults")
    results = {name for text in tasks for name in re.findall(r"^\s+register: (\w+)", text, re.MULTILINE)}
    assert results.isdisjoint({name for text in defaults for name in yaml.safe_load(text) or {}})
