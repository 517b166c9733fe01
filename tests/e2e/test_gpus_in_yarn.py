"""gpu-check inside YARN containers. The demo's GPUs are a stand-in nvidia-smi: TensorFlow must not see them, and the answer says why."""

import json
import subprocess
from pathlib import Path

import pytest

from hadoop_dl.data import programs

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def asked(cluster, tmp_path_factory) -> tuple[int, list[dict]]:
    """The exit status, and what each executor answered."""
    edge = cluster.container("edge1")
    subprocess.run(["docker", "exec", edge, "mkdir", "-p", "/tmp/gpus"], check=True)
    program = tmp_path_factory.mktemp("program") / "gpu-check"
    programs.main([str(REPO / "roles/gpu_check/files/gpu-check"), str(program)])
    for source in (program, REPO / "examples/gpus/ask_executors.py"):
        subprocess.run(["docker", "cp", str(source), f"{edge}:/tmp/gpus/{source.name}"], check=True)
    submit = "cd /tmp/gpus && /opt/deeplearning/bin/tfos-submit --executors 2 --timeout 300 --files gpu-check ask_executors.py"
    done = subprocess.run(
        ["docker", "exec", edge, "su", "analyst", "-c", submit], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert len(lines) == 1, done.stdout + done.stderr
    return done.returncode, json.loads(lines[0].removeprefix("RESULT "))


def answers(asked, name: str) -> dict[str, dict]:
    return {place["host"]: one for place in asked[1] for one in place["answers"] if one["name"] == name}


def test_every_executor_answers_from_a_container_of_its_own(asked, cluster):
    assert sorted(place["host"] for place in asked[1]) == cluster.data_hosts
    assert len({place["container"] for place in asked[1]}) == 2
    assert all(place["container"].startswith("container_") for place in asked[1])


def test_gpus_that_are_none_are_not_taken_for_gpus(asked, cluster):
    found = answers(asked, "tensorflow_lists_gpus")
    assert {host: one["outcome"] for host, one in found.items()} == dict.fromkeys(cluster.data_hosts, "FAIL")
    for one in found.values():
        assert one["message"].startswith("TensorFlow must list 2 GPUs but lists 0. ")
        assert one["message"].rpartition("lists 0. ")[2], "and a cause"


def test_a_failed_question_is_the_jobs_exit_status(asked):
    assert asked[0] == 1


def test_tensorflow_computes_on_the_cpu_of_a_container(asked, cluster):
    found = answers(asked, "tensorflow_computes_on_cpu")
    assert {host: one["outcome"] for host, one in found.items()} == dict.fromkeys(cluster.data_hosts, "PASS"), found


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


@pytest.fixture(scope="module")
def submit_job(cluster):
    """Submit JOB as analyst; the nodes get files in place of the GPUs' devices, which the executors lock."""
    edge = cluster.container("edge1")
    subprocess.run(["docker", "exec", "-i", edge, "sh", "-c", "cat > /tmp/gpus.py"], input=JOB, text=True, check=True)
    nodes = [cluster.container(host) for host in cluster.data_hosts]
    for node in nodes:
        subprocess.run(["docker", "exec", node, "sh", "-c", "umask 0; touch /dev/nvidia0 /dev/nvidia1"], check=True)

    def submit(*arguments: str) -> tuple[int, str]:
        command = f"cd ~ && rm -f gpus.json && tfos-submit --memory 1g --timeout 180 {' '.join(arguments)} /tmp/gpus.py gpus.json"
        done = subprocess.run(
            ["docker", "exec", edge, "su", "-", "analyst", "-c", command], capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    yield submit
    for node in nodes:
        subprocess.run(["docker", "exec", node, "rm", "-f", "/dev/nvidia0", "/dev/nvidia1"], check=True)


def test_four_executors_on_two_nodes_in_cluster_mode_never_share_a_gpu(cluster, submit_job):
    code, said = submit_job("--executors", "4", "--gpus", "1", "--deploy-mode", "cluster", "--result", "gpus.json")
    assert code == 0, said[-4000:]
    assert "the job is done" in said
    command = ["docker", "exec", cluster.container("edge1"), "cat", "/home/analyst/gpus.json"]
    result = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert sorted((one["host"], *one["gpus"]) for one in result["found"]) == [
        (host, gpu) for host in cluster.data_hosts for gpu in ("0", "1")
    ]
    assert {one["order"] for one in result["found"]} == {"PCI_BUS_ID"}
    assert (result["driver"] in cluster.data_hosts, result["hidden"]) == (True, "")


def test_a_fifth_gpu_of_four_is_refused_with_resource_queue_and_nodes(cluster, submit_job):
    code, said = submit_job("--executors", "5", "--gpus", "1")
    assert code == 3, said
    assert "(yarn.io/gpu, in queue default) require more than YARN has: 4 of them fit" in said
    assert all(f"{host} (RUNNING) has 2" in said for host in cluster.data_hosts)
