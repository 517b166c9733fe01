"""The client that submits TensorFlowOnSpark jobs."""

import pytest

pytestmark = pytest.mark.part("tensorflowonspark")


def test_tfos_submit_answers(answers):
    assert answers["submit"]["error"] is None
    assert "exit status" in answers["submit"]["output"]


def test_anybody_can_run_tfos_submit(host):
    assert host.file("/opt/deeplearning/bin/tfos-submit").mode == 0o755


def test_a_login_shell_finds_tfos_submit(answers):
    assert answers["login"]["error"] is None, (
        f"/usr/local/bin/tfos-submit must be a link to the program, but {answers['login']['error']}. "
        "Run: ansible-playbook site.yml -e apply=all"
    )


def test_spark_starts(answers):
    assert answers["spark"], "/opt/deeplearning/etc/tfos-submit.json should tell where Spark is"
    assert answers["spark"]["version"]["error"] is None


def test_sparks_jars_are_in_hdfs_where_spark_is_ours(answers, hdfs_asked):
    if answers["spark"]["home"].startswith("/opt/deeplearning/"):
        archive = answers["spark"]["archived"]
        assert archive, (
            "spark-defaults.conf should name spark.yarn.archive. Run: ansible-playbook site.yml -e apply=all"
        )
        assert archive["error"] is None, (
            f"{archive['error']}. If HDFS answers, run: ansible-playbook site.yml -e apply=all"
        )
