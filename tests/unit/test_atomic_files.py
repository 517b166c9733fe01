"""Files that have their name only when they are complete."""

import errno
import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import python_files
from ansible.module_utils.hadoop_dl_host import atomic_files, yarn_exclude
from ansible_programs import REPOSITORY
from other_processes import ended


def test_a_file_is_replaced_and_everybody_reads_it(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("old")
    (tmp_path / ".draft-state.json").write_text("of a killed run")
    atomic_files.write_whole(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_file_has_its_mode_and_owner_before_its_name(tmp_path, monkeypatch):
    states: list[tuple[int, int, int]] = []

    def rename(draft: str, path: str) -> None:
        status = os.stat(draft)
        states.append((status.st_mode & 0o777, status.st_uid, status.st_gid))
        os.replace(draft, path)

    monkeypatch.setattr(os, "rename", rename)
    owner = (12345, 12346) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    atomic_files.write_whole(str(tmp_path / "secret"), b"new", mode=0o600, owner=owner)
    assert states == [(0o600, *owner)]


def test_a_link_in_place_of_the_draft_is_not_followed(tmp_path):
    (tmp_path / "other").write_text("not ours")
    (tmp_path / ".draft-state.json").symlink_to(tmp_path / "other")
    atomic_files.write_whole(str(tmp_path / "state.json"), b"new")
    assert (tmp_path / "other").read_text() == "not ours"


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_disk_that_refuses_leaves_what_was_there(tmp_path, monkeypatch, step):
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "state.json"
    path.write_text("old")
    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="No space left"):
        atomic_files.write_whole(str(path), b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.json"]


def test_the_draft_of_a_running_process_is_told_from_that_of_a_killed_one():
    assert atomic_files.is_being_written(f"cudnn.new-{os.getpid()}")
    assert not atomic_files.is_being_written(f"cudnn.new-{ended()}")
    assert not atomic_files.is_being_written("cudnn.new")


def test_files_of_processes_that_ended_are_removed_and_those_of_running_ones_stay(tmp_path):
    path = tmp_path / "spark[1].tgz"
    for number in (ended(), os.getppid(), os.getpid()):  # an ended process may have had this one's number
        Path(f"{path}-{number}").touch()
    assert atomic_files.own_name(str(path)) == f"{path}-{os.getpid()}"
    assert os.listdir(tmp_path) == [f"spark[1].tgz-{os.getppid()}"]


def test_all_users_may_enter_a_directory_whatever_the_umask_is(tmp_path):
    mask = os.umask(0o077)
    try:
        atomic_files.make_directory(str(tmp_path / "a/b"))
        atomic_files.make_directory(str(tmp_path / "c/d"), 0o700)
    finally:
        assert os.umask(mask) == 0o077
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "c", "c/d")]
    assert modes == [0o755, 0o755, 0o755, 0o700]


def test_a_directory_that_another_process_makes_first_is_there(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    answers = iter([False, True, True])  # the directory, its parent, and again after the other process
    monkeypatch.setattr(atomic_files.os.path, "isdir", lambda path: next(answers))
    atomic_files.make_directory(str(tmp_path / "a"))
    assert list(answers) == []


def test_a_directory_whose_name_a_file_has_is_an_error(tmp_path):
    (tmp_path / "builds").touch()
    with pytest.raises(OSError, match="File exists"):
        atomic_files.make_directory(str(tmp_path / "builds"))


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
NOBODY = pwd.getpwnam("nobody").pw_uid
FILE_KEYS = python_files.load(REPOSITORY / "plugins/modules/file_keys.py")


@pytest.fixture
def of_an_account() -> Iterator[Path]:
    """A file in a directory of nobody, as on hosts where Hadoop was unpacked from an archive."""
    with tempfile.TemporaryDirectory() as directory:  # pytest's own directories are closed to other accounts
        Path(directory).chmod(0o755)
        path = Path(directory, "conf", "settings")
        path.parent.mkdir()
        path.write_bytes(b"of the account")
        path.chmod(0o640)
        for place in (path.parent, path):
            os.chown(place, NOBODY, -1)
        yield path


@AS_ROOT
@pytest.mark.parametrize("module", [yarn_exclude, FILE_KEYS])
@pytest.mark.parametrize(("owner", "mode"), [(NOBODY, 0o640), (0, 0o644)])
def test_root_writes_the_file_of_an_account_as_this_account(of_an_account, module, owner, mode):
    """Also if it has an owner or group that the account cannot give."""
    os.chown(of_an_account, owner, 0)
    of_an_account.chmod(mode)
    assert module.read(str(of_an_account)) == b"of the account"
    module.write(str(of_an_account), b"new")
    status = of_an_account.stat()
    assert (of_an_account.read_bytes(), status.st_uid, status.st_mode & 0o777) == (b"new", NOBODY, mode)
    assert (os.geteuid(), os.getegid()) == (0, 0)


@AS_ROOT
@pytest.mark.parametrize("module", [yarn_exclude, FILE_KEYS])
@pytest.mark.parametrize("exchanged", ["the file", "its directory"])
def test_a_file_that_its_account_exchanges_meanwhile_is_none_of_root(of_an_account, tmp_path, module, exchanged):
    """What was read is the account's text: as root it would be written over a file such as /etc/sudoers."""
    of_root = tmp_path / "settings"
    of_root.write_text("of root")
    data = module.read(str(of_an_account))
    place = of_an_account if exchanged == "the file" else of_an_account.parent
    place.rename(place.with_name("aside"))
    place.symlink_to(of_root if exchanged == "the file" else tmp_path)
    os.lchown(place, NOBODY, -1)
    for attack in (lambda: module.write(str(of_an_account), data), lambda: module.read(str(of_an_account))):
        with pytest.raises(OSError, match="another account|root works as this account there, but: .*Permission denied"):
            attack()
    assert of_root.read_text() == "of root"


@AS_ROOT
@pytest.mark.parametrize(("mode", "refused"), [(0o775, True), (0o757, True), (0o1777, False)])
def test_a_file_that_anybody_can_exchange_is_refused(of_an_account, mode, refused):
    os.chown(of_an_account.parent, 0, 65534)
    of_an_account.parent.chmod(mode)
    if refused:
        with pytest.raises(OSError, match=rf"others than root can exchange the files in {of_an_account.parent}"):
            atomic_files.keeper(str(of_an_account))
    else:
        assert atomic_files.keeper(str(of_an_account)) == NOBODY
