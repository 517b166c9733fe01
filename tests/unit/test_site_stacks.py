"""A site's own stacks beside its inventory, and packages that it adds to a stack; nothing here asks an index."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hadoop_dl.cli import lock_maker, mirror
from hadoop_dl.cli import stack as stack_cli
from hadoop_dl.data import extras, stacks
from hadoop_dl.data.stacks import StackError, load_stack, stack_names
from hadoop_dl.plan import target
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]
BASE = "tf2.15-cpu-py3-el9"
FACTS = {"os": {"short": "el9", "name": "RHEL 9.4"}, "pythons": {"3.11": "/usr/bin/python3.11"}}


@pytest.fixture
def site(tmp_path, monkeypatch):
    """inventories/SITE/stacks of a site, known to this process."""
    monkeypatch.setattr(stacks, "_site", [])
    target.locked.cache_clear()
    target.data_digest.cache_clear()
    monkeypatch.setattr(target, "verdict", lambda name, node: {"problems": [], "warnings": []})
    directory = tmp_path / "stacks"
    (directory / "locks").mkdir(parents=True)
    stacks.add_site_stacks([tmp_path])
    return directory


def copy_stack(site: Path, name: str, **changes) -> None:
    base = load_stack(BASE)
    data = {**base.data, "name": name, "python": "3.11", **changes}
    (site / f"{name}.yml").write_text(yaml.safe_dump(data))
    shutil.copy(base.lock_path("3.11"), site / "locks" / f"{name}.txt")


def resolve(**variables) -> target.Target:
    return target.target_for(variables, invented_hosts.facts(FACTS), ["data_nodes"])


def test_a_stack_beside_the_inventory_is_known_by_its_name(site):
    copy_stack(site, "ours-el9")
    assert "ours-el9" in stack_names()
    wanted = resolve(deeplearning_request="ours-el9")
    assert wanted.problems == []
    assert wanted.environment == f"ours-el9-{load_stack('ours-el9').lock().digest}"


def test_an_inventory_file_has_its_stacks_in_the_same_directory(tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "_site", [])
    (tmp_path / "stacks").mkdir()
    (tmp_path / "hosts.yml").touch()
    stacks.add_site_stacks([tmp_path / "hosts.yml", "host1,host2,"])
    assert stacks.directories() == [stacks.DIRECTORY, (tmp_path / "stacks").resolve()]


def test_a_name_that_the_project_has_is_refused(site):
    copy_stack(site, BASE)
    with pytest.raises(StackError, match="must be unique"):
        load_stack(BASE)


def test_a_new_stack_makes_old_verdicts_void(site):
    before = target.data_digest()
    copy_stack(site, "ours-el9")
    target.data_digest.cache_clear()
    assert target.data_digest() != before


@pytest.mark.parametrize("command", [mirror.main, stack_cli.main])
def test_the_commands_read_the_stacks_of_a_directory(site, command, monkeypatch, capsys):
    copy_stack(site, "ours-el9")
    monkeypatch.setattr(stacks, "_site", [])
    name = ["ours-el9"] if command is mirror.main else []
    assert command(["list", *name, "--stacks", str(site)]) == 0
    assert ("tensorflow_cpu-2.15.1" if name else "ours-el9") in capsys.readouterr().out


def test_packages_without_a_lock_are_refused_with_the_command(site):
    wanted = resolve(deeplearning_request=BASE, deeplearning_extra_packages=["pandas", "dask<2025"])
    [problem] = wanted.problems
    assert f"scripts/stack lock {BASE} --extra 'dask<2025' --extra 'pandas' --stacks" in problem


def test_packages_make_a_stack_of_its_own_with_its_own_digest(site, monkeypatch):
    text = load_stack(BASE).lock("3.11").text
    line = f"pandas==2.3.0 --hash=sha256:{'a' * 64}  # pandas-2.3.0-cp311-cp311-manylinux_2_17_x86_64.whl 9\n"
    added = text.replace("# component: tensorflow\n", f"# component: tensorflow\n{line}")
    monkeypatch.setattr(lock_maker, "make_lock", lambda *_, **__: added)
    assert lock_maker.main([BASE, "--extra", "pandas", "--stacks", str(site)]) == 0
    wanted = resolve(deeplearning_request=BASE, deeplearning_extra_packages=["pandas"])
    assert wanted.problems == []
    assert wanted.data["based_on"] == BASE
    assert "pandas" in wanted.data["requirements"]["tensorflow"]
    assert wanted.environment.startswith(f"{BASE}-extra-")
    assert wanted.environment.rpartition("-")[2] != load_stack(BASE).lock("3.11").digest


def test_the_base_keeps_its_versions(site, monkeypatch):
    given = {}

    def resolve_versions(requirements, python, glibc, locked):
        given.update(locked)
        raise lock_maker.LockError("enough")

    monkeypatch.setattr(lock_maker, "resolve", resolve_versions)
    name = extras.write_stack(load_stack(BASE), ["pandas"], site)
    with pytest.raises(lock_maker.LockError, match="enough"):
        lock_maker.make_lock(load_stack(name), "3.11", site, print)
    assert given["numpy"] == "1.26.4"


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ("pandas", "must be a list"),
        ([1], "must be a list"),
        (["pandas >> 2"], "as pip does"),
        ({"a": 1}, "must be a list"),
    ],
)
def test_what_is_no_list_of_packages_is_refused(site, packages, words):
    [problem] = resolve(deeplearning_request=BASE, deeplearning_extra_packages=packages).problems
    assert words in problem


def test_the_order_of_the_packages_does_not_matter():
    assert extras.checked(["pandas", "dask", "pandas"]) == extras.checked(["dask", "pandas"])


def test_a_stack_of_the_site_is_no_inventory(tmp_path):
    """Ansible reads every file below an inventory's directory as hosts, unless ansible.cfg says otherwise."""
    (tmp_path / "hosts.yml").write_text("all: {hosts: {data1: }}\n")
    (tmp_path / "stacks" / "locks").mkdir(parents=True)
    shutil.copy(load_stack(BASE).lock_path("3.11"), tmp_path / "stacks" / "locks")
    shutil.copy(stacks.DIRECTORY / f"{BASE}.yml", tmp_path / "stacks")
    command = [str(Path(sys.executable).parent / "ansible-inventory"), "-i", str(tmp_path), "--list"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["all"]["children"] == ["ungrouped"]
    assert json.loads(done.stdout)["ungrouped"]["hosts"] == ["data1"]
    assert "stacks" not in done.stderr


def test_filters_know_the_stacks_beside_the_inventory(tmp_path):
    (tmp_path / "hosts.yml").write_text("all: {hosts: {data1: {ansible_connection: local}}}\n")
    (tmp_path / "stacks" / "locks").mkdir(parents=True)
    copy_stack(tmp_path / "stacks", "ours-el9")
    ansible = [
        str(Path(sys.executable).parent / "ansible"),
        "-i",
        str(tmp_path),
        "data1",
        "-m",
        "ansible.builtin.debug",
    ]
    command = [*ansible, "-a", "msg={{ 'ours-el9' | stack_lock('3.11', 'pip') }}"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "pip==25.3 --hash=sha256:" in done.stdout
