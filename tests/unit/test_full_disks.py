"""What modules report on a file system without bytes or inodes, or that is read-only: real small ones."""

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import atomic_files, disk_space
from host_modules import run
from module_arguments import placed_archive, placed_spark, receipt


def fill(path: Path) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={path}/full", "bs=4096"], capture_output=True, check=False)


def heal(path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw,size=100m,nr_inodes=0", str(path)], check=True)
    (path / "full").unlink(missing_ok=True)


def spark(root: Path, path: Path) -> dict[str, Any]:
    return {**placed_spark(root), "path": str(path / "pyspark-9")}


def cudnn(root: Path, path: Path) -> dict[str, Any]:
    return {**placed_archive(root), "path": str(path / "cudnn-8")}


@pytest.mark.parametrize("arguments", [spark, cudnn])
def test_a_file_system_without_inodes_is_refused_before_anything_is_unpacked(tmp_path, small, arguments):
    """df shows room there, so the message must name what is missing."""
    path = small("size=40m,nr_inodes=4")
    inputs = arguments(tmp_path, path)
    answer = run("placed_tree", **inputs)
    assert answer["failed"]
    assert f"{path} needs " in answer["msg"]
    assert "inodes but has 3 free (df -i)" in answer["msg"]
    assert list(path.iterdir()) == []
    heal(path)
    assert run("placed_tree", **inputs)["changed"]


def test_spark_is_not_fetched_where_its_size_does_not_fit(tmp_path, small):
    downloads = small("size=1m")
    arguments = {**placed_spark(tmp_path), "downloads": str(downloads), "size": 300_000_000}
    answer = run("placed_tree", **arguments)
    assert f"{downloads} needs about 300 MB but has 1 MB free" in answer["msg"]
    assert list(downloads.iterdir()) == []


@pytest.mark.parametrize("fault", ["no space", "no inodes", "read-only"])
def test_a_receipt_that_cannot_be_written_is_a_sentence_and_comes_later(tmp_path, small, fault):
    path = small({"no space": "size=64k", "no inodes": "size=1m,nr_inodes=3", "read-only": "size=1m"}[fault])
    (path / "state").mkdir()
    if fault == "no space":
        fill(path)
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)
    arguments = {**receipt(tmp_path), "state_directory": str(path / "state")}
    answer = run("receipt", **arguments)
    assert answer["failed"]
    assert answer["msg"].startswith(f"The receipt {path}/state/cuda.json must be written, but that failed: ")
    assert list((path / "state").iterdir()) == []
    heal(path)
    assert run("receipt", **arguments)["changed"]
    assert not run("receipt", **arguments)["changed"]


@pytest.mark.parametrize("content", [b'{"component": "cu', b"\xff\xfe\x00torn", b""])
def test_a_torn_receipt_is_replaced_whatever_is_in_it(tmp_path, content):
    arguments = receipt(tmp_path)
    state = Path(arguments["state_directory"])
    state.mkdir(parents=True)
    (state / "cuda.json").write_bytes(content)
    assert run("receipt", **arguments)["changed"]
    assert not run("receipt", **arguments)["changed"]


def test_what_was_reserved_makes_a_record_possible_on_a_full_disk(small):
    path = small("size=1m,nr_inodes=40")
    assert disk_space.keep_reserve(str(path))
    fill(path)
    for number in range(40):  # no inode is left either
        with contextlib.suppress(OSError):
            (path / f"empty{number}").touch()
    record = path / "record.json"

    def write() -> None:
        atomic_files.write_whole(str(record), b"x" * 4096)

    with pytest.raises(OSError, match="No space left"):
        write()
    disk_space.with_reserve(str(path), write)
    assert record.stat().st_size == 4096
    assert not disk_space.has_reserve(str(path))
    assert not disk_space.keep_reserve(str(path)), "there is no room for all of it"
    assert not (path / disk_space.RESERVE).exists(), "half of one takes nothing"
    (path / "full").unlink()
    assert disk_space.keep_reserve(str(path))


def take(path: Path) -> dict[str, Any]:
    return run("run_lock", state="taken", root=str(path), run={"id": "own", "who": "alice", "playbook": "rollback.yml"})


def test_a_reserve_that_another_process_uses_meanwhile_is_not_kept_and_no_error(tmp_path, monkeypatch):
    """A run's record is written without the host's lock where the disk is full."""
    mkdir = disk_space.os.mkdir

    def make_and_lose(path: str, mode: int) -> None:
        mkdir(path, mode)
        disk_space.release_reserve(str(tmp_path))

    monkeypatch.setattr(disk_space.os, "mkdir", make_and_lose)
    assert not disk_space.keep_reserve(str(tmp_path))
    monkeypatch.undo()
    assert disk_space.keep_reserve(str(tmp_path))
    listdir = disk_space.os.listdir
    monkeypatch.setattr(disk_space.os, "listdir", lambda path: [*listdir(path), "gone"])
    assert disk_space.release_reserve(str(tmp_path))
    assert listdir(str(tmp_path)) == []


def test_a_run_takes_a_host_whose_disk_is_full_by_the_reserve(small):
    path = small("size=256k")
    assert disk_space.keep_reserve(str(path))
    fill(path)
    assert take(path)["held"] is True
    assert (path / ".run.json").stat().st_mode & 0o777 == 0o600
    assert run("run_lock", state="released", root=str(path), run={"id": "own"})["held"] is False
    assert not (path / ".run.json").exists()


def test_a_lock_on_a_read_only_disk_is_refused_by_its_name(small):
    path = small("size=256k,ro")
    answer = take(path)
    assert answer["failed"]
    assert f"{path}/.run.json must be writable, but the system answers: " in answer["msg"]
    assert "Read-only file system" in answer["msg"]
