"""tfos-submit --archive: the environment is in HDFS once, as it was sealed, and executors get it by YARN."""

import errno
import hashlib
import io
import json
import os
import pwd
import signal
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import environment_bytes, environment_tree
from hdfs_stand_in import Hdfs
from interpreters import HOST_PYTHONS
from tfos_host import executable, refusal, settings, start, submit, told
from tfos_submit import archive
from waiting import until

NAME = "tf-0123456789ab"
DIRECTORY = "hdfs:///user/anna/envs"
HERE = "/opt/deeplearning/envs/e/bin/python"
THERE = "./deeplearning-environment/bin/python"
SITE = "lib/python3.9/site-packages/"


@pytest.fixture
def edge(host: SimpleNamespace) -> SimpleNamespace:
    """A host with a sealed environment and HDFS."""
    host.environment = host.root / "envs" / NAME
    site = host.environment / SITE
    site.mkdir(parents=True)
    (site / "größe.py").write_text("1\n")
    (site / "large.so").write_bytes(os.urandom(3 << 20))
    (host.environment / "lib64").symlink_to("lib")
    for path in host.environment.rglob("*"):
        os.utime(path, (315532800, 315532800), follow_symlinks=False)
    root = str(host.environment)
    sizes = {path: status.st_size for path, status in environment_tree.entries(root.encode())}
    digests = environment_bytes.contents(root, sizes)
    manifest = environment_bytes.manifest({path: (digests[path], size) for path, size in sizes.items()})
    (host.environment / ".deeplearning/files.txt").write_bytes(manifest)
    seal = {"files_sha256": hashlib.sha256(manifest).hexdigest(), "contents_sha256": "e816b0467f4a" + 52 * "0"}
    (host.environment / ".deeplearning/sealed.json").write_text(json.dumps(seal))
    aside = host.tmp / "aside"
    aside.mkdir()
    host.hdfs = Hdfs(aside)
    (host.tmp / "hadoop/bin/hdfs").symlink_to(aside / "hadoop/bin/hdfs")
    host.archive = host.hdfs.root / f"user/anna/envs/{NAME}-e816b0467f4a.tar.gz"
    return host


def in_hdfs(edge: SimpleNamespace) -> list[str]:
    return [path.name for path in edge.hdfs.root.rglob("*") if path.is_file()]


def change_hdfs(edge: SimpleNamespace, text: str, new_text: str) -> None:
    """Let the command do something else."""
    command = edge.tmp / "aside/hadoop/bin/hdfs"
    command.write_text(command.read_text().replace(text, new_text))


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_the_archive_has_the_sealed_environment_and_nothing_else(edge: SimpleNamespace, python: str) -> None:
    (edge.environment / "lib/added.txt").write_text("after the seal")
    completed = submit(edge, "--archive", DIRECTORY, python=python)
    assert completed.code == 0, completed.error
    root = edge.tmp / "there"
    root.mkdir()
    subprocess.run(["tar", "-C", root, "-xf", edge.archive], check=True)  # as a NodeManager does
    with tarfile.open(edge.archive) as archive:
        assert {(member.uid, member.gid, member.mtime) for member in archive} == {(0, 0, 315532800)}
    names = sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink())
    assert names == ["bin/python", SITE + "größe.py", SITE + "large.so", "lib64"]
    for name in names:
        copy, original = (environment_bytes.content(bytes(tree / name)) for tree in (root, edge.environment))
        assert copy == original
    assert [os.access(root / name, os.X_OK) for name in ("bin/python", SITE + "large.so")] == [True, False]
    assert edge.archive.stat().st_mode & 0o777 == 0o644


def test_the_first_job_packs_it_and_the_next_ones_find_it(edge: SimpleNamespace) -> None:
    first = submit(edge, "--archive", DIRECTORY + "/")
    address = f"{DIRECTORY}/{edge.archive.name}"
    assert f"packing {NAME} into {address}; later jobs find it there" in first.error
    assert f"--archives {address}#deeplearning-environment" in (edge.tmp / "command").read_text()
    assert edge.hdfs.actions == ["-ls", "-mkdir", "-put", "-chmod", "-mv", "-ls", "-cat"]
    second = submit(edge, "--archive", DIRECTORY)
    assert (second.code, "packing" in second.error) == (0, False)
    assert edge.hdfs.actions[7:] == ["-ls"], "it was compared before"
    assert f"environment {NAME} from {DIRECTORY}" in second.error


@pytest.mark.parametrize(
    ("mode", "driver"), [("client", HERE), ("cluster", THERE)], ids=["the driver is here", "the driver is there"]
)
def test_executors_use_what_they_unpack_and_a_driver_on_this_host_what_it_has(mode: str, driver: str) -> None:
    properties = told("--archive", DIRECTORY, "--deploy-mode", mode)
    assert {properties[name] for name in ("spark.pyspark.python", "spark.executorEnv.PYSPARK_PYTHON")} == {THERE}
    assert properties["spark.pyspark.driver.python"] == driver


def test_the_driver_tells_executors_their_own_python(edge: SimpleNamespace) -> None:
    assert submit(edge, "--archive", DIRECTORY).code == 0
    variables = (edge.tmp / "variables").read_text().splitlines()
    assert f"PYSPARK_PYTHON={THERE}" in variables
    assert f"PYSPARK_DRIVER_PYTHON={edge.environment}/bin/python" in variables


def test_a_job_waits_for_executors_that_still_unpack() -> None:
    """With fewer Spark would start without them, and TensorFlowOnSpark would wait for the others."""
    name = "spark.scheduler.maxRegisteredResourcesWaitingTime"
    assert told("--archive", DIRECTORY, "--timeout", "900")[name] == "900s"
    assert told("--timeout", "900")[name] == "100s"


DAMAGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda tree: (tree / SITE / "größe.py").write_text("2\n"),
    "gone": lambda tree: (tree / SITE / "large.so").unlink(),
    "shorter": lambda tree: os.truncate(tree / SITE / "large.so", 1 << 20),
    "another list": lambda tree: (tree / ".deeplearning/files.txt").write_text(""),
    "no list": lambda tree: (tree / ".deeplearning/files.txt").unlink(),
    "planted": lambda tree: (tree / "lib/planted.pyc").write_text("after the seal"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_environment_goes_nowhere(edge: SimpleNamespace, damage: str) -> None:
    DAMAGES[damage](edge.environment)
    text = refusal(edge, "--archive", DIRECTORY)
    assert "must be as it was sealed, but is not: " in text
    assert "Ask the operator for ansible-playbook site.yml" in text
    assert in_hdfs(edge) == []


@pytest.mark.parametrize("broken", ["-mkdir", "-put", "-chmod", "-mv"])
def test_an_archive_that_cannot_be_put_is_reported_and_leaves_nothing(edge: SimpleNamespace, broken: str) -> None:
    change_hdfs(edge, '"$action" = nothing', f'"$action" = {broken}')
    words = f"{broken}: Permission denied. Check that HDFS is up, and that you may write to"
    assert words in refusal(edge, "--archive", DIRECTORY)
    assert in_hdfs(edge) == []


@pytest.mark.parametrize(
    ("place", "mode"), [("directory", 0o775), ("directory", 0o757), ("directory", 0o1777), ("archive", 0o664)]
)
def test_an_archive_that_others_can_replace_is_refused(edge: SimpleNamespace, place: str, mode: int) -> None:
    assert submit(edge, "--archive", DIRECTORY).code == 0
    (edge.tmp / "settings").unlink()
    (edge.archive if place == "archive" else edge.archive.parent).chmod(mode)
    name = f"{DIRECTORY}/{edge.archive.name}" if place == "archive" else DIRECTORY
    assert f"hdfs dfs -chmod go-w {name}" in refusal(edge, "--archive", DIRECTORY)


@pytest.mark.parametrize("place", ["archive", "directory", "parent"])
def test_an_archive_of_somebody_else_is_refused(edge: SimpleNamespace, place: str) -> None:
    """Its name is known to everybody, and it has the right bytes when they are compared."""
    assert submit(edge, "--archive", DIRECTORY).code == 0
    (edge.tmp / "settings").unlink()
    path = {"archive": edge.archive, "directory": edge.archive.parent, "parent": edge.archive.parents[1]}[place]
    Path(f"{path}.owner").write_text("mallory")
    address = str(path).replace(str(edge.hdfs.root), "hdfs://")
    words = f"your jobs run what --archive names, so {address} must belong to hdfs or root, but belongs to mallory"
    assert words in refusal(edge, "--archive", DIRECTORY)


def test_a_directory_that_everybody_may_enter_is_no_place_for_others(edge: SimpleNamespace) -> None:
    (edge.hdfs.root / "tmp").mkdir(mode=0o777)
    (edge.hdfs.root / "tmp").chmod(0o1777)  # its entries can be exchanged by their owners alone
    assert submit(edge, "--archive", "hdfs:///tmp/envs").code == 0
    (edge.tmp / "settings").unlink()
    (edge.hdfs.root / "tmp").chmod(0o777)
    assert "hdfs dfs -chmod go-w hdfs:///tmp" in refusal(edge, "--archive", "hdfs:///tmp/envs")


def repacked(archive: Path, change: Callable[[Any, bytes], tuple[Any, bytes] | None]) -> None:
    """The archive with other members."""
    with tarfile.open(archive) as source:
        contents = [(member, source.extractfile(member).read() if member.isreg() else b"") for member in source]
    with tarfile.open(archive, "w:gz") as target:
        for entry in filter(None, [change(*content) for content in contents]):
            target.addfile(entry[0], io.BytesIO(entry[1]))


def planted(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.name.endswith("bin/python"):
        content = content[::-1]
    return member, content


def led_elsewhere(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.issym():
        member.linkname = "/tmp/mallory"
    return member, content


def added(member: tarfile.TarInfo, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    if member.name.endswith("bin/python"):
        member.name = "lib/sitecustomize.py"
    return member, content


OTHER_BYTES: dict[str, tuple[Callable[[Path], object], str]] = {
    "another program": (lambda path: repacked(path, planted), "has another python"),
    "another link": (lambda path: repacked(path, led_elsewhere), "has another lib64"),
    "one more": (lambda path: repacked(path, added), "has another sitecustomize.py"),
    "one less": (lambda path: repacked(path, lambda *entry: None if entry[0].issym() else entry), "lacks 1 of them"),
    "a half": (lambda path: os.truncate(path, 1 << 20), "cannot be read"),
    "no archive": (lambda path: path.write_text("#!/bin/sh"), "cannot be read"),
}


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize("change", OTHER_BYTES)
def test_an_archive_with_other_bytes_is_not_used(edge: SimpleNamespace, change: str, python: str) -> None:
    """Somebody moved it there while the directory was open, or it was cut off."""
    assert submit(edge, "--archive", DIRECTORY, python=python).code == 0
    (edge.tmp / "settings").unlink()
    replace, words = OTHER_BYTES[change]
    replace(edge.archive)
    (edge.tmp / ".cache/tfos-submit" / edge.archive.name).write_text("of another time")
    text = refusal(edge, "--archive", DIRECTORY)
    assert f"must have the files of the environment as they were sealed, but {words}" in text
    assert f"hdfs dfs -rm {DIRECTORY}/{edge.archive.name}" in text


@pytest.mark.parametrize(
    "address", ["hdfs:///user/anna/*", "hdfs:///user/../tmp/envs", "hdfs:///a,b", "hdfs:///a#b", "hdfs:///a b"]
)
def test_an_address_that_means_another_directory_is_wrong_usage(edge: SimpleNamespace, address: str) -> None:
    assert submit(edge, "--archive", address).code == 2


# Of Hadoop 3.3.6, without most of its usage; some lines begin like those of files.
UNKNOWN = """\
26/11/27 03:05:23 WARN fs.FileSystem: Failed to initialize filesystem hdfs://nowhere:8020/envs: java.net.UnknownHostException: nowhere
-ACTION: java.net.UnknownHostException: nowhere
Usage: hadoop fs [generic options]
\t[-appendToFile [-n] <localsrc> ... <dst>]
Generic options supported are:
-conf <configuration file>        specify an application configuration file
-fs <file:///|hdfs://namenode:port> specify default filesystem URL to use, overrides 'fs.defaultFS' property from configurations.

Usage: hadoop fs [generic options] -ACTION [-p] <path> ...
"""


def test_an_address_that_hdfs_does_not_know_is_reported(edge: SimpleNamespace) -> None:
    (edge.tmp / "unknown").write_text(UNKNOWN)
    command = f'#!/bin/sh\nsed "s/-ACTION/$2/" {edge.tmp}/unknown >&2; exit 255\n'
    executable(edge.hdfs.tmp_path / "hadoop/bin/hdfs", command)
    words = "answered: -mkdir: java.net.UnknownHostException: nowhere. Check that"
    assert words in refusal(edge, "--archive", "hdfs://nowhere:8020/envs")


def test_a_disk_that_cannot_be_read_ends_the_upload(edge: SimpleNamespace) -> None:
    """The one who uploads waits for more, so nobody may wait for it."""

    def write(stream: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        archive.Store(edge.hdfs.environment_file, ["anna"]).put(write, "/draft")


def test_ctrl_c_while_it_is_packed_leaves_nothing(edge: SimpleNamespace) -> None:
    change_hdfs(edge, "upload()", 'upload() { : > "$2._COPYING_"; sleep 60; }\nnever()')
    process = start(edge, "--archive", DIRECTORY)
    assert until(lambda: in_hdfs(edge), 30)[0].endswith("._COPYING_")
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert in_hdfs(edge) == []


@pytest.mark.parametrize(("given", "expected"), [("anna", "anna"), ("", pwd.getpwuid(os.geteuid()).pw_name)])
def test_it_is_put_as_the_user_of_the_job(
    edge: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, given: str, expected: str
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", given)
    monkeypatch.setenv("LOGNAME", "of-another-shell")
    assert submit(edge, "--archive", DIRECTORY).code == 0
    log = (edge.hdfs.tmp_path / "hdfs.log").read_text().splitlines()
    assert {line.split()[0] for line in log} == {expected}
    assert settings(edge)["spark.executorEnv.HADOOP_USER_NAME"] == expected


def test_a_dry_run_packs_nothing(edge: SimpleNamespace) -> None:
    completed = submit(edge, "--archive", DIRECTORY, "--dry-run")
    assert "--archives ARCHIVE#deeplearning-environment" in completed.output
    assert edge.hdfs.actions == []


def test_a_directory_that_hosts_do_not_share_is_wrong_usage(edge: SimpleNamespace) -> None:
    completed = submit(edge, "--archive", "envs")
    assert completed.code == 2
    assert "all hosts must reach it, as hdfs:///user/me/DIR, but this is 'envs'" in completed.error
