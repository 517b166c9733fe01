"""plugins/modules/unpacked_archive.py: an archive's content is complete at its place, or what was there stays."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import unpacked_archive
from test_two_runs import archive


def run(argv: list[str]) -> tuple[int, str, str]:
    completed = subprocess.run(argv, capture_output=True, text=True, check=False)
    return completed.returncode, completed.stdout, completed.stderr


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_content_gets_the_name_with_a_mark_and_the_older_directory(tmp_path: Path) -> None:
    place = tmp_path / "usr" / "cuda-12.2" / "cudnn-8.9.7"
    unpacked_archive.unpack(archive(tmp_path, "new", "lib/libcudnn.so.8", "include/cudnn.h"), str(place), "aa", run)
    assert names(place) == [".sha256", ".sizes.json", "include", "lib", "lib64"]
    assert (place / "lib64" / "libcudnn.so.8").read_text() == "lib/libcudnn.so.8"
    assert os.readlink(place / "lib64") == "lib"
    assert unpacked_archive.is_whole(str(place), "aa")
    assert not unpacked_archive.is_whole(str(place), "bb")
    (place / "lib" / "libcudnn.so.8").write_text("")  # as after a power failure
    assert not unpacked_archive.is_whole(str(place), "aa")
    assert names(place.parent) == ["cudnn-8.9.7"]


def test_every_file_is_on_the_disk_before_the_mark_and_the_name(tmp_path: Path, disk_events: list[str]) -> None:
    """What a power failure leaves: a mark only beside complete libraries, and the name only with the mark."""
    archive_path = archive(tmp_path, "new", "lib/libcudnn.so.8", "include/cudnn.h")
    unpacked_archive.unpack(archive_path, str(tmp_path / "cudnn-8"), "aa", run)
    marks = [[f".draft-{name}", f"rename to {name}", "cudnn-8"] for name in (".sizes.json", ".sha256")]
    last_events = [*marks[0], *marks[1], "rename to cudnn-8", tmp_path.name]
    assert set(disk_events[: -len(last_events)]) >= {"libcudnn.so.8", "cudnn.h", "lib", "include"}
    assert [event.partition(".new-")[0] for event in disk_events[-len(last_events) :]] == last_events


def test_an_archive_with_lib64_keeps_it(tmp_path: Path) -> None:
    place = tmp_path / "place"
    unpacked_archive.unpack(archive(tmp_path, "old", "lib64/libcudnn.so.6"), str(place), "aa", run)
    assert not (place / "lib64").is_symlink()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where an archive was unpacked."""
    place = tmp_path / "here" / "place"
    unpacked_archive.unpack(archive(tmp_path, "first", "lib64/libcudnn.so.8.9.7"), str(place), "aa", run)
    return place


def has_the_first(place: Path) -> bool:
    return names(place.parent) == ["place"] and unpacked_archive.is_whole(str(place), "aa")


def test_another_archive_of_the_same_version_replaces_the_first(tmp_path: Path, place: Path) -> None:
    unpacked_archive.unpack(archive(tmp_path, "second", "lib64/b"), str(place), "bb", run)
    assert names(place / "lib64") == ["b"]
    assert unpacked_archive.is_whole(str(place), "bb")
    assert names(place.parent) == ["place"]


def test_what_a_killed_run_left_is_no_obstacle(tmp_path: Path) -> None:
    place = tmp_path / "here" / "place"
    for name in ("place.new", "place.old"):
        (place.parent / name).mkdir(parents=True)
        (place.parent / name / "half").touch()
    unpacked_archive.unpack(archive(tmp_path, "new", "lib64/a"), str(place), "aa", run)
    assert names(place.parent) == ["place"]
    assert names(place) == [".sha256", ".sizes.json", "lib64"]


def test_an_archive_that_tar_cannot_read_leaves_everything_as_it_was(tmp_path: Path, place: Path) -> None:
    archive_file = tmp_path / "broken.tar.gz"
    archive_file.write_bytes(b"no archive")
    with pytest.raises(OSError, match="tar ended with status 2"):
        unpacked_archive.unpack(str(archive_file), str(place), "bb", run)
    assert has_the_first(place)


def test_a_failure_leaves_no_directory_that_was_not_there(tmp_path: Path) -> None:
    place = tmp_path / "usr" / "cuda-8.0" / "cudnn-6"
    (tmp_path / "usr").mkdir()
    with pytest.raises(OSError, match="No space left on device"):
        unpacked_archive.unpack("x", str(place), "aa", lambda argv: (2, "", "tar: x: No space left on device"))
    assert names(tmp_path / "usr") == []


def test_when_the_last_rename_fails_the_old_content_comes_back(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, rename = archive(tmp_path, "second", "lib64/b"), os.rename

    def fails_once(source: str, target: str) -> None:
        if ".new-" in source:
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fails_once)
    with pytest.raises(OSError, match="Input/output error"):
        unpacked_archive.unpack(second, str(place), "bb", run)
    assert has_the_first(place)


def test_an_archive_of_another_version_is_refused_and_what_was_there_stays(tmp_path: Path, place: Path) -> None:
    pattern = "lib*/libcudnn.so.8.9.7"
    right = archive(tmp_path, "right", "lib/libcudnn.so.8.9.7")
    unpacked_archive.unpack(right, str(place), "aa", run, pattern)
    wrong = archive(tmp_path, "wrong", "lib/libcudnn.so.8.9.6", "lib/libcudnn_ops.so.8.9.6")
    with pytest.raises(OSError, match=r"must contain lib\*/libcudnn.so.8.9.7, but contains lib/libcudnn.so.8.9.6$"):
        unpacked_archive.unpack(wrong, str(place), "bb", run, pattern)
    assert has_the_first(place)


def test_a_host_without_the_program_that_unpacks_is_told_which(tmp_path: Path) -> None:
    text = "tar (child): xz: Cannot exec: No such file or directory\ntar (child): Error is not recoverable: exiting now"
    with pytest.raises(OSError, match="tar requires xz for this archive, but the host lacks it: install it"):
        unpacked_archive.unpack("x", str(tmp_path / "here" / "place"), "aa", lambda argv: (2, "", text))
