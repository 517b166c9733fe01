"""A directory of links replaces Hadoop's home only if the distribution keeps libhdfs elsewhere."""

LINKED = "/opt/deeplearning/hadoop"


def is_cdh(host):
    return host.file("/opt/cloudera").exists


def test_the_distributions_home_is_used_if_it_has_libhdfs(host):
    content = host.file("/opt/deeplearning/etc/hadoop-env.sh").content_string
    expected = LINKED if is_cdh(host) else "/opt/hadoop"
    assert f"export HADOOP_HDFS_HOME={expected}\n" in content


def test_links_are_made_only_if_they_are_needed(host):
    assert host.file(f"{LINKED}/lib/native/libhdfs.so").is_symlink == is_cdh(host)


def test_the_launchers_work_with_the_linked_home(host):
    command = "sh -c '. /opt/deeplearning/etc/hadoop-env.sh; unset CLASSPATH; $HADOOP_HOME/bin/hadoop classpath --glob'"
    assert "hadoop-hdfs" in host.check_output(command)
