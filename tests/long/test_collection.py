"""The collection of a release works where only Ansible is installed, and the same commit gives the same bytes."""

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path

import pytest
import yaml
from clones import REPOSITORY, clone, with_changes

from hadoop_dl_dev import release

COLLECTION = "hadoop_deeplearning.platform"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_changes(tmp_path_factory.mktemp("release") / "tree")


@pytest.fixture(scope="module")
def made(tree: Path) -> list[Path]:
    return release.make(tree, tree.parent / "output")[1]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with what .venv has, without this project's package."""
    directory = tmp_path_factory.mktemp("python") / "venv"
    venv.create(directory, symlinks=True)
    site_packages = next(directory.glob("lib/python3*/site-packages"))
    (site_packages / "of_the_tests.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return directory / "bin/python"


@pytest.fixture(scope="module")
def installed(made: list[Path], python: Path) -> Path:
    """The directory of the installed collection."""
    place = python.parents[2] / "collections"
    answer = ansible(python, place, "galaxy", "collection", "install", "--offline", "-p", str(place), str(made[1]))
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return place / "ansible_collections" / COLLECTION.replace(".", "/")


def ansible(
    python: Path, collections: Path, program: str, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [str(python), "-m", "ansible", program, *arguments],
        env={**clean, "ANSIBLE_COLLECTIONS_PATH": str(collections), "ANSIBLE_NOCOLOR": "1", **environment},
        cwd=python.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_same_commit_gives_the_same_bytes(tree, made, tmp_path):
    second_tree = clone(tree, tmp_path / "tree")
    files = release.make(second_tree, tmp_path / "output")[1]
    assert [path.name for path in files] == [path.name for path in made]
    assert [path.name for path, first in zip(files, made, strict=True) if path.read_bytes() != first.read_bytes()] == []
    completed = subprocess.run(
        ["sha256sum", "--check", made[-1].name], cwd=made[-1].parent, capture_output=True, check=False
    )
    assert completed.returncode == 0


def test_the_archive_has_the_tracked_files_and_the_version_is_written_once(made):
    version = release.only(release.VERSION, (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    with tarfile.open(made[0]) as archive:
        names = archive.getnames()
    assert f"hadoop-deeplearning-{version}/site.yml" in names
    assert {name.split("/")[0] for name in names} == {f"hadoop-deeplearning-{version}"}
    assert made[1].name == f"hadoop_deeplearning-platform-{version}.tar.gz"
    with tarfile.open(made[2]) as archive:
        assert f"hadoop-deeplearning-{version}-docs/index.html" in archive.getnames()


def test_ansible_doc_shows_every_module_of_the_collection(installed, python):
    modules = {f"{COLLECTION}.{path.stem}" for path in (REPOSITORY / "plugins/modules").glob("*.py")}
    answer = ansible(python, installed.parents[2], "doc", *sorted(modules))
    assert answer.returncode == 0, answer.stderr
    assert {name for name in modules if f"> {name.upper()} " in answer.stdout} == modules


def test_an_inventory_names_the_plugin_of_the_collection(installed, python):
    source = str(installed / "inventories/managers/ambari.yml")
    answer = ansible(python, installed.parents[2], "inventory", "-i", source, "--graph")
    assert "Ambari requires user and password, or a token" in " ".join(answer.stderr.split())


def test_a_module_a_role_and_a_playbook_of_the_collection_run(installed, python, tmp_path):
    """With only the collection and its ansible.cfg. The lock is released by a callback plugin, which the playbooks bring."""
    root = tmp_path / "root"
    (root / "envs").mkdir(parents=True)
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(json.dumps({"data_nodes": {"hosts": {"data1": local}}}), encoding="utf-8")
    lock_task = {f"{COLLECTION}.run_lock": {"state": "taken", "root": str(root)}, "register": "lock"}
    tasks = [
        {"ansible.builtin.set_fact": {"environment_root": str(root)}},
        lock_task,
        {
            "ansible.builtin.debug": {
                "msg": f"held {{{{ lock.held }}}}, {{{{ '50%' | {COLLECTION}.hosts_at_once(8) }}}} hosts"
            }
        },
    ]
    plays = [
        {"hosts": "data1", "gather_facts": False, "tasks": tasks},
        {"import_playbook": f"{COLLECTION}.plan"},
    ]
    playbook = tmp_path / "site.yml"
    playbook.write_text(yaml.safe_dump(plays), encoding="utf-8")
    config = str(installed / "ansible.cfg")
    answer = ansible(
        python, installed.parents[2], "playbook", "-i", str(inventory), str(playbook), ANSIBLE_CONFIG=config
    )
    assert "held True, 4 hosts" in answer.stdout, answer.stdout + answer.stderr
    assert f"TASK [{COLLECTION}.preflight : Plan what must change]" in answer.stdout
    assert "no host was changed. 1. data1: environment_root " in " ".join(answer.stdout.split()), answer.stdout
    assert "xception" not in answer.stdout + answer.stderr
    assert sorted(path.name for path in root.iterdir()) == [".lock", "envs"]


def test_the_suite_of_the_collection_asks_a_host(installed, python, tmp_path):
    """With the module and the PYTHONPATH that the role verify names."""
    role = (installed / "roles/verify/tasks/run_suite.yml").read_text(encoding="utf-8")
    task = yaml.safe_load(role)[0]
    place = task["environment"]["PYTHONPATH"].removeprefix("{{ role_path ~ '").removesuffix("' }}")
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(
        json.dumps({"cdsw_hosts": {"hosts": {"host1": {"ansible_connection": "local"}}}}), encoding="utf-8"
    )
    command = [str(python), *task["vars"]["__verify_command"][1:3], "--inventory", str(inventory), "--hosts", "host1"]
    path = f"{os.environ['PATH']}:{Path(sys.executable).parent}"  # for ansible-inventory
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{installed}/roles/verify{place}"}
    answer = subprocess.run(
        [*command, "--report", str(tmp_path / "report")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "FAILED on host1: the environment is sealed" in answer.stdout


def test_another_strategy_is_refused_with_the_complete_name(installed, python, tmp_path):
    config = tmp_path / "ansible.cfg"
    config.touch()
    playbook = f"{COLLECTION}.plan"
    answer = ansible(python, installed.parents[2], "playbook", "-i", "data1,", playbook, ANSIBLE_CONFIG=str(config))
    assert f"The strategy must be {COLLECTION}.untrusted_hosts" in " ".join(answer.stdout.split())
