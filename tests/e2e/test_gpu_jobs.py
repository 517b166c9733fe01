"""tfos-submit --gpus: YARN gives each executor GPUs of its own, or says why not. test_kerberos.py has such a job by keytab.

The GPUs are those of a stand-in nvidia-smi.
"""

import json
import re
import subprocess

import pytest

from hadoop_dl_dev.demo import images, kerberos, nodes, tour

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

# What TensorFlowOnSpark makes of the GPUs that the executor was given.
TFOS = """
import os, socket

def look(arguments, context):
    from pyspark import TaskContext
    given = TaskContext.get().resources()["gpu"].addresses
    print("EXECUTOR %s given %s uses %s." % (socket.gethostname(), ",".join(given), os.environ["CUDA_VISIBLE_DEVICES"]))

if __name__ == "__main__":
    from pyspark import SparkContext
    from tensorflowonspark import TFCluster
    context = SparkContext()
    TFCluster.run(context, look, [], 4, 0).shutdown()
"""


@pytest.fixture(autouse=True)
def _ticket(cluster):
    if cluster.kerberos:
        kerberos.log_in(cluster)


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


def test_tensorflowonspark_takes_the_gpus_that_each_executor_was_given(cluster, shell, analyst, gpu_devices):
    """Version 1.4 asks nvidia-smi, and so took GPUs by their number on the host."""
    assert shell("edge1", f"cat > /tmp/tfos_gpus.py <<'END'\n{TFOS}END")[0] == 0
    analyst("tfos-submit --executors 4 --gpus 1 --memory 1g --timeout 300 /tmp/tfos_gpus.py")
    application = re.findall(r"(?m)^(application_\w+) +tfos_gpus.py ", analyst("tfos-submit jobs"))[0]  # the newest
    rows = re.findall(r"EXECUTOR (\w+) given (\d+) uses (\S*?)\.", analyst(f"tfos-submit logs {application}"))
    assert sorted(rows) == [(host, gpu, gpu) for host in cluster.data_hosts for gpu in ("0", "1")]


@pytest.mark.parametrize("number", ["1", "2"])
def test_the_example_trains_on_the_gpus_that_it_is_told(cluster, gpu_devices, number):
    assert tour.train(cluster, variables={"GPUS": number})["accuracy"] >= 0.95


def test_a_stand_in_of_a_gpu_is_a_fault_of_the_report_and_no_drift(cluster, tmp_path):
    command = ["scripts/report", "-i", str(cluster.inventory), "--directory", str(tmp_path), "--format", "json"]
    command += ["--limit", "data1:data2:edge1"]
    completed = subprocess.run(command, cwd=images.REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    hosts = json.loads(completed.stdout)["hosts"]
    assert completed.returncode == 3
    assert [host["host"] for host in hosts if host["state"] == "fault"] == cluster.data_hosts
    assert [host["drift"] for host in hosts if host["drift"]] == []
    assert all(reason.startswith("gpu-check ") for host in hosts for reason in host["reasons"])
