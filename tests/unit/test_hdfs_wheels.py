"""Wheels through HDFS: one host puts them there, others read them; what HDFS does not give as the lock has it comes from the mirror."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

import hdfs_wheels
import host_modules
import pytest
import remove_hdfs_files
from ansible.module_utils.hadoop_dl_host import hdfs_command, hdfs_record, staged_wheels
from ansible.module_utils.hadoop_dl_host import hdfs_wheels as through_hdfs
from environments import wheel
from hdfs_stand_in import Hdfs
from other_processes import wait_until

DIRECTORY = "/apps/deeplearning/spark/wheels"


class Cluster:
    """A mirror, HDFS, and a host that puts wheels there and reads them."""

    def __init__(self, site: Any, tmp_path: Path) -> None:
        self.site, self.hdfs = site, Hdfs(tmp_path)
        self.wheels = self.hdfs.root / DIRECTORY[1:]
        self.staged = Path(staged_wheels.place(str(site.path)))
        self.parameters = {
            "environment": str(site.path),
            "locks": [site.lock],
            "kept": [],
            "directory": DIRECTORY,
            "replication": 2,
            "environment_file": self.hdfs.environment_file,
            **{"user": "hdfs", "principal": "", "keytab": ""},
            **{"mirror_url": site.mirror.url, "mirror_ca": None, "mirror_login": None},
            "timeout": 60,
            "record": str(site.root / "etc" / "hdfs.json"),
        }

    def run(self, state: str, **changes: Any) -> dict[str, Any]:
        return hdfs_wheels.work({**self.parameters, "state": state, **changes})

    def published(self) -> dict[str, Any]:
        """As another host than this one did it."""
        result = self.run("published")
        staged_wheels.clear(str(self.staged))
        self.site.mirror.requests.clear()
        return result

    @property
    def fetched(self) -> list[str]:
        """Wheels that the mirror served."""
        return [path for path, _ in self.site.mirror.requests if path.endswith(".whl")]

    def names(self) -> list[str]:
        return sorted(path.name.partition("-")[2] for path in self.wheels.iterdir())


@pytest.fixture
def cluster(site: Any, tmp_path: Path) -> Cluster:
    return Cluster(site, tmp_path)


def test_the_mirror_serves_each_wheel_once_and_the_second_run_puts_nothing(cluster: Cluster) -> None:
    result = cluster.run("published")
    assert (result["changed"], result["problem"]) == (True, "")
    assert len(cluster.fetched) == len(set(cluster.fetched)) == len(result["published"]) == 4
    assert cluster.names() == sorted(result["published"])
    assert {path.stat().st_mode & 0o777 for path in cluster.wheels.iterdir()} == {0o644}
    parents = [path for path in cluster.wheels.parents if cluster.hdfs.root in path.parents]
    assert {path.stat().st_mode & 0o777 for path in (cluster.wheels, *parents)} == {0o755}
    assert cluster.hdfs.actions == ["-ls", "-ls", "-mkdir", "-put"]
    assert (cluster.hdfs.tmp_path / "hdfs.properties").read_text() == "dfs.replication=2\n"
    before = len(cluster.hdfs.actions)
    assert cluster.run("published") == {"changed": False, "published": [], "removed": [], "problem": ""}
    assert cluster.hdfs.actions[before:] == ["-ls"]
    # The host that put them there reads nothing again.
    assert cluster.run("read")["problem"] == ""
    assert "-get" not in cluster.hdfs.actions


def test_an_environment_comes_from_hdfs_and_leaves_no_download(cluster: Cluster) -> None:
    cluster.published()
    assert cluster.run("read") == {"changed": False, "published": [], "removed": [], "problem": ""}
    assert cluster.staged.stat().st_mode & 0o777 == 0o700
    cluster.site.everything()
    assert cluster.fetched == []
    assert not cluster.staged.exists()
    before = len(cluster.hdfs.actions)
    assert cluster.run("read")["problem"] == ""
    assert len(cluster.hdfs.actions) == before, "an environment that is there needs nothing of HDFS"


def test_wheels_reach_environments_on_another_file_system(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def rename_within_one(source: str, target: str) -> None:
        if str(source).startswith(str(cluster.staged)) and not str(target).startswith(str(cluster.staged)):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(source, target)

    cluster.published()
    assert cluster.run("read")["problem"] == ""
    monkeypatch.setattr(os, "rename", rename_within_one)
    cluster.site.everything()
    assert cluster.fetched == []


def test_a_wheel_with_other_bytes_comes_from_the_mirror_and_is_named(cluster: Cluster) -> None:
    cluster.published()
    bad = next(path for path in cluster.wheels.iterdir() if "tensorflow" in path.name)
    bad.write_bytes(bytes(bad.stat().st_size))
    assert cluster.run("read")["problem"] == ""
    cluster.site.install("pip")
    result = cluster.site.install("tensorflow")
    assert f"other bytes, and came from the mirror: {bad.name}" in result["warnings"][0]
    assert [Path(name).name for name in cluster.fetched] == [bad.name.partition("-")[2]]
    assert "warnings" not in cluster.site.install("keras")
    cluster.site.seal()


def test_a_wheel_that_is_missing_or_short_comes_from_the_mirror_and_the_next_publisher_puts_it(
    cluster: Cluster,
) -> None:
    cluster.published()
    for path in cluster.wheels.iterdir():
        if "keras" in path.name:
            path.unlink()
        if "six" in path.name:
            path.write_bytes(b"short")
    problem = cluster.run("read")["problem"]
    assert "2 of 4 wheels are not read from /apps/deeplearning/spark/wheels" in problem
    assert "keras-1.0" in problem
    assert "No such file or directory" in problem
    cluster.site.everything()
    assert len(cluster.fetched) == 2
    before = len(cluster.hdfs.actions)
    assert {name.partition("-")[0] for name in cluster.run("published")["published"]} == {"keras", "six"}
    assert cluster.hdfs.actions[before:] == ["-ls", "-put"], "no JVM asks for directories that are there"
    assert len(cluster.names()) == 4


@pytest.mark.parametrize("fault", ["down", "hangs"])
def test_hdfs_that_is_down_or_hangs_costs_a_limit_and_nothing_else(
    cluster: Cluster, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.published()
    monkeypatch.setattr(through_hdfs, "ASK", 1)
    monkeypatch.setattr(hdfs_command, "ASK", 1)
    (cluster.hdfs.tmp_path / fault).touch()
    start = time.monotonic()
    problem = cluster.run("read")["problem"]
    assert ("failed on connection" if fault == "down" else "did not end within 1 s") in problem
    assert cluster.run("published")["problem"]
    assert time.monotonic() - start < 20
    cluster.site.everything()
    assert len(cluster.fetched) == 4


def test_300_hosts_that_read_a_stack_for_gpus_at_once_have_twice_the_time_that_it_takes() -> None:
    """2.8 GB for each (docs/mirror.md), from the ten copies, each on a host with 1 Gbit/s."""
    assert through_hdfs.limit([{"size": 2_800_000_000}]) > 2 * 300 * 2_800_000_000 * 8 / 10 / 10**9


@pytest.mark.parametrize("action", ["-mkdir", "-put", "-ls"])
def test_a_publisher_that_is_refused_says_so_and_leaves_no_wheel_under_its_name(
    cluster: Cluster, tmp_path: Path, action: str
) -> None:
    command = tmp_path / "hadoop/bin/hdfs"
    script = command.read_text()
    command.write_text(script.replace("= nothing ]", f"= {action} ]"))
    assert f"{action}: Permission denied" in cluster.run("published")["problem"]
    assert not cluster.wheels.exists() or not list(cluster.wheels.iterdir())
    command.write_text(script)
    assert cluster.run("published")["problem"] == ""
    assert len(cluster.names()) == 4


def test_a_publisher_that_is_killed_leaves_what_the_next_one_replaces(cluster: Cluster, tmp_path: Path) -> None:
    command = tmp_path / "hadoop/bin/hdfs"
    script = command.read_text()
    command.write_text(script.replace('mv "$2._COPYING_" "$2"', f"touch {tmp_path}/renaming && exec sleep 60"))
    with host_modules.start("hdfs_wheels", **cluster.parameters, state="published") as publisher:
        wait_until((tmp_path / "renaming").exists)
        publisher.kill()
    assert [path.suffix for path in cluster.wheels.iterdir()] == ["._COPYING_"]
    assert len(hdfs_record.read(cluster.parameters["record"])["files"]) == 4, "it is recorded before it is there"
    command.write_text(script)
    cluster.site.mirror.requests.clear()
    assert len(cluster.run("published")["published"]) == 4
    assert len(cluster.names()) == 4
    assert cluster.fetched == [], "its downloads are used"


def test_a_publisher_whose_mirror_did_not_serve_succeeds_when_it_does(cluster: Cluster) -> None:
    files = dict(cluster.site.mirror.files)
    cluster.site.mirror.files.clear()
    assert "The mirror must serve" in cluster.run("published")["problem"]
    cluster.site.mirror.files.update(files)
    assert (cluster.run("published")["problem"], len(cluster.names())) == ("", 4)


def test_of_two_publishers_at_once_each_completes_what_the_other_does_not_take(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As two `hdfs dfs -put -f` of the same files ended on the demo's HDFS: each lost drafts to the other one, and completed others."""
    command = tmp_path / "hadoop/bin/hdfs"
    script = command.read_text()
    race = 'case $2 in *keras*) rm "$2._COPYING_"; echo "put: File does not exist: $2._COPYING_ (inode 16443)"; status=1 ;; *)'
    command.write_text(script.replace('mv "$2._COPYING_" "$2"', f'{race} mv "$2._COPYING_" "$2" ;; esac'))
    problem = cluster.run("published")["problem"]
    assert "put: File does not exist" in problem
    assert [name for name in ("keras", "six") if any(name in wheel_name for wheel_name in cluster.names())] == ["six"]
    command.write_text(script)
    staged_wheels.clear(str(cluster.staged))
    assert "1 of 4 wheels are not read" in cluster.run("read")["problem"]
    assert [name.partition("-")[0] for name in cluster.run("published")["published"]] == ["keras"]


def test_what_no_lock_needs_is_removed_whoever_put_it_there(cluster: Cluster, tmp_path: Path) -> None:
    cluster.published()
    (cluster.wheels / f"{'0' * 64}-other.whl").write_text("of another host")
    (cluster.wheels / "README").write_text("of the site")
    keras = cluster.site.lines["keras"]
    new_wheel = wheel(tmp_path, "keras", "2.0")
    cluster.site.lines["keras"] = [cluster.site.mirror.add(new_wheel)]
    removed_paths = cluster.run("published", locks=[cluster.site.lock], kept=["\n".join(keras)])["removed"]
    assert removed_paths == [f"{DIRECTORY}/{'0' * 64}-other.whl"]
    removed_paths = cluster.run("published", locks=[cluster.site.lock])["removed"]
    assert [path.rpartition("/")[2].partition("-")[2][:9] for path in removed_paths] == ["keras-1.0"]
    assert "keras-2.0-py2.py3-none-any.whl" in cluster.names()
    assert (cluster.wheels / "README").exists()
    record = hdfs_record.read(cluster.parameters["record"])
    assert (len(record["files"]), record["directories"][0]) == (4, DIRECTORY)


def test_a_removal_removes_what_was_put_there(cluster: Cluster) -> None:
    """Also if the directories were made before, for the archive of Spark's jars."""
    parent = str(Path(DIRECTORY).parent)
    cluster.wheels.parent.mkdir(parents=True)
    hdfs_record.add(cluster.parameters["record"], [], [parent, "/apps/deeplearning", "/apps"], "hdfs")
    cluster.published()
    record = hdfs_record.read(cluster.parameters["record"])
    (cluster.hdfs.root / f"{record['files'][0][1:]}._COPYING_").touch()
    hdfs = hdfs_command.Hdfs(cluster.hdfs.environment_file, "hdfs")
    assert sorted(hdfs.listed(record["files"])[1]) == record["files"]
    remove_hdfs_files.remove(hdfs, record["files"], record["directories"])
    assert list(cluster.hdfs.root.iterdir()) == []


@pytest.mark.parametrize("kind", ["a repair", "a run after one that was killed"])
def test_only_what_the_tree_does_not_have_is_read(cluster: Cluster, kind: str) -> None:
    for component in ("pip", "tensorflow"):
        cluster.site.install(component)
    if kind == "a repair":
        cluster.site.everything()
        (cluster.site.packages / "keras.py").write_text("damaged")
    missing_entries = through_hdfs.missing(str(cluster.site.path), cluster.site.lock)
    assert [entry["project"] for entry in missing_entries] == ["keras"]
