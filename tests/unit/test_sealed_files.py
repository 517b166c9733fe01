"""Files that a sealed tree of the host already has are copied, and only with the bytes that the verified wheel has."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
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
    environment_names,
    sealed_files,
    wheel_files,
    whole_files,
)
from environments import DIGEST, STACK, Site, wheel
from interpreters import AS_ON_A_HOST, HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from source_distributions import digest, interpreter
from test_environment_modules import check, quietly

OTHER = "ba9876543210"  # the digest of another stack's environment
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


def test_a_repair_fetches_only_the_wheels_of_files_that_are_damaged(done, undisturbed):
    first, content = done.tree, bytecode(done, "tensorflow").read_bytes()
    (done.packages / "six.py").unlink()
    done.mirror.requests.clear()
    assert done.everything() == [True, True, True, True, False]
    assert fetched(done) == ["six"]
    assert done.tree != first
    assert done.content() == undisturbed
    assert bytecode(done, "tensorflow").read_bytes() == content
    assert check(done) == {"changed": False, "added": []}


def test_another_stack_takes_the_wheels_that_both_lock(done, tmp_path, undisturbed):
    done.activate()
    done.lines["keras"] = [done.mirror.add(wheel(tmp_path, "keras", "2.0", code="import tensorflow\n"))]
    first = done.tree
    done.path = done.path.with_name(f"{STACK}-{OTHER}")
    done.mirror.requests.clear()
    for component in done.lines:
        done.install(component)
    assert done.seal(digest=OTHER)["sealed"] is True
    assert fetched(done) == ["keras"]
    assert {name: text for name, text in done.content().items() if "keras" not in name} == {
        name: text for name, text in undisturbed.items() if "keras" not in name
    }
    script = subprocess.check_output([done.path / "bin/python", "-c", "import keras; print(keras.__file__)"], text=True)
    assert script.startswith(str(done.path))
    for path in done.tree.rglob("*"):
        if path.is_file() and not path.is_symlink():  # no hard link: damage of one tree is damage of that tree
            assert path.stat().st_nlink == 1
    assert first.is_dir()


def replace(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


@pytest.mark.parametrize(
    "damage",
    [
        lambda site: quietly(site.packages / "six.py", EVIL),
        lambda site: (site.packages / "six.py").write_bytes(EVIL + b"# longer\n"),
        lambda site: replace(site.packages / "six.py", lambda path: path.symlink_to("tensorflow.py")),
        lambda site: replace(site.packages / "six.py", os.mkfifo),
        lambda site: replace(site.packages / "six.py", Path.mkdir),
    ],
    ids=["size and time kept", "longer", "link", "pipe that nobody writes", "directory"],
)
def test_a_file_that_differs_comes_from_its_wheel(done, undisturbed, damage):
    damage(done)
    done.mirror.requests.clear()
    noted(done).everything()
    assert fetched(done) == ["six"]
    assert done.content() == undisturbed
    assert check(done) == {"changed": False, "added": []}


def state(site: Site, name: str) -> Path:
    return site.tree / ".deeplearning" / name


def forge_list(site: Site) -> None:
    """The list promises what a changed file has; its sha256 in the marker is that of the list that was written."""
    quietly(site.packages / "six.py", EVIL)
    path = state(site, "tensorflow.wheels")
    sha256 = hashlib.sha256(b"VERSION = '1.0'\n").hexdigest()
    path.write_text(path.read_text().replace(sha256, hashlib.sha256(EVIL).hexdigest()))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (forge_list, ["keras", "pip", "six", "tensorflow"]),
        (lambda site: state(site, "tensorflow.wheels").unlink(), ["six", "tensorflow"]),
        (lambda site: state(site, "files.txt").write_bytes(b""), ["keras", "pip", "six", "tensorflow"]),
        (lambda site: state(site, "sealed.json").write_bytes(b""), ["keras", "pip", "six", "tensorflow"]),
        (lambda site: state(site, "sealed.json").unlink(), ["keras", "pip", "six", "tensorflow"]),
    ],
    ids=["list forged", "no list", "seal's list changed", "seal empty", "never sealed"],
)
def test_a_tree_whose_lists_are_not_those_of_its_seal_gives_nothing(done, undisturbed, damage, expected):
    damage(noted(done))
    done.mirror.requests.clear()
    if not state(done, "sealed.json").exists():
        (done.tree / "lib").rename(done.tree / "lost")  # nor is it continued
    done.everything()
    assert fetched(done) == expected
    assert done.content() == undisturbed


def test_a_bad_sector_is_a_file_that_differs(done, undisturbed, monkeypatch):
    read = sealed_files.Source.read

    def fails(self, size):
        if os.readlink(f"/proc/self/fd/{self.handle.fileno()}").endswith("/six.py"):
            raise sealed_files.Unreadable("Input/output error")
        return read(self, size)

    monkeypatch.setattr(sealed_files.Source, "read", fails)
    done.mirror.requests.clear()
    noted(done).everything()
    assert fetched(done) == ["six"]
    assert done.content() == undisturbed


def other_build(site: Site) -> None:
    path = state(site, "made.json")
    record = json.loads(path.read_text())
    record["build"]["version"] = record["build"]["version"].replace("GCC", "another compiler, GCC")
    path.write_text(json.dumps(record))


def as_of_another_source(site: Site) -> None:
    """Sealed with bytecode, but of another source: the seal's list has another sha256 for six.py."""
    path = state(site, "files.txt")
    sha256 = hashlib.sha256(b"VERSION = '1.0'\n").hexdigest()
    path.write_text(path.read_text().replace(sha256, "0" * 64))
    seal = json.loads(state(site, "sealed.json").read_text())
    seal["files_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    state(site, "sealed.json").write_text(json.dumps(seal))


@pytest.mark.parametrize(
    "damage",
    [
        lambda site: quietly(bytecode(site, "six"), MARK + bytecode(site, "six").read_bytes()[len(MARK) :]),
        lambda site: bytecode(site, "six").unlink(),
        other_build,
        as_of_another_source,
    ],
    ids=["other bytes", "gone", "another build of Python", "of another source"],
)
def test_bytecode_that_is_not_what_was_sealed_is_compiled_again(done, damage):
    damage(done)
    noted(done).everything()
    content = bytecode(done, "six").read_bytes()
    assert not content.startswith(MARK)
    assert str(done.tree).encode() in content  # Python writes the path of the source into it: this one was made here
    assert check(done) == {"changed": False, "added": []}


def test_a_wheel_with_a_script_of_the_environment_is_fetched(with_pip, tmp_path):
    """Its first line has the path of the environment, so it is no file of the wheel."""
    with_pip.lines["keras"] = [
        with_pip.mirror.add(wheel(tmp_path, "keras", scripts={"tool": "#!python\nprint('tool')\n"}))
    ]
    with_pip.everything()
    with_pip.mirror.requests.clear()
    (with_pip.packages / "six.py").unlink()
    with_pip.everything()
    assert fetched(with_pip) == ["keras", "six"]
    assert subprocess.check_output([with_pip.path / "bin/tool"], text=True) == "tool\n"


def test_a_disk_that_is_full_is_not_a_file_that_differs(done, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    (done.packages / "six.py").unlink()
    done.install("pip")
    done.mirror.requests.clear()
    monkeypatch.setattr(wheel_files, "write", full)
    with pytest.raises(OSError, match="No space left"):
        done.install("tensorflow")
    assert fetched(done) == []
    monkeypatch.undo()
    assert environment_names.problem(str(done.path)) is not None
    assert done.everything() == [False, True, True, True, False]


COPY = """
import os, sys
from ansible.module_utils.hadoop_dl_host import environment_bytes, sealed_files
tree, root, tag, sha256, size = sys.argv[2:]
source = "lib/module.py"
path = sealed_files.bytecode_path(source, tag)
full = os.path.join(tree, path)
row = (path, environment_bytes.content(full.encode()), os.path.getsize(full))
wheel = sealed_files.SealedWheel(tree, "", {source: (sha256, int(size), 0o644)}, {source: row})
print(wheel.copy(source, root), wheel.copy_bytecode(source, root))
"""


@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_every_python_loads_the_bytecode_that_was_copied(tmp_path: Path, python: str, stale: bool) -> None:
    """Up to 3.6 it goes by the time of the source. Bytecode that this Python would not load for that source is not taken."""
    for name in ("old/lib", "new"):
        (tmp_path / name).mkdir(parents=True)
    text = b"import sys; where = sys._getframe().f_code.co_filename\n"
    source = tmp_path / "old/lib/module.py"
    source.write_bytes(text)
    os.utime(source, (wheel_files.TIME, wheel_files.TIME))
    description = subprocess.check_output([python, "-c", sealed_files.BUILD], text=True)
    build = sealed_files.build_of_python(description)
    assert build["version"].startswith(description.split()[0])
    new = subprocess.check_output([python, "-c", "import sys; print(sys.version_info >= (3, 7))"], text=True)
    mode = ["--invalidation-mode", "unchecked-hash"] if new.strip() == "True" else []
    subprocess.run([python, "-m", "compileall", "-q", *mode, str(source)], check=True)
    if stale:
        os.utime(source, (wheel_files.TIME + 1, wheel_files.TIME + 1))
        by_time = ["--invalidation-mode", "timestamp"] if mode else []
        subprocess.run([python, "-m", "compileall", "-q", "-f", *by_time, str(source)], check=True)
    argv = [tmp_path / "old", tmp_path / "new", build["tag"], digest(source), str(len(text))]
    answer = subprocess.check_output([python, "-B", "-c", AS_ON_A_HOST + COPY, UTILITIES, *argv], text=True)
    bytecode_file = tmp_path / "new" / sealed_files.bytecode_path("lib/module.py", build["tag"])
    assert answer.splitlines()[-1].replace("(", "").replace(")", "").replace(",", "") == f"True {not stale}"
    assert bytecode_file.exists() is not stale
    if stale:
        return
    before = bytecode_file.stat()
    shutil.rmtree(tmp_path / "old")
    run = [python, "-c", "import sys; sys.path[:0] = [sys.argv[1]]; import module; print(module.where)"]
    output = subprocess.check_output([*run, str(tmp_path / "new/lib")], text=True, env={"PATH": "/usr/bin:/bin"})
    assert output.strip() == str(tmp_path / "new/lib/module.py")
    after = bytecode_file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)  # loaded, and not made again


def test_the_interpreter_of_a_tree_is_noted(done):
    marker = environment_build.marker(str(done.tree), "made")
    program = "import sys; print(' '.join(sys.version.split())); print(sys.implementation.cache_tag)"
    version, tag = subprocess.check_output([interpreter() or sys.executable, "-c", program], text=True).splitlines()
    assert marker["build"] == {"version": version, "tag": tag}


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
def test_every_python_of_hosts_installs_and_takes_what_is_there(site: Site, python: str) -> None:
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
        for digest in (DIGEST, OTHER):
            site.path = site.path.with_name(f"{STACK}-{digest}")
            for component in site.lines:
                site.install(component, python=host_python)
            site.seal(digest=digest)
    places = [UTILITIES, UTILITIES.replace("module_utils", "modules"), str(Path(basic.__file__).parent)]
    argv = [python, "-c", WITHOUT_ANSIBLE + INSTALL, *places]
    half = len(calls) // 2
    for part, expected in ((calls[:half], ["keras", "pip", "six", "tensorflow"]), (calls[half:], [])):
        subprocess.run(argv, input=json.dumps(part), text=True, check=True, timeout=120)
        assert fetched(site) == expected
    first, second = (
        {path.name: path.read_bytes() for path in tree.glob("lib/python*/site-packages/__pycache__/*.pyc")}
        for tree in (site.root / "envs" / f"{STACK}-{digest}.1" for digest in (DIGEST, OTHER))
    )
    assert len(first) == 4
    assert second == first  # copied: the path of the first tree is in it
    code = "import tensorflow, keras; print(tensorflow.__file__)"
    output = subprocess.check_output([site.path / "bin/python", "-c", code], text=True)
    assert output.startswith(str(site.path))
