"""tfos-submit --gpus: YARN gives each executor GPUs of its own, or says why not. test_kerberos.py has such a job by keytab.

The GPUs are those of a stand-in nvidia-smi.
"""

import json

import pytest

from hadoop_dl_dev.demo import nodes

JOB = """
import json, os, socket, sys
from pyspark import SparkContext, TaskContext

context = SparkContext()


def look(numbers):
    list(numbers)
    gpus = TaskContext.get().resources()["gpu"].addresses
    yield {"host": socket.gethostname(), "gpus": list(gpus), "order": os.environ.get("CUDA_DEVICE_ORDER")}


count = int(context.getConf().get("spark.executor.instances"))
found = context.parallelize(range(count), count).barrier().mapPartitions(look).collect()
with open(sys.argv[1], "w") as target:
    json.dump({"driver": socket.gethostname(), "hidden": os.environ.get("CUDA_VISIBLE_DEVICES"), "found": found}, target)
print("the job is done")
context.stop()
"""


@pytest.fixture
def submit_job(shell, gpu_devices):
    """Submit JOB as analyst: exit status and output."""
    assert shell("edge1", f"cat > /tmp/gpus.py <<'END'\n{JOB}END")[0] == 0

    def submit(*arguments: str) -> tuple[int, str]:
        command = f"cd ~ && rm -f gpus.json && tfos-submit --memory 1g --timeout 180 {' '.join(arguments)} /tmp/gpus.py gpus.json"
        return shell("edge1", f"su - analyst -c '{command}'")

    return submit


def test_four_executors_on_two_nodes_in_cluster_mode_never_share_a_gpu(cluster, submit_job):
    code, output = submit_job("--executors", "4", "--gpus", "1", "--deploy-mode", "cluster", "--result", "gpus.json")
    assert code == 0, output[-4000:]
    assert "the job is done" in output
    result = json.loads(nodes.execute(cluster.container("edge1"), "cat", "/home/analyst/gpus.json"))
    assert sorted((executor["host"], *executor["gpus"]) for executor in result["found"]) == [
        (host, gpu) for host in cluster.data_hosts for gpu in ("0", "1")
    ]
    assert {executor["order"] for executor in result["found"]} == {"PCI_BUS_ID"}
    assert (result["driver"] in cluster.data_hosts, result["hidden"]) == (True, "")


def test_a_fifth_gpu_of_four_is_refused_with_resource_queue_and_nodes(cluster, submit_job):
    code, output = submit_job("--executors", "5", "--gpus", "1")
    assert code == 3, output
    assert "(yarn.io/gpu, in queue default) require more than YARN has: 4 of them fit" in output
    assert all(f"{host} (RUNNING) has 2" in output for host in cluster.data_hosts)
