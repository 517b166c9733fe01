"""RHEL 8: what the resolver answers for RHEL 8.8, CDP 7.1 and no GPU, installed by site.yml, with jobs on YARN. The nodes have Hadoop 3.3.6 and Java 17.

A cluster of its own, removed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import hadoop_clusters
import pytest
from demo_commands import play

from hadoop_dl_dev.demo import cluster

CLUSTER = cluster.Cluster("tf2.17-cpu-py311", name="el8")


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with hadoop_clusters.of_its_own(CLUSTER):
        yield


def test_the_suite_passes_on_every_host() -> None:
    assert CLUSTER.image == "el8"
    assert " 0 failed" in play(CLUSTER, "playbooks/verify.yml")


def test_tensorflow_trains_as_on_other_systems() -> None:
    hadoop_clusters.run_e2e(CLUSTER, "training")
