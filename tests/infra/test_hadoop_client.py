"""The Hadoop client, as TensorFlow's libhdfs needs it."""

import pytest

pytestmark = pytest.mark.part("hadoop_client")
NAMES = ("JAVA_HOME", "HADOOP_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR", "LD_LIBRARY_PATH", "CLASSPATH")


@pytest.mark.parametrize("name", NAMES)
def test_the_environment_file_sets(answers, name):
    assert answers["hadoop"].get(name), "/opt/deeplearning/etc/hadoop-env.sh should set it"


@pytest.mark.part("active")
def test_anybody_can_read_the_environment_file(host):
    assert host.file("/opt/deeplearning/etc/hadoop-env.sh").mode == 0o644


def test_java_starts(answers):
    assert answers["java"]["error"] is None


def test_the_class_path_has_no_wildcards(answers):
    assert "*" not in answers["hadoop"]["CLASSPATH"], "libhdfs expands none"


def test_every_jar_of_the_class_path_is_there(answers):
    assert answers["missing_jars"] == [], "Hadoop was upgraded since. Run: ansible-playbook site.yml -e apply=all"


def test_libhdfs_loads_from_where_tensorflow_looks_first(answers):
    assert answers["libhdfs"]["error"] is None
