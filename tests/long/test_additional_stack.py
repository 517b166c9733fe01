"""A second stack beside the active one, with Kerberos: a job names it, site.yml repairs it, and removes it once it is no longer requested.

A cluster of its own, from which a host leaves at the end and comes back.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator

import hadoop_clusters
import pytest
from demo_commands import play, run
from waiting import until

from hadoop_dl_dev.demo import kerberos, services
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.images import REPOSITORY

CLUSTER = Cluster("tf2.15-cpu-py3-el9", name="beside", kerberos=True)
STACK, VERSION = "tf2.21-tfos-cpu-py311", "2.21.0"  # of TensorFlow; active is 2.15.1
HOSTS = {"edge1", *CLUSTER.data_hosts}
JOB = """
from pyspark import SparkContext
def version(_):
    import tensorflow
    return tensorflow.__version__
print("ON " + " ".join(SparkContext().parallelize(range(2), 2).map(version).collect()))
"""


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with hadoop_clusters.of_its_own(CLUSTER):
        yield


def site(**variables: object) -> set[str]:
    """The hosts that site.yml changed."""
    output = play(CLUSTER, "site.yml", "-e", json.dumps(variables))
    return set(re.findall(r"^(\S+) +: ok=\d+ +changed=[1-9]", output, re.MULTILINE))


def on(host: str, *command: str) -> str:
    return run("docker", "exec", CLUSTER.container(host), *command)


@pytest.fixture
def beside() -> Iterator[dict[str, object]]:
    """The variables that request the second stack, which is installed."""
    variables: dict[str, object] = {"deeplearning_additional_stacks": [STACK]}
    assert site(**variables) >= HOSTS
    yield variables
    assert site() >= HOSTS, "it is not requested any more"
    for host in HOSTS:
        assert STACK not in on(host, "ls", "/opt/deeplearning/envs")


def test_a_job_runs_in_an_additional_stack_and_the_active_one_stays(beside):
    def analyst(text: str) -> list[str]:
        return on("edge1", "su", "-", "analyst", "-c", text).splitlines()

    rows = [line.split() for line in analyst("deeplearning list")]
    assert ["*", CLUSTER.stack] in [row[:2] for row in rows]
    assert STACK in [row[0] for row in rows]
    on("data1", "sh", "-c", f"rm /opt/deeplearning/envs/{STACK}-*.1/lib/python*/site-packages/tensorflow/__init__.py")
    assert site(**beside) == {"data1"}, "it is repaired there, and nothing else is left to do"
    analyst(f"printf %s {shlex.quote(JOB)} > version.py")
    kerberos.log_in(CLUSTER)
    output = analyst(f"tfos-submit --stack {STACK.partition('-')[0]} --memory 2g --timeout 300 version.py")
    assert f"ON {VERSION} {VERSION}" in output
    # TensorFlow 2.21 knows no HDFS: Spark feeds a table in Parquet, and the model's guesses are one.
    run("docker", "cp", str(REPOSITORY / "examples" / "digits"), f"{CLUSTER.container('edge1')}:/home/analyst/digits")
    on("edge1", "chown", "-R", "analyst:", "/home/analyst/digits")
    output = analyst(f"cd digits && DEEPLEARNING_ENVIRONMENT={STACK.partition('-')[0]} sh run.sh parquet")
    assert json.loads(next(line for line in output if line.startswith("RESULT "))[7:])["accuracy"] >= 0.95


def test_hosts_without_an_environment_get_it_by_yarn():
    kerberos.log_in(CLUSTER)
    hadoop_clusters.train_without_environments(CLUSTER)


def test_dl4j_trains_on_the_cluster(tmp_path):
    """From Maven Central, or MAVEN_CENTRAL_URL. The digits are in HDFS since the cluster's first job."""
    example = shutil.copytree(REPOSITORY / "examples" / "dl4j", tmp_path / "dl4j")
    run("sh", str(example / "fetch.sh"))
    run("docker", "cp", str(example), f"{CLUSTER.container('edge1')}:/home/analyst/dl4j")
    on("edge1", "chown", "-R", "analyst:", "/home/analyst/dl4j")
    kerberos.log_in(CLUSTER)
    output = on("edge1", "su", "-", "analyst", "-c", "cd dl4j && sh run.sh")
    assert 'RESULT {"accuracy": 0.9' in output


def states() -> dict[str, str]:
    """A NodeManager that has another port after a restart is there twice: the one that runs counts."""
    rows = services.get(CLUSTER, ":8088/ws/v1/cluster/nodes")["nodes"]["node"]
    return {row["nodeHostName"]: row["state"] for row in sorted(rows, key=lambda row: row["state"] == "RUNNING")}


def test_a_host_leaves_yarn_and_comes_back_by_the_resourcemanagers_own_login():
    site_file, path = "/etc/hadoop/conf/yarn-site.xml", "/etc/hadoop/yarn.exclude"
    entry = f"<property><name>yarn.resourcemanager.nodes.exclude-path</name><value>{path}</value></property>"
    on("master1", "sh", "-c", f"touch {path}; chown yarn {path}")
    on("master1", "sed", "-i", f"s|</configuration>|{entry}\\n&|", site_file)
    settings = {"node_maintenance_seconds": 60, "node_maintenance_start_command": "systemctl restart yarn-nodemanager"}
    command = ("playbooks/node_maintenance.yml", "--limit", "data1", "-e")
    all_run = dict.fromkeys(CLUSTER.data_hosts, "RUNNING")
    until(lambda: states() == all_run, 120, "both must be registered")
    play(CLUSTER, *command, json.dumps({**settings, "node_maintenance_state": "drained"}))
    assert states()["data2"] == "RUNNING"
    assert on("master1", "cat", path) == "data1\n"
    output = play(CLUSTER, *command, json.dumps({**settings, "node_maintenance_state": "running"}))
    assert (states(), on("master1", "cat", path)) == (all_run, ""), output
    on("master1", "test", "!", "-e", "/opt/deeplearning/etc/node_maintenance.json")
