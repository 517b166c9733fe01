"""Files that have their name only when they are complete."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import whole_files
from other_processes import ended


def test_a_file_is_replaced_and_everybody_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")
    (tmp_path / ".draft-state.json").write_text("of a killed run")
    whole_files.write_whole(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["state.json"]


def test_a_file_has_its_mode_and_owner_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[tuple[int, int, int]] = []

    def rename(draft: str, path: str) -> None:
        status = os.stat(draft)
        states.append((status.st_mode & 0o777, status.st_uid, status.st_gid))
        os.replace(draft, path)

    monkeypatch.setattr(os, "rename", rename)
    owner = (12345, 12346) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    whole_files.write_whole(str(tmp_path / "secret"), b"new", mode=0o600, owner=owner)
    assert states == [(0o600, *owner)]


def test_a_link_in_place_of_the_draft_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("not ours")
    (tmp_path / ".draft-state.json").symlink_to(tmp_path / "other")
    whole_files.write_whole(str(tmp_path / "state.json"), b"new")
    assert (tmp_path / "other").read_text() == "not ours"


@pytest.mark.parametrize("step", ["fsync", "rename"])
def test_a_disk_that_refuses_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "state.json"
    path.write_text("old")
    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OSError, match="No space left"):
        whole_files.write_whole(str(path), b"new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.json"]


def test_the_draft_of_a_running_process_is_told_from_that_of_a_killed_one() -> None:
    assert whole_files.is_being_written(f"cudnn.new-{os.getpid()}")
    assert not whole_files.is_being_written(f"cudnn.new-{ended()}")
    assert not whole_files.is_being_written("cudnn.new")


def test_files_of_processes_that_ended_are_removed_and_those_of_running_ones_stay(tmp_path: Path) -> None:
    path = tmp_path / "spark[1].tgz"
    for number in (ended(), os.getppid(), os.getpid()):  # an ended process may have had this one's number
        Path(f"{path}-{number}").touch()
    assert whole_files.own_name(str(path)) == f"{path}-{os.getpid()}"
    assert os.listdir(tmp_path) == [f"spark[1].tgz-{os.getppid()}"]


def test_all_users_may_enter_a_directory_whatever_the_umask_is(tmp_path: Path) -> None:
    mask = os.umask(0o077)
    try:
        whole_files.make_directory(str(tmp_path / "a/b"))
        whole_files.make_directory(str(tmp_path / "c/d"), 0o700)
    finally:
        assert os.umask(mask) == 0o077
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "c", "c/d")]
    assert modes == [0o755, 0o755, 0o755, 0o700]


def test_a_directory_that_another_process_makes_first_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    answers = iter([False, True, True])  # the directory, its parent, and again after the other process
    monkeypatch.setattr(whole_files.os.path, "isdir", lambda path: next(answers))
    whole_files.make_directory(str(tmp_path / "a"))
    assert list(answers) == []


def test_a_directory_whose_name_a_file_has_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "builds").touch()
    with pytest.raises(OSError, match="File exists"):
        whole_files.make_directory(str(tmp_path / "builds"))
