"""Spark 2.4 on Hadoop 2.10: the suite, the jobs of tests/e2e, a node label, the removal of yarn_gpu, and a site's own Spark 2.4 and 2.3; TensorFlow 1.4.

--gpus is refused, because Spark 2.4 cannot request GPUs. A cluster of its own, removed at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import hadoop_clusters
import pytest
import site_spark
from demo_commands import play

from hadoop_dl_dev.demo import cluster, nodes

CLUSTER = cluster.Cluster("tf1.15-spark2-cpu-py27-el7", name="hadoop2", hadoop="2.10.2")
PAPER = "tf1.4-spark2-cpu-py27-el7"


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with hadoop_clusters.of_its_own(CLUSTER):
        yield


def test_the_suite_passes_on_every_host() -> None:
    assert " 0 failed" in play(CLUSTER, "playbooks/verify.yml")


@pytest.mark.parametrize("name", ["training", "submit"])
def test_jobs_behave_as_on_hadoop_3(name: str) -> None:
    hadoop_clusters.run_e2e(CLUSTER, name)


def test_hosts_without_an_environment_get_it_by_yarn() -> None:
    hadoop_clusters.train_without_environments(CLUSTER)


def test_the_papers_set_and_the_first_answer_for_hdp_2_train_beside_it() -> None:
    hadoop_clusters.add_python(CLUSTER, "3.6")
    hadoop_clusters.train_beside(CLUSTER, PAPER, "tf1.15-spark2-py36-el7")


def test_a_request_for_gpus_is_refused_before_submission() -> None:
    """YARN has them, but this Spark cannot ask for them."""
    submit = "cd digits && tfos-submit --gpus 1 train_tf1.py; echo status $?"
    output = nodes.execute(CLUSTER.container("edge1"), "su", "-", "analyst", "-c", f"exec 2>&1; {submit}", check=False)
    assert "--gpus 1 requires Spark 3, but" in output
    assert "is Spark 2.4." in output
    assert "status 3" in output


def test_the_hosts_have_hadoop_2_and_java_8() -> None:
    hadoop_clusters.check_versions(CLUSTER)


def test_a_label_by_the_role_comes_serves_a_job_and_goes() -> None:
    hadoop_clusters.check_labels(CLUSTER)


def test_the_removal_of_yarn_gpu_restores_every_byte_and_takes_the_label_away() -> None:
    hadoop_clusters.check_removal(CLUSTER)


@pytest.fixture(scope="module")
def _spark_of_the_site(_cluster_of_its_own: None) -> None:
    """The last tests have it."""
    site_spark.install(CLUSTER)
    site_spark.activate(CLUSTER, "2.4.8")
    options = ("-e", f"spark_home={site_spark.HOME}")
    play(CLUSTER, "site.yml", *options)
    assert " 0 failed" in play(CLUSTER, "playbooks/verify.yml", *options)


@pytest.mark.usefixtures("_spark_of_the_site")
@pytest.mark.parametrize("mode", ["client", "cluster"])
@pytest.mark.parametrize("version", site_spark.VERSIONS)
def test_jobs_run_with_a_sites_spark_and_its_settings(version: str, mode: str) -> None:
    site_spark.activate(CLUSTER, version)
    hadoop_clusters.train(CLUSTER, mode)
    status, output = site_spark.ask(CLUSTER, f"tfos-submit --deploy-mode {mode}")
    pyspark = f"{site_spark.HOME}/python/lib/pyspark.zip/pyspark/__init__.py {version} 1.15.0"
    assert f"DRIVER {pyspark} {'spark-env.sh' if mode == 'client' else 'spark-defaults.conf'}\n" in output, output
    assert f"EXECUTOR {pyspark} spark-defaults.conf\n" in output, output
    assert "JVM 1.8 org.apache.spark.serializer.KryoSerializer 512m None\n" in output, output
    expected = [
        *(["ask.py"] if mode == "cluster" else []),
        "nvidia-smi",
        "packages.zip",
        "python",
        "tensorflow-hadoop-1.15.0.jar",
    ]
    assert site_spark.uploaded(output) == expected, "every host has what spark.yarn.jars and PYSPARK_ARCHIVES_PATH name"
    assert (status, "ZeroDivisionError" in output) == (1, True), output


@pytest.mark.usefixtures("_spark_of_the_site")
def test_without_its_settings_a_sites_spark_is_uploaded() -> None:
    site_spark.activate(CLUSTER, "2.4.8")
    _, output = site_spark.ask(CLUSTER, "SPARK_CONF_DIR=/nowhere tfos-submit")
    assert "falling back to uploading libraries under SPARK_HOME" in output, output
    assert re.search(r"EXECUTOR /\S+/container_\S+/pyspark.zip/pyspark/__init__.py 2\.4\.8 1\.15\.0 -", output), output


@pytest.mark.usefixtures("_spark_of_the_site")
def test_tensorflow_1_4_is_chosen_for_a_sites_spark_and_trains_with_it() -> None:
    """The white paper's cluster has Spark 2.2 of CDH; this one has 2.3. CUDA 8.0, which the form for GPUs needs, is not here."""
    site_spark.activate(CLUSTER, "2.3.4")
    request = {"spark_home": site_spark.HOME, "deeplearning_request": {"tensorflow": "1.4", "gpu": "none"}}
    play(CLUSTER, "site.yml", "-e", json.dumps(request))
    current = nodes.execute(CLUSTER.container("data1"), "readlink", "/opt/deeplearning/current")
    assert f"/{PAPER}-" in current
    for mode in ("client", "cluster"):
        hadoop_clusters.train(CLUSTER, mode)
