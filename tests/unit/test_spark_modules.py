"""spark_libraries and remove_hdfs_files: what they upload, refuse and remove."""

import os
import subprocess
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ansible_programs
import pytest
import python_files
import remove_hdfs_files
import spark_libraries
from ansible.module_utils.hadoop_dl_host import hdfs_command, hdfs_record
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from hdfs_stand_in import Hdfs
from resource_manager import write_settings


def spark(hdfs: Hdfs) -> spark_libraries.Archive:
    return spark_libraries.Archive(hdfs.environment_file, "hdfs")


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    directory = tmp_path / "jars"
    directory.mkdir()
    for name in ("b.jar", "a.jar", "README"):
        (directory / name).write_text(name)
    return directory


def test_the_jars_are_in_hdfs_as_one_uncompressed_archive(tmp_path, jars):
    hdfs = Hdfs(tmp_path)
    (tmp_path / "libs.zip-99999999").touch()  # of a killed run
    assert not spark(hdfs).has("/apps/libs.zip")
    spark_libraries.upload(spark(hdfs), str(jars), "/apps/libs.zip", str(tmp_path))
    assert spark(hdfs).has("/apps/libs.zip")
    with zipfile.ZipFile(hdfs.root / "apps/libs.zip") as bundle:
        assert [(item.filename, item.compress_type) for item in bundle.infolist()] == [("a.jar", 0), ("b.jar", 0)]
    assert not list(tmp_path.glob("libs.zip*"))
    assert "hdfs -put" in (tmp_path / "hdfs.log").read_text()


@pytest.mark.parametrize("broken", ["-mkdir", "-put", "-mv"])
def test_an_upload_that_fails_leaves_no_archive_and_says_why(tmp_path, jars, broken):
    hdfs = Hdfs(tmp_path, broken)
    with pytest.raises(spark_libraries.Failure, match=f"{broken}: Permission denied.*tensorflowonspark_hdfs_user"):
        spark_libraries.upload(spark(hdfs), str(jars), "/apps/libs.zip", str(tmp_path))
    assert not (hdfs.root / "apps/libs.zip").exists()
    assert not (tmp_path / "libs.zip").exists()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("hdfs://master1:8020", "hdfs://master1:8020"),
        ("hdfs://nameservice1/", "hdfs://nameservice1"),
        ("maprfs:///", "maprfs://"),
        ("file:///", "file://"),
        (None, "hdfs://"),
    ],
)
def test_the_archives_address_has_the_clusters_file_system(tmp_path, written, expected):
    hdfs = Hdfs(tmp_path)
    (tmp_path / "hadoop-env.sh").write_text(f"export HADOOP_CONF_DIR={tmp_path}\n")
    if written:
        write_settings(tmp_path / "core-site.xml", {"fs.defaultFS": written})
    assert spark(hdfs).default_file_system() == expected


def test_two_edge_nodes_that_upload_at_once_both_succeed(tmp_path, jars):
    hdfs = Hdfs(tmp_path)

    def upload(downloads: Path) -> None:
        downloads.mkdir()
        spark_libraries.upload(spark(hdfs), str(jars), "/apps/libs.zip", str(downloads))

    with ThreadPoolExecutor(3) as nodes:
        list(nodes.map(upload, [tmp_path / f"downloads{number}" for number in range(3)]))
    assert [path.name for path in (hdfs.root / "apps").iterdir()] == ["libs.zip"]


@pytest.mark.parametrize("secure", [False, True], ids=["simple", "kerberos"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda path: path.write_text("x" * 9000), "has 9000 bytes, but the jars have 10"),
        (lambda path: path.write_bytes(path.read_bytes()[::-1]), "is no archive"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"aaaaa", b"evil!")), "is no archive|has another"),
        (lambda path: Path(f"{path}.owner").write_text("mallory"), "must belong to hdfs.*, but belongs to mallory"),
        (
            lambda path: Path(f"{path.parent}.owner").write_text("mallory"),
            "must belong to hdfs.*, but belongs to mallory",
        ),
        (lambda path: path.parent.chmod(0o777), "hdfs dfs -chmod go-w /apps"),
    ],
    ids=["length", "bytes", "a jar", "owner", "owner of the directory", "mode of the directory"],
)
def test_a_file_of_somebody_else_under_the_archives_name_is_refused(tmp_path, jars, change, words, secure):
    """All jobs of all users run its jars. A ticket does not decide who writes there."""
    hdfs = Hdfs(tmp_path)
    if secure:
        (tmp_path / "hadoop-env.sh").open("a").write(f"export HADOOP_CONF_DIR={tmp_path}\n")
        write_settings(tmp_path / "core-site.xml", {"hadoop.security.authentication": "kerberos"})
    for path in jars.glob("*.jar"):
        path.write_bytes(b"a" * path.stat().st_size)
    spark_libraries.upload(spark(hdfs), str(jars), "/apps/libs.zip", str(tmp_path))
    spark(hdfs).check("/apps/libs.zip", str(jars), str(tmp_path))
    change(hdfs.root / "apps/libs.zip")
    with pytest.raises(spark_libraries.Failure, match=words):
        spark(hdfs).check("/apps/libs.zip", str(jars), str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a launcher to another user")
@pytest.mark.parametrize(
    "path", ["hadoop/bin/hdfs", "hadoop/libexec/hdfs-config.sh", "jdk/bin/java", "conf/hadoop-env.sh"]
)
def test_a_launcher_that_others_may_change_is_not_run_by_root(tmp_path, path):
    hdfs = Hdfs(tmp_path)
    with open(tmp_path / "hadoop-env.sh", "a") as settings:
        settings.write(f"export JAVA_HOME={tmp_path}/jdk HADOOP_CONF_DIR={tmp_path}/conf\n")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).touch()
    spark(hdfs).check_launcher()
    os.chown(tmp_path / path, 65534, 65534)
    with pytest.raises(spark_libraries.Failure, match=f"others may change .*/{path}. Nothing was changed in HDFS"):
        spark(hdfs).check_launcher()


DIRECTORIES = ["/apps/deeplearning/spark", "/apps/deeplearning"]


def test_directories_that_are_made_for_the_archive_are_recorded_the_deepest_first(tmp_path):
    hdfs = Hdfs(tmp_path)
    (hdfs.root / "apps").mkdir()
    assert spark(hdfs).missing_directories(DIRECTORIES[0]) == DIRECTORIES
    record, files = str(tmp_path / "etc/hdfs.json"), [f"{DIRECTORIES[0]}/{name}.zip" for name in "ab"]
    hdfs_record.add(record, files[:1], DIRECTORIES, "hdfs")
    hdfs_record.add(record, files[1:], [], "hdfs")
    assert hdfs_record.read(record) == {"files": files, "directories": DIRECTORIES, "user": "hdfs"}


@pytest.mark.parametrize("site_file", [True, False])
def test_files_in_hdfs_go_with_their_directories_and_what_a_site_put_there_stays(tmp_path, site_file):
    hdfs = Hdfs(tmp_path)
    place = hdfs.root / "apps/deeplearning/spark"
    place.mkdir(parents=True)
    for name in ("a.zip", "a.zip.uploading-edge1-77"):
        (place / name).write_text("x")
    if site_file:
        (place.parent / "site.txt").write_text("keep")
    for _ in range(2):  # as after a kill
        remove_hdfs_files.remove(spark(hdfs), [f"{DIRECTORIES[0]}/a.zip"], DIRECTORIES)
    names = sorted(str(path.relative_to(hdfs.root)) for path in hdfs.root.rglob("*"))
    assert names == (["apps", "apps/deeplearning", "apps/deeplearning/site.txt"] if site_file else ["apps"])


def test_a_file_system_that_refuses_stops_before_the_record_goes(tmp_path):
    hdfs = Hdfs(tmp_path, broken="-rm")
    with pytest.raises(hdfs_command.Failure, match="-rm: Permission denied"):
        remove_hdfs_files.remove(spark(hdfs), ["/apps/a.zip"], [])


def test_the_printed_commands_add_jars_to_no_file_that_others_planted(tmp_path, monkeypatch):
    """zip adds to an archive that is there, and keeps what it has."""
    tasks = ansible_programs.tasks_in(ansible_programs.REPOSITORY / "roles/tensorflowonspark/tasks/spark.yml")
    lines = next(task["ansible.builtin.debug"]["msg"] for task in tasks if "ansible.builtin.debug" in task)
    values = {"__tensorflowonspark_archive": "/apps/jars.zip", "__tensorflowonspark_installed_home": str(tmp_path)}
    commands = Templar(loader=DataLoader(), variables=values).template(lines[1:-1])
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars/a.jar").write_text("a")
    (tmp_path / "temporary").mkdir()
    with zipfile.ZipFile(tmp_path / "temporary/jars.zip", "w") as planted:
        planted.writestr("000-evil.jar", "evil")
    python_files.write_script(tmp_path / "bin/hdfs", f'if [ "$2" = -put ]; then cp "$3" {tmp_path}/put.zip; fi')
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    subprocess.run(["/bin/sh", "-ec", "\n".join(commands)], check=True, timeout=60, cwd=tmp_path)
    assert zipfile.ZipFile(tmp_path / "put.zip").namelist() == ["a.jar"]
