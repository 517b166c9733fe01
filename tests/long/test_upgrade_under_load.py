"""Jobs run one after the other while the stack is upgraded (a canary first), rolled back and upgraded again: each sees one environment, none fails.

A cluster of its own, removed at the end.
"""

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator

import pytest
from demo_commands import nodes_alone, play

from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.cluster import Cluster

NAME = "load"
FIRST, SECOND = os.environ.get("LOAD_STACKS", "tf1.4-cpu-py27-el7 tf1.15-py27-el7").split()
ENVIRONMENTS = {stack: f"{stack}-{stacks.load_stack(stack).lock().digest}" for stack in (FIRST, SECOND)}
HOSTS = ("data1", "data2", "edge1")
# The driver and both executors tell where their TensorFlow, and at the end their Keras, comes from; in between `current` may be switched.
JOB = r"""
import os
import socket
import sys
import time

from pyspark import SparkContext


def look(who):
    import tensorflow
    seen = [sys.executable, os.path.realpath(tensorflow.__file__)]
    time.sleep(8)
    import keras
    seen += [os.path.realpath(keras.__file__), os.path.realpath(sys.executable)]
    return ["SEEN %s %s" % (who, path) for path in seen]


def executor(_):
    return look("executor-" + socket.gethostname())


context = SparkContext()
lines = context.parallelize(range(2), 2).mapPartitions(executor).collect()
print("\n".join(lines + look("driver")))
"""
SEEN = re.compile(r"^SEEN (\S+) \S*/envs/([^/]+-[0-9a-f]{12})[./]", re.MULTILINE)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster(FIRST, name=NAME)
    with nodes_alone(cluster):
        play(cluster, "site.yml")
        write = ["docker", "exec", "-i", cluster.container("edge1"), "sh", "-c", "cat > /home/analyst/look.py"]
        subprocess.run(write, input=JOB, text=True, check=True)
        yield cluster


class Jobs(threading.Thread):
    """Submits one job after the other on the edge node until it is told to stop: (begin, end, exit status, output)."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self.cluster, self.stopped = cluster, threading.Event()
        self.done: list[tuple[float, float, int, str]] = []

    def run(self) -> None:
        submit = ["docker", "exec", "--user", "analyst", "--workdir", "/home/analyst", self.cluster.container("edge1")]
        submit += [
            "/opt/deeplearning/bin/tfos-submit",
            "--executors",
            "2",
            "--memory",
            "1g",
            "--wait",
            "200",
            "--timeout",
            "400",
            "look.py",
        ]
        while not self.stopped.is_set():
            began = time.time()
            completed = subprocess.run(submit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.done.append((began, time.time(), completed.returncode, completed.stdout))

    def stop(self) -> None:
        self.stopped.set()
        self.join()


def switched(cluster: Cluster) -> float:
    """The time at which `current` was switched on the first host that did."""
    look = ["stat", "--format=%Y", "/opt/deeplearning/current"]
    return min(float(nodes.execute(cluster.container(host), *look)) for host in HOSTS)


def active(cluster: Cluster) -> set[str]:
    targets = [nodes.execute(cluster.container(host), "readlink", "/opt/deeplearning/current") for host in HOSTS]
    return {os.path.basename(name.strip()) for name in targets}


def sealed(cluster: Cluster) -> list[str]:
    """When the active environment of each host was sealed."""
    look = ["stat", "--format=%y", "/opt/deeplearning/current/.deeplearning/sealed.json"]
    return [nodes.execute(cluster.container(host), *look) for host in HOSTS]


def test_every_job_sees_one_environment_while_stacks_change(cluster):
    upgrade = ("playbooks/upgrade_stack.yml", "-e", f"deeplearning_request={SECOND}", "-e", "assume_yes=true")
    canary = ("-e", "upgrade_canary=edge1", "-e", "upgrade_canary_user=analyst", "-e")
    command = "upgrade_canary_command='tfos-submit --memory 1g --wait 200 /home/analyst/look.py'"
    seals = {FIRST: sealed(cluster)}
    jobs = Jobs(cluster)
    jobs.start()
    moments = []
    try:
        for step, expected in (
            ((*upgrade, *canary, command), SECOND),
            (("playbooks/rollback.yml",), FIRST),
            (upgrade, SECOND),
        ):
            print(play(cluster, *step))
            assert active(cluster) == {ENVIRONMENTS[expected]}
            assert sealed(cluster) == seals.setdefault(expected, sealed(cluster)), "used again, not rebuilt"
            moments.append(switched(cluster))
            count = len(jobs.done)
            while len(jobs.done) < count + 2:  # the job that runs now, and one that begins after the switch
                assert jobs.is_alive()
                time.sleep(0.5)
    finally:
        jobs.stop()
    assert [output for _, _, status, output in jobs.done if status != 0] == []
    job_environments = [set(SEEN.findall(output)) for _, _, _, output in jobs.done]
    for pairs in job_environments:
        places = {place for place, _ in pairs}
        assert "driver" in places, pairs
        assert places & {"executor-data1", "executor-data2"}, pairs  # YARN decides on which of them
        assert len({name for _, name in pairs}) == 1, pairs
    for name in ENVIRONMENTS.values():  # both hosts worked with either
        assert {place for pairs in job_environments for place, environment in pairs if environment == name} == {
            "driver",
            "executor-data1",
            "executor-data2",
        }
    names = [next(iter(pairs))[1] for pairs in job_environments]
    assert set(names) == set(ENVIRONMENTS.values())
    across = [job for job in jobs.done if any(job[0] < moment < job[1] for moment in moments)]
    print(f"{len(names)} jobs, {len(across)} of them while `current` was switched: {names}")
    assert across, "no job ran while an environment was switched"
