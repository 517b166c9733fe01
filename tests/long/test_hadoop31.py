"""Hadoop 3.1: the suite, the jobs of tests/e2e with and without GPUs, a node label, the removal of yarn_gpu.

A cluster of its own, removed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import hadoop_clusters
import pytest
from demo_commands import play

from hadoop_dl_dev.demo import cluster

CLUSTER = cluster.Cluster("tf1.15-py27-el7", name="hadoop31", hadoop="3.1.1")


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with hadoop_clusters.of_its_own(CLUSTER):
        yield


def test_the_hosts_have_hadoop_3_1_and_java_8() -> None:
    hadoop_clusters.check_versions(CLUSTER)


def test_the_suite_passes_on_every_host() -> None:
    assert " 0 failed" in play(CLUSTER, "playbooks/verify.yml")


@pytest.mark.parametrize("name", ["training", "submit", "gpus_in_yarn", "gpu_jobs", "notebook"])
def test_jobs_behave_as_on_hadoop_3_3(name: str) -> None:
    hadoop_clusters.run_e2e(CLUSTER, name)


def test_the_first_answer_for_rhel_7_9_trains_beside_it() -> None:
    hadoop_clusters.add_python(CLUSTER, "3.6")
    hadoop_clusters.train_beside(CLUSTER, "tf1.15-py36-el7")


def test_yarn_gpu_again_changes_nothing() -> None:
    output = play(CLUSTER, "playbooks/yarn_gpu.yml", "-e", "apply=all")
    assert hadoop_clusters.changes(output) == {"0"}


def test_a_label_by_the_role_comes_serves_a_job_and_goes() -> None:
    hadoop_clusters.check_labels(CLUSTER)


def test_the_removal_of_yarn_gpu_restores_every_byte_and_takes_the_label_away() -> None:
    hadoop_clusters.check_removal(CLUSTER)
