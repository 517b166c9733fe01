"""hadoop_client_info on trees like those of CDH, HDP, Apache and Bigtop."""

import shutil
from pathlib import Path
from typing import Any

import hadoop_client_info as info
import pytest
import yaml
from python_files import write_script

REPOSITORY = Path(__file__).parents[2]
VARS = yaml.safe_load((REPOSITORY / "roles/hadoop_client/vars/main.yml").read_text())


def java(home: Path, version: str) -> None:
    write_script(home / "bin/java", "")
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    library = home / ("jre/lib/amd64/server/libjvm.so" if version.startswith("1.8") else "lib/server/libjvm.so")
    library.parent.mkdir(parents=True)
    library.write_text("")


class Host:
    """A tree that looks like a host's; the role's own places are looked for below it."""

    def __init__(self, root: Path, home: str, hdfs_home: str = "", native: str = "") -> None:
        self.root = root
        self.home = root / home.lstrip("/")
        classpath = f"$HADOOP_CONF_DIR:{self.home}/a.jar:{self.home}/b.jar"
        write_script(self.home / "bin/hadoop", f'[ "$1 $2" = "classpath --glob" ] && echo "{classpath}"')
        (root / (hdfs_home or home).lstrip("/") / "lib").mkdir(parents=True, exist_ok=True)
        (root / (hdfs_home or home).lstrip("/") / "hadoop-hdfs.jar").write_text("")
        library = root / (native or f"{home}/lib/native").lstrip("/") / "libhdfs.so"
        library.parent.mkdir(parents=True, exist_ok=True)
        library.write_text("")
        self.conf = root / "etc/hadoop/conf"
        self.conf.mkdir(parents=True)
        (self.conf / "core-site.xml").write_text("<configuration/>")
        java(root / "usr/lib/jvm/java-11", "11.0.21")

    def below(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.below(item) for item in value]
        if isinstance(value, dict):
            return {key: item if key == "distribution" else self.below(item) for key, item in value.items()}
        return f"{self.root}{value}"

    def survey(self, **wanted: Any) -> tuple[dict[str, Any], list[str]]:
        defaults = {
            **dict.fromkeys(("hadoop_home", "conf_dir", "java_home", "libhdfs", "libjvm"), ""),
            "java_versions": [],
            "places": self.below(VARS["__hadoop_client_places"]),
            "conf_places": self.below(VARS["__hadoop_client_conf_places"]),
            "java_places": self.below(VARS["__hadoop_client_java_places"]),
            "linked_home": f"{self.root}/opt/deeplearning/hadoop",
        }
        return info.survey({**defaults, **wanted})


LAYOUTS = {
    "cdh": (
        "/opt/cloudera/parcels/CDH/lib/hadoop",
        "/opt/cloudera/parcels/CDH/lib/hadoop-hdfs",
        "/opt/cloudera/parcels/CDH/lib64",
    ),
    "hdp": ("/usr/hdp/current/hadoop-client", "/usr/hdp/current/hadoop-hdfs-client", "/usr/hdp/2.6.5.0-292/usr/lib"),
    "mapr": ("/opt/mapr/hadoop/hadoop-2.7.0", "", ""),
    "apache": ("/opt/hadoop", "", ""),
    "bigtop": ("/usr/lib/hadoop", "/usr/lib/hadoop-hdfs", "/usr/lib/hadoop/lib/native"),
}


@pytest.mark.parametrize("distribution", LAYOUTS)
def test_every_distribution_is_found_and_libhdfs_where_tensorflow_looks_first(tmp_path, distribution):
    host = Host(tmp_path, *LAYOUTS[distribution])
    hadoop, problems = host.survey()
    assert problems == []
    assert hadoop["distribution"] == distribution
    assert hadoop["home"] == str(host.home)
    assert hadoop["java_home"].endswith("java-11")
    assert hadoop["classpath"] == f"{host.conf}:{host.home}/a.jar:{host.home}/b.jar"
    library = f"{hadoop['hdfs_home']}/lib/native/libhdfs.so"
    assert Path(library).exists() or hadoop["links"][library] == hadoop["libhdfs"]


def test_a_linked_home_has_everything_that_the_real_one_has(tmp_path):
    hadoop, _ = Host(tmp_path, *LAYOUTS["cdh"]).survey()
    home = f"{tmp_path}/opt/deeplearning/hadoop"
    assert hadoop["hdfs_home"] == home
    assert set(hadoop["links"]) == {f"{home}/hadoop-hdfs.jar", f"{home}/lib/native/libhdfs.so"}


def test_a_home_that_needs_no_links_gets_none(tmp_path):
    hadoop, _ = Host(tmp_path, "/opt/hadoop").survey()
    assert (hadoop["links"], hadoop["hdfs_home"]) == ({}, f"{tmp_path}/opt/hadoop")


def test_java_of_a_version_that_fits_is_taken(tmp_path):
    host = Host(tmp_path, "/opt/hadoop")
    java(tmp_path / "usr/java/jdk1.8.0_392", "1.8.0_392")
    assert host.survey(java_versions=["8"])[0]["java_home"] == f"{tmp_path}/usr/java/jdk1.8.0_392"
    assert host.survey(java_versions=["11"])[0]["java_home"] == f"{tmp_path}/usr/lib/jvm/java-11"


def test_java_8_is_known_without_a_release_file(tmp_path):
    """As Debian's openjdk-8-jre-headless 8u504 has it; Java 7 has no tzdb.dat, and Java 9 no rt.jar."""
    host = Host(tmp_path, "/opt/hadoop")
    home = tmp_path / "usr/lib/jvm/java-8-openjdk-amd64"
    java(home, "1.8.0_504")
    (home / "release").unlink()
    (home / "jre/lib/rt.jar").touch()
    assert "java-8-openjdk-amd64 (unknown version)" in host.survey(java_versions=["8"])[1][0]
    (home / "jre/lib/tzdb.dat").touch()
    hadoop, problems = host.survey(java_versions=["8"])
    assert (hadoop["java_home"], hadoop["java_version"], problems) == (str(home), "8", [])


def test_the_clusters_own_java_comes_first(tmp_path):
    host = Host(tmp_path, "/opt/hadoop")
    java(tmp_path / "opt/special", "11.0.1")
    (host.conf / "hadoop-env.sh").write_text(f"# hadoop\nexport JAVA_HOME={tmp_path}/opt/special\n")
    assert host.survey()[0]["java_home"] == f"{tmp_path}/opt/special"


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.mark.parametrize(
    ("gone", "wanted", "needed", "next_step"),
    [
        ("opt/hadoop", {}, "A Hadoop client is required", "hadoop_client_hadoop_home"),
        ("etc/hadoop/conf/core-site.xml", {}, "core-site.xml) is required", "hadoop_client_conf_dir"),
        ("usr/lib/jvm/java-11", {}, "Java is required, but none is in", "hadoop_client_java_home"),
        (None, {"java_versions": ["8"]}, "Java 8 is required, but found were", "hadoop_client_java_home"),
        (None, {"java_home": "/nowhere"}, "Java is required in /nowhere", "Correct hadoop_client_java_home"),
        ("opt/hadoop/lib/native/libhdfs.so", {}, "libhdfs.so is required", "hadoop_client_libhdfs"),
        ("usr/lib/jvm/java-11/lib/server", {}, "libjvm.so is required", "hadoop_client_libjvm"),
        ("opt/hadoop/bin/hadoop", {}, "class path is required", "Make that command work"),
    ],
)
def test_what_is_missing_is_said_in_three_parts(tmp_path, gone, wanted, needed, next_step):
    host = Host(tmp_path, "/opt/hadoop")
    if gone:
        remove(tmp_path / gone)
    problems = host.survey(**wanted)[1]
    assert any(needed in problem and next_step in problem for problem in problems), problems


def test_all_problems_are_said_at_once(tmp_path):
    host = Host(tmp_path, "/opt/hadoop")
    for path in ("etc/hadoop/conf/core-site.xml", "usr/lib/jvm/java-11", "opt/hadoop/lib/native/libhdfs.so"):
        remove(tmp_path / path)
    assert len(host.survey()[1]) == 3
