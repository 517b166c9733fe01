"""plugins/modules/placed_tree.py: an archive's content is complete at its place, or what was there stays."""

import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import host_modules
import placed_tree
import pytest
import yaml
from ansible.module_utils.hadoop_dl_host import atomic_files
from archives import archive

ROLES = Path(__file__).resolve().parents[2] / "roles"


def run(argv: list[str]) -> tuple[int, str, str]:
    completed = subprocess.run(argv, capture_output=True, text=True, check=False)
    return completed.returncode, completed.stdout, completed.stderr


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_the_content_gets_the_name_with_a_mark_and_the_older_directory(tmp_path):
    place = tmp_path / "usr" / "cuda-12.2" / "cudnn-8.9.7"
    placed_tree.unpack(archive(tmp_path, "new", "lib/libcudnn.so.8", "include/cudnn.h"), str(place), "aa", run)
    assert names(place) == [".deeplearning.json", "include", "lib", "lib64"]
    assert (place / "lib64" / "libcudnn.so.8").read_text() == "new lib/libcudnn.so.8"
    assert os.readlink(place / "lib64") == "lib"
    assert placed_tree.is_whole(str(place), "aa")
    assert not placed_tree.is_whole(str(place), "bb")
    (place / "lib" / "libcudnn.so.8").write_text("")  # as after a power failure
    assert not placed_tree.is_whole(str(place), "aa")
    assert names(place.parent) == ["cudnn-8.9.7"]


def test_every_file_is_on_the_disk_before_the_mark_and_the_name(tmp_path, disk_events):
    """What a power failure leaves: a mark only beside complete libraries, and the name only with the mark."""
    archive_path = archive(tmp_path, "new", "lib/libcudnn.so.8", "include/cudnn.h")
    placed_tree.unpack(archive_path, str(tmp_path / "cudnn-8"), "aa", run)
    mark = [f".draft-{placed_tree.MARK}", f"rename to {placed_tree.MARK}", "cudnn-8"]
    last_events = [*mark, "rename to cudnn-8", tmp_path.name]
    assert set(disk_events[: -len(last_events)]) >= {"libcudnn.so.8", "cudnn.h", "lib", "include"}
    assert [event.partition(".new-")[0] for event in disk_events[-len(last_events) :]] == last_events


def test_an_archive_with_lib64_keeps_it(tmp_path):
    place = tmp_path / "place"
    placed_tree.unpack(archive(tmp_path, "old", "lib64/libcudnn.so.6"), str(place), "aa", run)
    assert not (place / "lib64").is_symlink()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where an archive was unpacked."""
    place = tmp_path / "here" / "place"
    placed_tree.unpack(archive(tmp_path, "first", "lib64/libcudnn.so.8.9.7"), str(place), "aa", run)
    return place


def has_the_first(place: Path) -> bool:
    return names(place.parent) == ["place"] and placed_tree.is_whole(str(place), "aa")


def test_another_archive_of_the_same_version_replaces_the_first(tmp_path, place):
    placed_tree.unpack(archive(tmp_path, "second", "lib64/b"), str(place), "bb", run)
    assert names(place / "lib64") == ["b"]
    assert placed_tree.is_whole(str(place), "bb")
    assert names(place.parent) == ["place"]


def test_what_a_killed_run_left_is_no_obstacle(tmp_path):
    place = tmp_path / "here" / "place"
    for name in ("place.new", "place.old"):
        (place.parent / name).mkdir(parents=True)
        (place.parent / name / "half").touch()
    placed_tree.unpack(archive(tmp_path, "new", "lib64/a"), str(place), "aa", run)
    assert names(place.parent) == ["place"]
    assert names(place) == [".deeplearning.json", "lib64"]


def test_an_archive_that_tar_cannot_read_leaves_everything_as_it_was(tmp_path, place):
    archive_file = tmp_path / "broken.tar.gz"
    archive_file.write_bytes(b"no archive")
    with pytest.raises(OSError, match="tar ended with status 2"):
        placed_tree.unpack(str(archive_file), str(place), "bb", run)
    assert has_the_first(place)


def test_a_failure_leaves_no_directory_that_was_not_there(tmp_path):
    place = tmp_path / "usr" / "cuda-8.0" / "cudnn-6"
    (tmp_path / "usr").mkdir()
    with pytest.raises(OSError, match="No space left on device"):
        placed_tree.unpack("x", str(place), "aa", lambda argv: (2, "", "tar: x: No space left on device"))
    assert names(tmp_path / "usr") == []


def test_when_the_last_rename_fails_the_old_content_comes_back(tmp_path, place, monkeypatch):
    second, rename = archive(tmp_path, "second", "lib64/b"), os.rename

    def fails_once(source: str, target: str) -> None:
        if ".new-" in source:
            raise OSError(5, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fails_once)
    with pytest.raises(OSError, match="Input/output error"):
        placed_tree.unpack(second, str(place), "bb", run)
    assert has_the_first(place)


def test_an_archive_of_another_version_is_refused_and_what_was_there_stays(tmp_path, place):
    pattern = "lib*/libcudnn.so.8.9.7"
    right = archive(tmp_path, "right", "lib/libcudnn.so.8.9.7")
    placed_tree.unpack(right, str(place), "aa", run, [pattern])
    wrong = archive(tmp_path, "wrong", "lib/libcudnn.so.8.9.6", "lib/libcudnn_ops.so.8.9.6")
    with pytest.raises(OSError, match=r"must contain lib\*/libcudnn.so.8.9.7, but contains lib/libcudnn.so.8.9.6$"):
        placed_tree.unpack(wrong, str(place), "bb", run, [pattern])
    assert has_the_first(place)


def test_a_host_without_the_program_that_unpacks_is_told_which(tmp_path):
    text = "tar (child): xz: Cannot exec: No such file or directory\ntar (child): Error is not recoverable: exiting now"
    with pytest.raises(OSError, match="tar requires xz for this archive, but the host lacks it: install it"):
        placed_tree.unpack("x", str(tmp_path / "here" / "place"), "aa", lambda argv: (2, "", text))


# --- Spark, which is in pyspark's source distribution in another layout ---------------------------------------------

PARTS = yaml.safe_load((ROLES / "tensorflowonspark/vars/main.yml").read_text())["__tensorflowonspark_spark_parts"]
FILES = ("bin/spark-submit", "jars/spark-core.jar", "python/lib/pyspark.zip", "python/pyspark/context.py")


@pytest.fixture
def spark(tmp_path: Path) -> dict[str, Any]:
    """Arguments of the module for a SPARK_HOME."""
    files = ("deps/bin/spark-submit", "deps/jars/spark-core.jar", "pyspark/context.py", "lib/pyspark.zip")
    path = archive(tmp_path, "pyspark-9", *files, "deps/examples/big.txt", "setup.py")
    places = {"path": "spark/pyspark-9", "downloads": "downloads", "root": "deeplearning"}
    inputs = {name: str(tmp_path / place) for name, place in places.items()}
    content = {"parts": PARTS, "must_contain": ["bin/spark-submit", "jars", "python/lib/pyspark.zip"]}
    return {**inputs, **content, "url": Path(path).as_uri(), "sha256": atomic_files.sha256_of(path)}


def test_a_home_has_sparks_layout(spark):
    assert host_modules.run("placed_tree", **spark)["changed"]
    home = Path(spark["path"])
    files = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())
    assert files == [".deeplearning.json", *FILES]
    assert names(home.parent) == ["pyspark-9"]
    assert host_modules.run("placed_tree", **spark) == {"changed": False, "complete": True, "invocation": ANY}


def test_downloads_of_killed_runs_are_removed(spark):
    downloads, running_download = Path(spark["downloads"]), f"pyspark-9.tar.gz-{os.getpid()}"
    downloads.mkdir()
    for name in ("pyspark-9.tar.gz-99999999", "pyspark-9.tar.gz-99999999.part-99999999", running_download, "cuda.run"):
        (downloads / name).touch()
    assert host_modules.run("placed_tree", **spark)["changed"]
    assert names(downloads) == ["cuda.run", running_download]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 0)], ids=["missing", "power failure"])
@pytest.mark.parametrize("name", ["bin/spark-submit", "jars/spark-core.jar", ".deeplearning.json"])
def test_a_damaged_home_is_seen_and_rebuilt(spark, name, damage):
    host_modules.run("placed_tree", **spark)
    path = Path(spark["path"]) / name
    damage(path)
    assert host_modules.run("placed_tree", **spark)["changed"]
    assert path.stat().st_size > 0
    assert names(path.parents[name.count("/") + 1]) == ["pyspark-9"]


def test_a_file_that_is_no_pyspark_leaves_the_old_home_in_place(tmp_path, spark):
    host_modules.run("placed_tree", **spark)
    path = archive(tmp_path, "other", "README")
    other = {"url": Path(path).as_uri(), "sha256": atomic_files.sha256_of(path)}
    answer = host_modules.run("placed_tree", **{**spark, **other})
    assert "the archive must contain bin/spark-submit, but contains nothing of that name" in answer["msg"]
    assert placed_tree.is_whole(spark["path"], spark["sha256"])


def test_a_member_cannot_leave_the_directory(tmp_path):
    path = tmp_path / "evil.tar.gz"
    with tarfile.open(path, "w:gz") as bundle:
        for name in ("top/lib/a", "top/lib/../../../evil", "/top/evil"):
            bundle.addfile(tarfile.TarInfo(name))
    with pytest.raises(OSError, match="Member name contains"):
        placed_tree.unpack(str(path), str(tmp_path / "in/place"), "aa", run)
    assert names(tmp_path) == ["evil.tar.gz"]
