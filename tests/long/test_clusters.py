"""Clusters of their own, each removed at the end: Hadoop 2.10 with Spark 2.4, Hadoop 3.1 with and without Kerberos, RHEL 8, RHEL 10.

The suite, the jobs of tests/e2e, a node label, the removal of yarn_gpu; with Spark 2.4 also a site's own Spark 2.4 and 2.3, and TensorFlow 1.4.
RHEL 8 has what the resolver answers for RHEL 8.8 and CDP 7.1; its nodes have Hadoop 3.3.6 and Java 17.
RHEL 10 has Java 21 and Spark 4.1; site.yml, the first job and the suite are all that its stack can be asked.
"""

import json
import re
from collections.abc import Callable, Iterator

import hadoop_clusters
import pytest
import site_spark
from demo_commands import play

from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.cluster import Cluster

HADOOP2 = Cluster("tf1.15-spark2-cpu-py27-el7", name="hadoop2", hadoop="2.10.2")
HADOOP31 = Cluster("tf1.15-py27-el7", name="hadoop31", hadoop="3.1.1")
SECURE31 = Cluster("tf1.15-py27-el7", name="hadoop31-kerberos", hadoop="3.1.1", kerberos=True)
EL8 = Cluster("tf2.17-cpu-py311", name="el8")
EL10 = Cluster("tf2.21-spark4-cpu-py3-el10", name="el10")
PAPER = "tf1.4-spark2-cpu-py27-el7"


def on(*clusters: Cluster) -> Callable[..., None]:
    """pytest runs all tests on one cluster, in their order here, before those on the next."""
    return pytest.mark.parametrize("found", clusters, ids=lambda found: found.name, indirect=True, scope="module")


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with hadoop_clusters.of_its_own(request.param):
        yield request.param


@on(HADOOP2, HADOOP31, EL8, EL10)
def test_the_suite_passes_on_every_host(found: Cluster) -> None:
    assert found.image == {EL8: "el8", EL10: "el10"}.get(found, found.image)
    assert " 0 failed" in play(found, "playbooks/verify.yml")


@on(HADOOP2, HADOOP31, SECURE31)
def test_the_hosts_have_their_hadoop_and_java_8(found: Cluster) -> None:
    hadoop_clusters.check_versions(found)


@on(HADOOP2, HADOOP31, EL8)
def test_tensorflow_trains_as_on_other_systems(found: Cluster) -> None:
    hadoop_clusters.run_e2e(found, "training")


@on(HADOOP2, HADOOP31, EL8)
def test_submissions_are_as_on_hadoop_3_3(found: Cluster) -> None:
    hadoop_clusters.run_e2e(found, "submit")


@on(HADOOP31, SECURE31)
def test_jobs_get_gpus(found: Cluster) -> None:
    hadoop_clusters.run_e2e(found, "gpu_jobs")


@on(HADOOP31, EL8)
def test_executors_see_gpus_as_on_hadoop_3_3(found: Cluster) -> None:
    hadoop_clusters.run_e2e(found, "gpus_in_yarn")


@on(HADOOP31)
def test_a_notebook_trains_as_on_hadoop_3_3(found: Cluster) -> None:
    hadoop_clusters.run_e2e(found, "notebook")


@on(HADOOP2)
def test_hosts_without_an_environment_get_it_by_yarn(found: Cluster) -> None:
    hadoop_clusters.train_without_environments(found)


@on(HADOOP2, HADOOP31, EL8)
def test_other_answers_for_its_systems_train_beside_it(found: Cluster) -> None:
    """The paper's set and the first answer for HDP 2; those for RHEL 7.9 and TensorFlow 1; that for RHEL 8 and 9 with GPUs."""
    hadoop2, hadoop31 = (PAPER, "tf1.15-spark2-py36-el7"), ("tf2.6-py36", "tf1.15-py36-el7")
    stacks = {HADOOP2: hadoop2, HADOOP31: hadoop31, EL8: ("tf2.17-py311",)}[found]
    if found is not EL8:
        hadoop_clusters.add_python(found, "3.6")
    hadoop_clusters.train_beside(found, *stacks)


@on(HADOOP2)
def test_a_request_for_gpus_is_refused_before_submission(found: Cluster) -> None:
    """YARN has them, but this Spark cannot ask for them."""
    submit = "cd digits && tfos-submit --gpus 1 train_tf1.py; echo status $?"
    output = nodes.execute(found.container("edge1"), "su", "-", "analyst", "-c", f"exec 2>&1; {submit}", check=False)
    assert "--gpus 1 requires Spark 3, but" in output
    assert "is Spark 2.4." in output
    assert "status 3" in output


@on(HADOOP31)
def test_yarn_gpu_again_changes_nothing(found: Cluster) -> None:
    output = play(found, "playbooks/yarn_gpu.yml", "-e", "apply=all")
    assert hadoop_clusters.changes(output) == {"0"}


@on(HADOOP2, HADOOP31, SECURE31)
def test_a_label_by_the_role_comes_serves_a_job_and_goes(found: Cluster) -> None:
    hadoop_clusters.check_labels(found)


@on(HADOOP2, HADOOP31)
def test_the_removal_of_yarn_gpu_restores_every_byte_and_takes_the_label_away(found: Cluster) -> None:
    hadoop_clusters.check_removal(found)


@on(SECURE31)
def test_logins_refusals_and_denied_gpus_are_as_on_hadoop_3_3(found: Cluster) -> None:
    """Ends with the removal of everything, which restores every byte."""
    hadoop_clusters.run_e2e(found, "kerberos")


@pytest.fixture(scope="module")
def _spark_of_the_site(found: Cluster) -> None:
    """The last tests have it."""
    site_spark.install(found)
    site_spark.activate(found, "2.4.8")
    options = ("-e", f"spark_home={site_spark.HOME}")
    play(found, "site.yml", *options)
    assert " 0 failed" in play(found, "playbooks/verify.yml", *options)


@on(HADOOP2)
@pytest.mark.usefixtures("_spark_of_the_site")
@pytest.mark.parametrize("mode", ["client", "cluster"])
@pytest.mark.parametrize("version", site_spark.VERSIONS)
def test_jobs_run_with_a_sites_spark_and_its_settings(found: Cluster, version: str, mode: str) -> None:
    site_spark.activate(found, version)
    hadoop_clusters.train(found, mode)
    status, output = site_spark.ask(found, f"tfos-submit --deploy-mode {mode}")
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


@on(HADOOP2)
@pytest.mark.usefixtures("_spark_of_the_site")
def test_without_its_settings_a_sites_spark_is_uploaded(found: Cluster) -> None:
    site_spark.activate(found, "2.4.8")
    _, output = site_spark.ask(found, "SPARK_CONF_DIR=/nowhere tfos-submit")
    assert "falling back to uploading libraries under SPARK_HOME" in output, output
    assert re.search(r"EXECUTOR /\S+/container_\S+/pyspark.zip/pyspark/__init__.py 2\.4\.8 1\.15\.0 -", output), output


@on(HADOOP2)
@pytest.mark.usefixtures("_spark_of_the_site")
def test_tensorflow_1_4_is_chosen_for_a_sites_spark_and_trains_with_it(found: Cluster) -> None:
    """The white paper's cluster has Spark 2.2 of CDH; this one has 2.3. CUDA 8.0, which the form for GPUs needs, is not here."""
    site_spark.activate(found, "2.3.4")
    request = {"spark_home": site_spark.HOME, "deeplearning_request": {"tensorflow": "1.4", "gpu": "none"}}
    play(found, "site.yml", "-e", json.dumps(request))
    current = nodes.execute(found.container("data1"), "readlink", "/opt/deeplearning/current")
    assert f"/{PAPER}-" in current
    for mode in ("client", "cluster"):
        hadoop_clusters.train(found, mode)
