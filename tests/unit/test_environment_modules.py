"""locked_packages and environment_seal with a real pip and real environments: small wheels, from a mirror on loopback."""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import environment_seal
import locked_packages
import pytest
from ansible.module_utils import environment_packages, environment_tree
from ansible.module_utils.environment_packages import Refused
from faulty_server import Index, serving

STACK, DIGEST = "demo-stack", "0123456789ab"


def wheel(directory: Path, project: str, version: str = "1.0", code: str = "") -> Path:
    """A wheel of one module, as pip makes it from a project."""
    path = directory / f"{project}-{version}-py2.py3-none-any.whl"
    information = f"{project}-{version}.dist-info"
    members = {
        f"{project}.py": code or f"VERSION = {version!r}\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n",
    }
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for name, text in members.items()
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**members, f"{information}/RECORD": record + f"{information}/RECORD,,\n"}.items():
            archive.writestr(name, text)
    return path


class Mirror(Index):
    """Serves wheels/ with an index page, as Python's own web server does."""

    def add(self, path: Path) -> str:
        """The lock's line for that file."""
        content = path.read_bytes()
        self.files[path.name] = content
        project, version = path.name.split("-")[:2]
        return f"{project}=={version} --hash=sha256:{hashlib.sha256(content).hexdigest()}  # {path.name} {len(content)}"


class Site:
    """A host's /opt/deeplearning, a mirror, and a lock of three components."""

    def __init__(self, root: Path, mirror: Mirror, fixtures: Path) -> None:
        self.root, self.mirror, self.fixtures = root, mirror, fixtures
        bundled = Path(ensurepip.__file__).parent / "_bundled"
        known = {path.name.split("-")[0]: path for path in sorted(fixtures.glob("*.whl"))}
        self.lines = {
            "pip": [mirror.add(next(bundled.glob("pip-*.whl")))],
            "tensorflow": [mirror.add(known["tensorflow"]), mirror.add(known["six"])],
            "keras": [mirror.add(known["keras"])],
        }
        self.path = root / "envs" / f"{STACK}-{DIGEST}"

    @property
    def lock(self) -> str:
        return "# Lock\n" + "".join(f"\n{self.section(component)}" for component in self.lines)

    def section(self, component: str) -> str:
        return "\n".join([f"# component: {component}", *self.lines[component]]) + "\n"

    def install(self, component: str, check: bool = False) -> dict[str, Any]:
        parameters = {
            "environment": str(self.path),
            "component": component,
            "lock": self.section(component),
            "mirror_url": self.mirror.url,
            "mirror_ca": None,
            "python": sys.executable,
            "timeout": 120,
        }
        result: dict[str, Any] = locked_packages.work(Module(parameters, check))
        return result

    def seal(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        parameters = {
            "root": str(self.root),
            "path": str(self.path),
            "stack": STACK,
            "digest": DIGEST,
            "lock": self.lock,
            "imports": ["tensorflow", "keras"],
            "timeout": 60,
            "keep": 1,
            **changes,
        }
        result: dict[str, Any] = environment_seal.work(Module(parameters, check))
        return result

    def everything(self) -> list[bool]:
        return [self.install(component)["changed"] for component in self.lines] + [self.seal()["changed"]]

    @property
    def packages(self) -> Path:
        return Path(environment_packages.site_packages(str(self.path)))

    @property
    def current(self) -> str | None:
        link = self.root / "current"
        return os.readlink(link) if link.is_symlink() else None


class Module:
    def __init__(self, params: dict[str, Any], check_mode: bool) -> None:
        self.params, self.check_mode = params, check_mode


@pytest.fixture(scope="session")
def fixtures(tmp_path_factory):
    directory = tmp_path_factory.mktemp("wheels")
    wheel(directory, "tensorflow")
    wheel(directory, "six")
    wheel(directory, "keras", code="import tensorflow\n")
    return directory


@pytest.fixture(scope="session")
def stages(fixtures, tmp_path_factory):
    """The directory after pip, after all components, and sealed: made once, because a real pip takes its time."""
    roots = {name: tmp_path_factory.mktemp("stage") / "deeplearning" for name in ("pip", "installed", "sealed")}
    with serving(Mirror()) as mirror:
        site = Site(roots["pip"], mirror, fixtures)
        site.install("pip")
        site = copy(site, roots["installed"])
        site.install("tensorflow")
        site.install("keras")
        site = copy(site, roots["sealed"])
        site.seal()
    return roots


def copy(site: Site, root: Path) -> Site:
    shutil.copytree(site.root, root, symlinks=True)
    return Site(root, site.mirror, site.fixtures)


@pytest.fixture
def site(tmp_path, fixtures):
    """A bare host."""
    with serving(Mirror()) as mirror:
        yield Site(tmp_path / "deeplearning", mirror, fixtures)


@pytest.fixture
def with_pip(site, stages):
    shutil.copytree(stages["pip"], site.root, symlinks=True)
    return site


@pytest.fixture
def unproved(site, stages):
    """Everything is installed, nothing is sealed."""
    shutil.copytree(stages["installed"], site.root, symlinks=True)
    return site


@pytest.fixture
def done(site, stages):
    shutil.copytree(stages["sealed"], site.root, symlinks=True)
    return site


def test_a_whole_run_and_the_second_one_changes_nothing(site, monkeypatch):
    # Settings of the host must not reach pip.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "maybe")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    assert site.everything() == [True, True, True, True]
    assert site.current == f"envs/{STACK}-{DIGEST}"
    assert environment_tree.problem(str(site.path)) is None
    assert site.everything() == [False, False, False, False]
    assert sorted(p.name for p in (site.path / ".deeplearning").iterdir()) == [
        "keras.json", "made", "pip.json", "sealed.json", "tensorflow.json", "tree.txt",
    ]  # fmt: skip


def test_check_mode_on_a_bare_host_says_what_would_come_and_changes_nothing(site):
    for component in site.lines:
        result = site.install(component, check=True)
        assert result["changed"] is True
    assert "six 1.0" in site.install("tensorflow", check=True)["diff"]["after"]
    assert site.seal(check=True)["changed"] is True
    assert not site.path.exists()
    assert site.current is None


def test_a_changed_byte_is_refused_by_hash_and_nothing_becomes_active(with_pip):
    name = next(name for name in with_pip.mirror.files if name.startswith("six"))
    content = bytearray(with_pip.mirror.files[name])
    content[40] ^= 255
    with_pip.mirror.files[name] = bytes(content)
    with pytest.raises(Refused, match=r"sha256 of the lock.*six.*expected \w+, got \w+.*-e apply=all"):
        with_pip.install("tensorflow")
    assert environment_packages.installed(str(with_pip.path)).keys() == {"pip"}
    with pytest.raises(Refused, match="The component keras is not completely installed"):
        with_pip.seal()
    assert with_pip.current is None


def test_the_first_pip_is_checked_before_it_runs(site):
    name = next(name for name in site.mirror.files if name.startswith("pip-"))
    site.mirror.files[name] = site.mirror.files[name] + b"x"
    with pytest.raises(Refused, match=r"pip-.*sha256 \w+ instead of"):
        site.install("pip")
    assert environment_packages.installed(str(site.path)) == {}


def test_all_files_that_the_mirror_lacks_are_said_at_once(with_pip):
    for name in [name for name in with_pip.mirror.files if name.startswith(("six", "tensorflow"))]:
        del with_pip.mirror.files[name]
    with pytest.raises(Refused, match=r"without six-.*whl, tensorflow-.*whl\. Fill the mirror"):
        with_pip.install("tensorflow")


def test_a_mirror_that_does_not_answer_is_told(site, monkeypatch):
    monkeypatch.setattr(locked_packages.time, "sleep", lambda seconds: None)
    site.mirror.url = "http://127.0.0.1:9"
    with pytest.raises(
        Refused, match=r"The mirror is needed, and http://127.0.0.1:9/wheels/ answers.*deeplearning-mirror"
    ):
        site.install("pip")


def test_too_little_room_is_told_before_pip_runs(with_pip):
    line = with_pip.lines["tensorflow"][0]
    with_pip.lines["tensorflow"][0] = line.rpartition(" ")[0] + " 900000000000000"
    with pytest.raises(Refused, match=r"About 3600000000 MB are needed in .*, and \d+ MB are free"):
        with_pip.install("tensorflow")


def test_a_lock_without_hashes_is_refused(site):
    site.lines["pip"] = ["pip==23.0"]
    with pytest.raises(Refused, match="needs one version and one sha256"):
        site.install("pip")


def test_a_killed_installation_heals(unproved, tmp_path):
    """The state a killed pip leaves: the marker of the beginning, part of a package, a moved-away old one, no end."""
    state = unproved.path / ".deeplearning"
    (state / "tensorflow.json").rename(state / "tensorflow.started")
    (unproved.packages / "six.py").unlink()
    (unproved.packages / "tensorflow.py").write_text("half")
    (unproved.packages / "~ensorflow").mkdir()
    (unproved.packages / "~ensorflow" / "old.py").write_text("old")
    assert unproved.everything() == [False, True, False, True]
    assert (unproved.packages / "tensorflow.py").read_text() == "VERSION = '1.0'\n"
    assert not list(unproved.packages.glob("~*"))


def test_an_environment_that_was_being_made_is_made_anew(site):
    (site.path / ".deeplearning").mkdir(parents=True)
    (site.path / ".deeplearning" / "pip.started").write_text("")
    (site.path / "bin").mkdir()
    (site.path / "bin" / "python").symlink_to("/bin/false")
    assert site.everything() == [True, True, True, True]


def test_a_directory_of_somebody_else_is_not_removed(site):
    site.path.mkdir(parents=True)
    (site.path / "data").write_text("precious")
    with pytest.raises(Refused, match="something else is there"):
        site.install("pip")
    assert (site.path / "data").read_text() == "precious"


def test_pip_that_hangs_is_ended_and_told(with_pip, monkeypatch):
    monkeypatch.setattr(
        locked_packages.packages, "run", lambda *_, **__: (0 if "-c" in _[0] else None, "Looking in links: x\n")
    )
    with pytest.raises(Refused, match="pip has to end within 120 s, and did not. Its last words: Looking in links"):
        with_pip.install("tensorflow")
    assert (with_pip.path / ".deeplearning" / "tensorflow.started").exists()


def test_a_process_that_hangs_is_ended_with_all_its_children(tmp_path):
    beacon = tmp_path / "alive"
    script = f"(sleep 2; touch {beacon}) & wait"
    assert environment_packages.run(["/bin/sh", "-c", script], 0.5, dict(os.environ))[0] is None
    time.sleep(2.2)
    assert not beacon.exists()


def test_a_sealed_environment_refuses_another_lock(done, tmp_path):
    done.lines["keras"] = [done.mirror.add(wheel(tmp_path, "keras", "2.0"))]
    with pytest.raises(Refused, match="never changes once it is sealed"):
        done.install("keras")


def test_a_damaged_environment_is_repaired_and_sealed_again(done):
    before = environment_tree.lines(str(done.path))
    (done.packages / "six.py").unlink()
    (done.packages / "keras.py").write_text("evil = True\n")
    (done.packages / "extra.py").write_text("")
    problem = environment_tree.problem(str(done.path))
    assert problem.startswith("files changed since it was sealed: 1 gone (lib/")
    assert "six.py), 1 changed (" in problem
    assert "keras.py), 1 added (" in problem
    with pytest.raises(Refused, match="has to be the tree that was sealed"):
        done.seal()
    assert done.everything() == [True, True, True, True]
    names = [line.split(b" ", 2)[2] for line in environment_tree.lines(str(done.path))]
    assert names == [line.split(b" ", 2)[2] for line in before]
    assert (done.packages / "six.py").read_text() == "VERSION = '1.0'\n"
    assert (done.packages / "keras.py").read_text() == "import tensorflow\n"


def test_bytecode_is_no_damage(done):
    (done.packages / "__pycache__").mkdir(exist_ok=True)
    (done.packages / "__pycache__" / "new.cpython-311.pyc").write_bytes(b"x")
    (done.packages / "new.pyc").write_bytes(b"x")
    assert environment_tree.problem(str(done.path)) is None


def test_the_tree_digest_does_not_depend_on_the_interpreter(done):
    pythons = [
        python for python in ("/usr/bin/python3", "/usr/bin/python2.7", sys.executable) if os.path.exists(python)
    ]
    code = "import sys, environment_tree as t; print(t.digest(t.lines(sys.argv[1])))"
    utilities = Path(__file__).resolve().parents[2] / "plugins" / "module_utils"
    (done.packages / "spaces and ümläuts.txt").write_text("x")
    answers = {
        subprocess.check_output([python, "-B", "-c", code, str(done.path)], env={"PYTHONPATH": str(utilities)})
        for python in pythons
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda s: (s.packages / "six.py").write_text("evil = True\n"), "six-1.0.dist-info: changed: six.py"),
        (lambda s: (s.packages / "six.py").unlink(), "six-1.0.dist-info: missing: six.py"),
        (lambda s: (s.packages / "six-1.0.dist-info" / "RECORD").unlink(), "six-1.0.dist-info has no RECORD"),
        (lambda s: (s.path / ".deeplearning" / "keras.json").unlink(), "keras is not completely installed"),
        (lambda s: s.lines["keras"].append(s.lines["keras"][0].replace("keras==", "yaml==")), "keras was installed from another"),
        (lambda s: (s.packages / "x-1.dist-info").mkdir() or (s.packages / "x-1.dist-info" / "METADATA").write_text("Name: x\nVersion: 1\n"), "x is not in the lock"),
    ],
    ids=["changed", "missing", "no record", "incomplete", "other lock", "stranger"],
)  # fmt: skip
def test_what_is_not_proved_does_not_become_active(unproved, damage, words):
    damage(unproved)
    with pytest.raises(Refused) as error:
        unproved.seal()
    assert words in str(error.value)
    assert "active environment (none) is as it was" in str(error.value)
    assert unproved.current is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "raise ImportError('libcudart.so.10.0: cannot open shared object file')",
            "GPU wheels of TensorFlow up to 1.14",
        ),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})", "illegal instruction"),
        ("raise RuntimeError('riddle')", "import keras fails: RuntimeError: riddle"),
        ("import time; time.sleep(60)", "import keras did not end within 2 s"),
    ],
    ids=["cuda", "avx", "other", "hang"],
)
def test_an_import_that_fails_is_explained(unproved, code, words):
    (unproved.packages / "keras.py").write_text(code + "\n")
    problem = environment_seal.import_problem(str(unproved.path), "keras", 2)
    assert words in problem


def test_a_failed_proof_leaves_the_old_environment_active(with_pip):
    (with_pip.root / "envs" / "old").mkdir()
    (with_pip.root / "current").symlink_to("envs/old")
    with pytest.raises(Refused, match="active environment \\(envs/old\\) is as it was"):
        with_pip.seal()
    assert with_pip.current == "envs/old"


def test_current_has_to_be_a_link(done):
    (done.root / "current").unlink()
    (done.root / "current").mkdir()
    with pytest.raises(Refused, match="has to be a link"):
        done.seal()


def old(site: Site, name: str, age: int, sealed: bool = True) -> Path:
    path = site.root / "envs" / name
    (path / ".deeplearning").mkdir(parents=True)
    if sealed:
        (path / ".deeplearning" / "sealed.json").write_text("{}")
        os.utime(path / ".deeplearning" / "sealed.json", (time.time() - age,) * 2)
    return path


def test_old_environments_go_and_the_last_ones_stay(done):
    for name, age in (("a-1", 300), ("b-2", 200), ("c-3", 100)):
        old(done, name, age)
    old(done, "d-4", 0, sealed=False)
    (done.root / "envs" / "notes").mkdir()
    assert sorted(done.seal(check=True)["removed"]) == ["a-1", "b-2", "d-4"]
    assert sorted(done.seal()["removed"]) == ["a-1", "b-2", "d-4"]
    left = sorted(p.name for p in (done.root / "envs").iterdir() if not p.name.startswith("."))
    assert left == ["c-3", f"{STACK}-{DIGEST}", "notes"]
    assert done.seal()["changed"] is False


def test_an_old_environment_that_a_process_runs_from_stays(done):
    path = old(done, "a-1", 300)
    process = subprocess.Popen(["/bin/sleep", "30"], cwd=path)
    try:
        result = done.seal(keep=0)
        assert result["spared"] == {"a-1": [process.pid]}
        assert result["changed"] is False
        assert path.is_dir()
    finally:
        process.kill()
        process.wait()
    assert done.seal(keep=0)["removed"] == ["a-1"]


def test_the_path_has_to_be_the_one_of_stack_and_digest(done):
    with pytest.raises(Refused, match="Correct environment_path"):
        done.seal(digest="ffffffffffff")


def test_everybody_can_read_and_only_root_can_write(done):
    for directory, _, files in os.walk(done.path):
        for name in [directory, *(os.path.join(directory, file) for file in files)]:
            if not os.path.islink(name):
                mode = os.stat(name).st_mode
                assert mode & stat.S_IROTH
                assert not mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_two_runs_at_once_take_turns(unproved):
    (unproved.path / ".deeplearning" / "keras.json").unlink()
    results = []
    threads = [threading.Thread(target=lambda: results.append(unproved.install("keras")["changed"])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False, True]
