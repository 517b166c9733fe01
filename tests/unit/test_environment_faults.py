"""Environments under faults: damage, kills, a power loss, a full disk, a mirror that goes wrong. The same command heals."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import environment_activate
import environment_seal
import locked_packages
import pytest
from ansible.module_utils.hadoop_dl_host import downloads, environment_build, environment_names, host_lock
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from environments import NAME, Mirror, Site
from other_processes import lasting

REPO = Path(__file__).resolve().parents[2]
STEPS = """
import json, sys
sys.path[:0] = [{modules!r}]
import hadoop_dl
import environment_activate, environment_seal, locked_packages

class Module:
    check_mode = False
    def __init__(self, params):
        self.params = params

import os, signal
names = []
def last_breath(what):
    def wrapped(source, target, **more):
        names.append(os.path.basename(target))
        if len(names) == int(os.environ.get("KILL_AT", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        return what(source, target, **more)
    return wrapped
os.rename, os.symlink = last_breath(os.rename), last_breath(os.symlink)

for name, params in json.load(sys.stdin):
    sys.modules[name].work(Module(params))
"""


# --- a repair never touches what works -------------------------------------------------------------------------------


def damage(site: Site) -> None:
    (site.packages / "six.py").unlink()
    (site.packages / "keras.py").write_text("evil = True\n")
    (site.packages / "tensorflow.py").unlink()
    os.mkfifo(site.packages / "tensorflow.py")  # nobody writes to it


def test_a_repair_builds_beside_and_switches(done):
    before = done.content()
    first = done.tree
    damage(done)
    problem = environment_names.problem(str(done.path))
    assert problem.startswith("files changed since it was sealed: 1 gone (lib/")
    assert done.install("pip")["repaired"] == problem
    assert os.readlink(done.path) == f"{NAME}.1"
    assert done.everything() == [False, True, True, True, False]
    assert os.readlink(done.path) == f"{NAME}.2"
    assert not first.exists()
    assert done.content() == before
    assert done.everything() == [False, False, False, False, False]


def test_a_repair_that_fails_leaves_the_environment_as_it_was(done):
    (done.packages / "keras.py").write_text("evil = True\n")
    seal = (done.path / ".deeplearning" / "sealed.json").read_bytes()
    done.mirror.url = "http://127.0.0.1:9"
    with pytest.raises(Refused, match="The active environment is unchanged"):
        done.install("pip")
    assert (done.path / ".deeplearning" / "sealed.json").read_bytes() == seal
    assert done.current == f"envs/{NAME}"
    assert subprocess.check_output([done.path / "bin" / "python", "-c", "import six; print(six.VERSION)"]) == b"1.0\n"
    assert {path.name for path in (done.root / "envs").iterdir() if path.is_dir()} == {NAME, f"{NAME}.1"}


def test_a_damaged_tree_stays_while_a_process_runs_from_it(done):
    first = done.tree
    damage(done)
    with lasting(cwd=first) as process:
        for component in done.lines:
            done.install(component)
        answer = done.seal()
        assert answer["spared"] == {first.name: [process.pid]}
        assert first.exists()
    assert done.seal()["removed"] == [first.name]


# --- interruptions ---------------------------------------------------------------------------------------------------


def start(site: Site, kill_at: int = 0) -> subprocess.Popen[bytes]:
    """All steps in a process of their own, as Ansible runs a module. kill_at: the rename or link before which it is killed, counted from 1."""
    steps = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (locked_packages, environment_seal, environment_activate):

            def record(given, name=module.__name__):
                steps.append((name, given.params))
                return {"changed": True}

            patch.setattr(module, "work", record)
        site.everything()
    program = STEPS.format(modules=str(REPO / "plugins/modules"))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "KILL_AT": str(kill_at)},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    process.stdin.write(json.dumps(steps).encode())
    process.stdin.close()
    process.stdin = None  # communicate() would flush it
    return process


@pytest.fixture(scope="session")
def undisturbed(stages, fixtures):
    return Site(stages["active"], Mirror(), fixtures).content()


def test_a_component_that_was_begun_and_not_completed_is_built_again(with_pip, monkeypatch):
    """With its tree, because Python writes bytecode under other names first, and the seal would refuse these files."""
    run = environment_build.Component.run

    def kill_compilers(self, command, *rest, **more):
        return (-9, "Killed") if "compileall" in command else run(self, command, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(environment_build.Component, "run", kill_compilers)
        with pytest.raises(Refused, match="Compiling the packages ended with status -9: Killed"):
            with_pip.install("tensorflow")
    (with_pip.packages / "__pycache__" / "six.cpython-311.pyc.139645794247584").write_bytes(b"")
    with pytest.raises(Refused, match="Install the component pip first"):
        with_pip.install("tensorflow")
    assert with_pip.everything() == [True, True, True, True, True]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["first installation", "repair"])
def test_a_kill_at_any_moment_heals_with_the_same_command(request, kind, seed, undisturbed):
    site = request.getfixturevalue("site" if kind == "first installation" else "done")
    if kind == "repair":
        damage(site)
    moments = random.Random(seed * 2 + (kind == "repair"))  # noqa: S311  (a reproducible moment)
    active = site.current
    for _ in range(2):
        process = start(site)
        time.sleep(moments.uniform(0.4, 4.0))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if site.current:  # nothing half-made is ever active
            assert (site.path / ".deeplearning" / "sealed.json").exists()
    process = start(site)
    assert process.wait() == 0, process.stderr.read().decode()
    assert site.current == f"envs/{NAME}"
    assert active in (None, site.current)
    assert environment_names.problem(str(site.path)) is None
    assert site.content() == undisturbed
    assert site.everything() == [False, False, False, False, False]
    names = {path.name for path in (site.root / "envs").iterdir()}
    assert names == {NAME, site.tree.name}


def test_a_kill_before_each_rename_and_link_leaves_nothing_behind(site, undisturbed):
    """The moments that change what counts: markers, seal, links."""
    number, status = 1, -signal.SIGKILL
    while status == -signal.SIGKILL:
        process = start(site, kill_at=number)
        status = process.wait()
        number += 1
        if site.current:
            assert environment_names.problem(str(site.path)) is None
    assert status == 0, process.stderr.read().decode()
    assert number > 3
    assert site.content() == undisturbed
    assert sorted(path.name for path in (site.root / "envs").iterdir()) == [NAME, f"{NAME}.1"]
    state = [path.name for path in (site.tree / ".deeplearning").iterdir()]
    assert [name for name in state if name.startswith(".") or name == "failed"] == []
    assert sorted(path.name for path in site.root.iterdir()) == [".lock", ".reserve", "current", "envs"]


def lose_power(tree: Path, seed: int) -> None:
    """What was never synced is short after a power loss; what was synced and renamed (markers) is there."""
    dice = random.Random(seed)  # noqa: S311
    files = [path for path in sorted(tree.rglob("*.py")) if not path.is_symlink() and path.stat().st_size]
    for path in dice.sample(files, 2):
        os.truncate(path, 0 if dice.random() < 0.5 else path.stat().st_size // 2)


def keep_size(tree: Path, _: int) -> None:
    [path] = tree.glob("lib/*/site-packages/six.py")
    path.write_bytes(path.read_bytes().replace(b"1.0", b"6.6"))


@pytest.mark.parametrize("fault", [lose_power, keep_size])
def test_a_tree_that_failed_its_checks_is_built_again_by_the_next_run(unproved, fault, undisturbed):
    """Never refused for ever."""
    fault(unproved.tree, 1)
    with pytest.raises(Refused, match="it builds the environment again"):
        unproved.everything()
    assert unproved.everything() == [True, True, True, True, True]
    assert unproved.content() == undisturbed


@pytest.mark.parametrize("seed", range(2))
def test_a_sealed_tree_that_a_power_loss_cut_off_is_built_again(done, seed, undisturbed):
    lose_power(done.tree, seed)
    done.everything()
    assert done.content() == undisturbed
    assert os.readlink(done.path) == f"{NAME}.2"


def test_everything_is_on_the_disk_before_a_marker_says_so(site, monkeypatch):
    """Every .json of the state follows a sync of the tree, with no write of other files between them."""
    events = []
    write_json = environment_build.atomic_files.write_json
    monkeypatch.setattr(environment_build.environment_bytes, "sync", lambda path: events.append("sync"))
    monkeypatch.setattr(
        environment_build.atomic_files,
        "write_json",
        lambda path, value: events.append(os.path.basename(path)) or write_json(path, value),
    )
    site.everything()
    marks = ["made.json", "pip.json", "tensorflow.json", "keras.json", "sealed.json"]
    assert [event for event in events if event != "sync"] == [*marks, "activated.json"]
    for mark in marks:
        assert events[events.index(mark) - 1] == "sync"


def test_an_environment_that_was_being_made_is_made_again(site):
    tree = site.path.with_name(f"{NAME}.1")
    (tree / ".deeplearning").mkdir(parents=True)
    (tree / "bin").mkdir()
    (tree / "bin" / "python").symlink_to("/bin/false")
    assert site.everything() == [True, True, True, True, True]


def test_two_runs_at_once_take_turns(site):
    """The second one finds everything done."""
    processes = [start(site) for _ in range(2)]
    errors = [process.communicate(timeout=200)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], "\n".join(errors)
    assert os.readlink(site.path) == f"{NAME}.1"
    assert site.everything() == [False, False, False, False, False]


def test_a_run_that_must_wait_too_long_names_the_holder_and_makes_no_directory(site, monkeypatch):
    created_paths = []
    with host_lock.HostLock("Spark 3.5.8", 1, str(site.root)):
        monkeypatch.setattr(os, "makedirs", lambda path, *_: created_paths.append(path))
        with pytest.raises(host_lock.HostLocked, match=r"Spark 3\.5\.8 \(process \d+\) has held"):
            site.install("pip", timeout=1)
    assert created_paths == []


# --- the mirror ------------------------------------------------------------------------------------------------------


def wheel_of(site: Site, project: str) -> str:
    return next(name for name in site.mirror.files if name.startswith(project))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("flip", r"must have the sha256 of the lock\. six.* has other bytes \(expected \w+, \d+ bytes; got \w+"),
        ("login", "has other bytes"),
        ("endless", r"got \w+, more than \d+ bytes"),
        ("trickle", r"not complete in the time allowed"),
    ],
)
def test_what_a_server_may_answer_is_bounded_and_reported(with_pip, monkeypatch, fault, words):
    monkeypatch.setattr(downloads, "PAUSE", 0)
    with_pip.mirror.faults[wheel_of(with_pip, "six")] = [fault] * 3
    began = time.monotonic()
    with pytest.raises(Refused, match=words) as error:
        with_pip.install("tensorflow", timeout=4)
    assert time.monotonic() - began < 60
    assert "the active environment is unchanged" in str(error.value).lower()
    assert not list(with_pip.packages.glob("six*"))
    with_pip.mirror.faults.clear()
    assert with_pip.install("tensorflow")["changed"] is True


def test_the_first_wheels_are_checked_before_they_run(site):
    name = wheel_of(site, "pip")
    site.mirror.files[name] += b"x"
    with pytest.raises(Refused, match=r"pip-.* has other bytes"):
        site.install("pip")
    assert not list(site.packages.glob("pip*"))


def test_all_files_that_the_mirror_lacks_are_reported_at_once(with_pip):
    for name in [name for name in with_pip.mirror.files if name.startswith(("six", "tensorflow"))]:
        del with_pip.mirror.files[name]
    with pytest.raises(Refused, match=r"without six-.*whl, tensorflow-.*whl\. Fill the mirror"):
        with_pip.install("tensorflow")


def test_a_mirror_that_does_not_answer_is_reported(site, monkeypatch):
    monkeypatch.setattr(downloads, "PAUSE", 0)
    site.mirror.url = "http://127.0.0.1:9"
    words = r"The mirror must serve http://127.0.0.1:9/wheels/ but .*refused.*deeplearning-mirror"
    with pytest.raises(Refused, match=words):
        site.install("pip")


# --- the disk --------------------------------------------------------------------------------------------------------


def test_too_little_room_is_reported_before_anything_is_fetched(with_pip):
    line = with_pip.lines["tensorflow"][0]
    with_pip.lines["tensorflow"][0] = line.rpartition(" ")[0] + " 900000000000000"
    with pytest.raises(Refused, match=r"needs about 4500000000 MB but has \d+ MB free"):
        with_pip.install("tensorflow")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nas:/opt /opt nfs4 rw,relatime 0 0", "nfs4"),
        ("/dev/sda1 /opt xfs ro,relatime 0 0", "ro"),
        ("/dev/sda1 /opt xfs rw,nosuid,noexec 0 0", "noexec"),
    ],
)
def test_a_file_system_that_cannot_hold_environments_is_refused(tmp_path, monkeypatch, line, words):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda2 / ext4 rw 0 0\n{line}\n/dev/sdb /optional ext4 rw 0 0\n")
    mount_of = environment_build.mount_of
    monkeypatch.setattr(environment_build, "mount_of", lambda path: mount_of(path, str(mounts)))
    with pytest.raises(Refused, match=rf"is on /opt, which is mounted as {words}\."):
        environment_build.check_mount("/opt/deeplearning/envs")
    environment_build.check_mount("/optional/x")
    environment_build.check_mount("/srv")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("size=40m,nr_inodes=400", r"needs \d+ inodes but has \d+ free \(df -i\)"),
        ("size=200k", r"needs about \d+ MB but has 0 MB free"),
        ("size=40m,noexec", "mounted as noexec"),
    ],
)
def test_a_disk_without_room_is_refused_and_heals(site, small, options, words):
    path = small(options)
    site.take_real_pip()
    site.root = path / "deeplearning"
    site.path = site.root / "envs" / NAME
    with pytest.raises((Refused, OSError), match=words):
        site.everything()
    subprocess.run(["mount", "-o", "remount,exec,size=200m,nr_inodes=0", str(path)], check=True)
    assert site.everything()[-1] is True
    assert environment_names.problem(str(site.path)) is None


def test_the_draft_names_of_a_killed_run_do_not_stay(done):
    (done.root / "envs" / f".removing-{NAME}.1").mkdir()
    (done.root / "envs" / f".link-{NAME}").symlink_to("nowhere")
    damage(done)
    done.everything()
    assert {path.name for path in (done.root / "envs").iterdir()} == {NAME, f"{NAME}.2"}


def test_names_of_trees_are_told_apart_from_stacks_with_dots():
    name = "tf2.15-py3-el9-0123456789ab"
    assert {environment_names.name_of(name + end) for end in ("", ".12", ".client")} == {name}
