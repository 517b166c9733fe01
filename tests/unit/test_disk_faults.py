"""The disk goes wrong in the middle of each step of an environment, while another one is active: real small file systems."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import environment_activate
import environment_seal
import locked_packages
import pytest
from ansible.module_utils.hadoop_dl_host import disk_space, environment_names
from environments import STACK, Site

NEXT = "ba9876543210"  # the digest of the environment that is installed beside the active one
MIDDLE = {"pip": "pip", "tensorflow": "six", "keras": "keras"}  # the wheel before which the fault comes


class Failed(Exception):
    """What a module said before it ended."""


class Succeeded(Exception):
    """The result of a module."""


class Module:
    """The arguments of a module, and its two ways to end."""

    check_mode = False

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params

    def fail_json(self, msg: str) -> NoReturn:
        raise Failed(msg)

    def exit_json(self, **result: Any) -> NoReturn:
        raise Succeeded(result)


@pytest.fixture
def whole_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Site runs main() of each module: what it ends with, and no exception of Python's."""
    for module in (locked_packages, environment_seal, environment_activate):

        def work(given: Any, module: Any = module, real: Any = module.work) -> dict[str, Any]:
            with monkeypatch.context() as patch:
                patch.setattr(module, "work", real)
                patch.setattr(module, "AnsibleModule", lambda **_: Module(given.params))
                try:
                    module.main()
                except Succeeded as end:
                    return dict(end.args[0])
            raise AssertionError("the module did not end")

        monkeypatch.setattr(module, "work", work)


@pytest.fixture
def small(done: Site, small: Callable[[str], Path], whole_modules: None) -> Site:
    """The host, with its active environment, on a file system of its own; `path` is the environment that comes next."""
    path = small("size=16m,nr_inodes=3000") / "deeplearning"
    done.root = Path(shutil.copytree(done.root, path, symlinks=True))
    done.path = done.root / "envs" / f"{STACK}-{NEXT}"
    return done


def steps(site: Site) -> dict[str, Callable[[], dict[str, Any]]]:
    """What the playbooks do."""
    components = {name: lambda name=name: site.install(name) for name in site.lines}
    return {**components, "seal": lambda: site.seal(digest=NEXT), "activate": site.activate}


def no_bytes(site: Site, left: int = 0) -> Callable[[], object]:
    path = site.root.parent / "filler"
    with path.open("wb") as handle:
        while (free := os.statvfs(path).f_bavail * os.statvfs(path).f_frsize - left) > 0:
            with contextlib.suppress(OSError):  # a module that writes beside took some of it
                os.posix_fallocate(handle.fileno(), 0, free + os.fstat(handle.fileno()).st_size)
                break
    return path.unlink


def no_inodes(site: Site, left: int = 0) -> Callable[[], object]:
    path = site.root.parent / "filler"
    path.mkdir()
    with contextlib.suppress(OSError):  # a module that writes beside took the last ones
        for number in range(os.statvfs(path).f_favail - left):
            (path / str(number)).touch()
    return lambda: shutil.rmtree(path)


def remounted(site: Site, option: str, back: str) -> Callable[[], object]:
    mount = ["mount", "-o", f"remount,{option}", str(site.root.parent)]
    subprocess.run(mount, check=True)
    return lambda: subprocess.run([*mount[:2], f"remount,{back}", mount[-1]], check=True)


def read_only(site: Site) -> Callable[[], object]:
    return remounted(site, "ro", "rw")


def no_programs(site: Site) -> Callable[[], object]:
    return remounted(site, "noexec", "exec")


def check_active(site: Site, link: str) -> None:
    """The environment that was active is, and works."""
    assert os.readlink(site.root / "current") == link
    assert environment_names.problem(str(site.root / link)) is None
    python = site.root / "current" / "bin" / "python"
    assert subprocess.check_output([python, "-B", "-c", "import six; print(six.VERSION)"]) == b"1.0\n"


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (no_bytes, r"No space left on device|needs about \d+ MB but has \d+ MB free"),
        (no_inodes, r"No space left on device|needs \d+ inodes but has \d+ free"),
        (read_only, r"mounted as ro\.|Read-only file system"),
        (no_programs, r"mounted as noexec\.|Permission denied"),
    ],
)
def test_each_step_reports_the_fault_and_the_same_command_continues(small, fault, words):
    active = os.readlink(small.root / "current")
    before = set(small.at(small.root / active).content())
    for name, step in steps(small).items():
        if fault is no_programs and name not in MIDDLE:
            continue  # the interpreter is the host's own, and these wheels have no libraries
        if name == "activate":
            disk_space.release_reserve(str(small.root))  # with it the switch succeeds on a full disk
        undo: list[Callable[[], object]] = []
        if name in MIDDLE and fault in (no_bytes, no_inodes):
            small.mirror.meanwhile = lambda file, name=name, undo=undo: (
                undo.append(fault(small)) if file.startswith(MIDDLE[name]) and not undo else None
            )
        else:
            undo.append(fault(small))
        with pytest.raises(Failed, match=words) as error:
            step()
        assert any(word in str(error.value) for word in ("run the playbook again", "Remove ", "Remount "))
        small.mirror.meanwhile = lambda file: None
        undo[0]()
        check_active(small, active)
        assert step()["changed"] is True
    for step in steps(small).values():
        step()
    check_active(small, f"envs/{STACK}-{NEXT}")
    assert set(small.content()) == before
    assert [step()["changed"] for step in steps(small).values()] == [False] * 5


@pytest.mark.parametrize(("fault", "left"), [(no_bytes, 20_000), (no_inodes, 6)])
def test_a_disk_that_is_too_small_for_python_itself_is_reported_as_that(small, fault, left):
    """There is room for the wheels of pip, and not for the environment that they go to."""
    undo = fault(small, left)
    with pytest.raises(Failed, match=r"No space left on device|needs about|needs \d+ inodes") as error:
        small.install("pip")
    assert "interpreter" not in str(error.value)
    undo()
    assert small.install("pip")["changed"] is True
