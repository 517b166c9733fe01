"""Hadoop 3.1 with Kerberos: site.yml, a node label, logins, refusals, GPUs, the removal. A cluster of its own, removed at the end."""

from __future__ import annotations

from collections.abc import Iterator

import hadoop_clusters
import pytest

from hadoop_dl_dev.demo.cluster import Cluster

CLUSTER = Cluster("tf1.15-py27-el7", name="hadoop31-kerberos", hadoop="3.1.1", kerberos=True)


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with hadoop_clusters.of_its_own(CLUSTER):
        yield


def test_the_hosts_have_hadoop_3_1_and_java_8() -> None:
    hadoop_clusters.check_versions(CLUSTER)


def test_a_job_in_cluster_mode_by_ticket_gets_gpus() -> None:
    hadoop_clusters.run_e2e(CLUSTER, "gpu_jobs")


def test_a_label_by_the_role_comes_serves_a_job_and_goes() -> None:
    hadoop_clusters.check_labels(CLUSTER)


def test_logins_refusals_and_denied_gpus_are_as_on_hadoop_3_3() -> None:
    """Ends with the removal of everything, which restores every byte."""
    hadoop_clusters.run_e2e(CLUSTER, "kerberos")
