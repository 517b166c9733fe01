"""A repair builds the tree again with the files of an undisturbed one, whatever became of the damaged tree. Every Python of hosts installs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environment_seal
import locked_packages
import pytest
from ansible.module_utils import basic
from ansible.module_utils.hadoop_dl_host import (
    confinement,
    environment_build,
    whole_files,
)
from environments import Site
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from source_distributions import interpreter
from test_environment_modules import check, quietly

MARK = b"evil"
EVIL = b"VERSION = '6.6'\n"


def fetched(site: Site) -> list[str]:
    """Projects whose wheels were fetched since the last time."""
    names = [path.rpartition("/")[2] for path, _ in site.mirror.requests if path.endswith(".whl")]
    site.mirror.requests.clear()
    return sorted(name.split("-")[0] for name in names)


def bytecode(site: Site, name: str) -> Path:
    [path] = (site.packages / "__pycache__").glob(f"{name}.*")
    return path


def noted(site: Site) -> Site:
    """verify.yml found damage, so the next run builds the tree again."""
    whole_files.write_json(str(site.tree / ".deeplearning/damaged.json"), {"problem": "other bytes"})
    return site


@pytest.fixture
def undisturbed(done: Site) -> dict[str, bytes]:
    return done.content()


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def state(site: Site, name: str) -> Path:
    return site.tree / ".deeplearning" / name


@pytest.mark.parametrize(
    "damage",
    [
        lambda site: quietly(site.packages / "six.py", EVIL),
        lambda site: (site.packages / "six.py").write_bytes(EVIL + b"# longer\n"),
        lambda site: replace(site.packages / "six.py", lambda path: path.symlink_to("tensorflow.py")),
        lambda site: replace(site.packages / "six.py", os.mkfifo),
        lambda site: replace(site.packages / "six.py", Path.mkdir),
        lambda site: quietly(bytecode(site, "six"), MARK + bytecode(site, "six").read_bytes()[len(MARK) :]),
        lambda site: state(site, "files.txt").write_bytes(b""),
        lambda site: state(site, "sealed.json").write_bytes(b""),
    ],
    ids=[
        "size and time kept",
        "longer",
        "link",
        "pipe that nobody writes",
        "directory",
        "bytecode",
        "no list",
        "no seal",
    ],
)
def test_a_repair_has_the_files_of_an_undisturbed_tree(done, undisturbed, damage):
    first = done.tree
    damage(noted(done))
    done.everything()
    assert done.tree != first
    assert done.content() == undisturbed
    assert not bytecode(done, "six").read_bytes().startswith(MARK)
    assert check(done) == {"changed": False, "added": []}


def test_the_interpreter_of_a_tree_is_noted(done):
    marker = environment_build.marker(str(done.tree), "made")
    program = "import sys; print(' '.join(sys.version.split()))"
    version = subprocess.check_output([interpreter() or sys.executable, "-c", program], text=True).strip()
    assert marker["build"] == {"version": version}


INSTALL = """
import json
sys.modules["ansible.module_utils"].__path__.append(sys.argv[3])
sys.path.insert(0, sys.argv[2])
import environment_seal, locked_packages

class Module(object):
    check_mode = False

    def __init__(self, params):
        self.params = params

for name, params in json.loads(sys.stdin.read()):
    sys.modules[name].work(Module(params))
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_every_python_of_hosts_installs(site: Site, python: str) -> None:
    """The modules in Python 2.7 and 3.6; the environment of the latter has bytecode that goes by the time of its source."""
    has_venv = subprocess.run([python, "-m", "venv", "-h"], capture_output=True, check=False).returncode == 0
    host_python = python if has_venv else interpreter() or sys.executable
    if os.geteuid() == 0 and confinement.closed([host_python]):
        pytest.skip(f"{host_python} cannot be read by all users, as an interpreter of a host can")
    calls: list[tuple[str, dict[str, Any]]] = []

    def note(name: str) -> Callable[[Any], dict[str, bool]]:
        return lambda module: calls.append((name, module.params)) or {"changed": True}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locked_packages, "work", note("locked_packages"))
        patch.setattr(environment_seal, "work", note("environment_seal"))
        for component in site.lines:
            site.install(component, python=host_python)
        site.seal()
    places = [UTILITIES, UTILITIES.replace("module_utils", "modules"), str(Path(basic.__file__).parent)]
    argv = [python, "-c", WITHOUT_ANSIBLE + INSTALL, *places]
    subprocess.run(argv, input=json.dumps(calls), text=True, check=True, timeout=120)
    assert fetched(site) == ["keras", "pip", "six", "tensorflow"]
    assert len(list(site.tree.glob("lib/python*/site-packages/__pycache__/*.pyc"))) == 4
    code = "import tensorflow, keras; print(tensorflow.__file__)"
    output = subprocess.check_output([site.path / "bin/python", "-c", code], text=True)
    assert output.startswith(str(site.path))
