"""What each of the two nodes has: the client on both, Spark of the mirror on one."""

import json

import pytest


def settings(host):
    return json.loads(host.file("/opt/deeplearning/etc/tfos-submit.json").content_string)


def has_own_spark(host):
    """Whether this project installed Spark; the other node uses the site's."""
    return settings(host)["spark_home"].startswith("/opt/deeplearning/")


@pytest.mark.parametrize("path", ["bin/spark-submit", "jars", "python/lib/pyspark.zip", "python/pyspark/context.py"])
def test_a_spark_of_ours_has_sparks_layout(host, path):
    assert host.file(f"/opt/deeplearning/spark/pyspark-3.0.3/{path}").exists == has_own_spark(host)


def test_every_job_gets_the_jar_that_reads_tfrecords(host):
    (jar,) = settings(host)["jars"]
    assert host.file(jar).sha256sum == "a70d4cf0f89cfa33260e49154cc52bf8ddba01ec39c5441825282e5e242fd2e1"
    assert host.file(jar).mode == 0o644


def test_nothing_half_made_is_left(host):
    assert host.run("ls -A /opt/deeplearning/spark /opt/deeplearning/downloads").stdout.count(".building") == 0
    assert not host.run("find /opt/deeplearning/downloads -type f 2>/dev/null").stdout


def test_the_sites_settings_reach_every_job(host):
    defaults = host.file("/opt/deeplearning/etc/spark-defaults.conf").content_string
    assert ("spark.yarn.queue gpu" in defaults) == (not has_own_spark(host))


def test_a_job_without_an_active_environment_is_refused_with_the_next_step(host):
    completed = host.run("/opt/deeplearning/bin/tfos-submit /etc/hostname")
    assert completed.rc == 3
    assert "ansible-playbook site.yml" in completed.stderr


def test_everybody_has_the_new_program_and_nothing_else_is_beside_it(host):
    """An earlier version was one file of Python, which the run replaces."""
    assert host.file("/opt/deeplearning/bin/tfos-submit").mode == 0o755
    completed = host.run("su -s /bin/sh nobody -c 'cd /tmp && tfos-submit --help'")
    assert "exit status:" in completed.stdout, completed.stderr
    assert host.check_output("ls /opt/deeplearning/bin") == "tfos-submit"
