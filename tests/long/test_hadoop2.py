"""Spark 2.4 on Hadoop 2.10: site.yml with the suite, every input mode, what tests/e2e asks of jobs, --gpus refused, yarn_gpu with a node label and removed. A cluster of its own, removed at the end."""

from __future__ import annotations

from collections.abc import Iterator

import hadoop_clusters
import pytest

from hadoop_dl_dev.demo import cluster, nodes

CLUSTER = cluster.Cluster("tf1.15-spark2-cpu-py27-el7", name="hadoop2", hadoop="2.10.2")


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    yield from hadoop_clusters.of_its_own(CLUSTER)


def test_the_suite_passes_on_every_host() -> None:
    assert " 0 failed" in hadoop_clusters.play(CLUSTER, "playbooks/verify.yml")


@pytest.mark.parametrize("name", ["training", "submit"])
def test_jobs_behave_as_on_hadoop_3(name: str) -> None:
    hadoop_clusters.run_e2e(CLUSTER, name)


def test_hosts_without_an_environment_get_it_by_yarn() -> None:
    hadoop_clusters.train_without_environments(CLUSTER)


def test_a_request_for_gpus_is_refused_before_submission() -> None:
    """YARN has them, but this Spark cannot ask for them."""
    submit = "cd digits && tfos-submit --gpus 1 train_tf1.py; echo status $?"
    said = nodes.execute(CLUSTER.container("edge1"), "su", "-", "analyst", "-c", f"exec 2>&1; {submit}", check=False)
    assert "--gpus 1 requires Spark 3, but" in said
    assert "is Spark 2.4." in said
    assert "status 3" in said


def test_the_hosts_have_hadoop_2_and_java_8() -> None:
    hadoop_clusters.check_versions(CLUSTER)


def test_a_label_by_the_role_comes_serves_a_job_and_goes() -> None:
    hadoop_clusters.check_labels(CLUSTER)


def test_the_removal_of_yarn_gpu_restores_every_byte_and_takes_the_label_away() -> None:
    hadoop_clusters.check_removal(CLUSTER)
