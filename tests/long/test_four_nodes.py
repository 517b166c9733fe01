"""The white paper's shape: four data nodes, with TensorFlow 1 three workers and a parameter server. The first node has GPUs, the others no nvidia-smi.

A cluster of its own, removed at the end.
"""

from collections.abc import Iterator

import pytest
from demo_commands import play, run
from hadoop_clusters import of_its_own
from tfos_submit import yarn

from hadoop_dl_dev.demo import nodes, services, tour
from hadoop_dl_dev.demo.cluster import Cluster

CLUSTER = Cluster("tf1.15-py27-el7", data_nodes=4, name="four", gpu_nodes=1)


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with of_its_own(CLUSTER):
        yield


def test_the_suite_passes_and_yarn_has_the_gpus_of_one_node():
    assert " 0 failed" in play(CLUSTER, "playbooks/verify.yml")
    rows = services.get(CLUSTER, ":8088/ws/v1/cluster/nodes?states=RUNNING")["nodes"]["node"]
    gpus = {row["nodeHostName"]: yarn.node_summary(row)["total_gpus"] for row in rows}
    assert gpus == {"data1": 2, "data2": 0, "data3": 0, "data4": 0}


@pytest.mark.parametrize("mode", ["spark", "tensorflow"])
def test_four_executors_train_on_four_hosts(mode):
    result = tour.train(CLUSTER, mode, {"EXECUTORS": "4"})
    addresses = sorted(CLUSTER.addresses[host] for host in CLUSTER.data_hosts)
    assert (result["executors"], result["hosts"]) == (4, addresses)
    assert result["accuracy"] >= 0.95


def test_an_executor_with_gpus_trains_where_they_are():
    devices = "umask 0; touch /dev/nvidia0 /dev/nvidia1"
    nodes.execute(CLUSTER.container("data1"), "sh", "-c", devices)
    result = tour.train(CLUSTER, "spark", {"GPUS": "1"})
    assert (result["executors"], result["hosts"]) == (2, [CLUSTER.addresses["data1"]])


def test_the_canaries_own_job_trains_and_leaves_its_users_files() -> None:
    def files(directory: str) -> str:
        return run(
            "docker", "exec", CLUSTER.container("edge1"), "su", "-", "analyst", "-c", f"hdfs dfs -ls -R {directory}"
        )

    before = files("digits"), files("model-spark")
    canary = ("-e", "upgrade_canary=edge1", "-e", "upgrade_canary_user=analyst", "-e", "assume_yes=true")
    play(CLUSTER, "playbooks/upgrade_stack.yml", "-e", "deeplearning_request=tf1.4-cpu-py27-el7", *canary)
    assert (files("digits"), files("model-spark")) == before
    assert "/model-spark/result.json" in files("deeplearning-canary")
