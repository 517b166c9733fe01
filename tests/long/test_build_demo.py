"""A cluster with its own TensorFlow: edge1 builds the wheel with a real bazel, site.yml installs it on all hosts, and a job on YARN uses it.

A cluster of its own, removed at the end. The sources are the stand-in's (demo/tensorflow), whose library reads HDFS through the cluster's libhdfs.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from demo_commands import nodes_alone, play, run

from hadoop_dl_dev.demo import build_site, images, nodes
from hadoop_dl_dev.demo.cluster import Cluster

RELEASE = build_site.ONE
CLUSTER = Cluster(build_site.BASE, name="buildtf")
# What each executor answers: where it runs, what its TensorFlow was compiled with, a product, the root of HDFS.
JOB = """
import json, socket
from pyspark import SparkContext

def answer(_):
    import tensorflow as tf
    product = tf.Session().run(tf.matmul(tf.constant([[2.0, 1.0]]), tf.constant([[3.0], [4.0]]))).tolist()
    return [[socket.gethostname(), tf.GIT_VERSION, tf.python.FEATURES, product, tf.gfile.ListDirectory("hdfs://master1:8020/")]]

context = SparkContext()
found = context.parallelize(range(2), 2).mapPartitions(answer).collect()
with open("/tmp/answers.json", "w") as target:
    json.dump(found, target)
"""


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    with nodes_alone(CLUSTER):
        run("scripts/demo", "build-host", "--name", CLUSTER.name)
        play(CLUSTER, "playbooks/build_tensorflow.yml")
        play(CLUSTER, "site.yml")
        yield


def record() -> dict[str, Any]:
    path = CLUSTER.inventory / "stacks/built" / f"{RELEASE.stack}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_job_on_yarn_runs_with_it_and_reads_hdfs():
    edge = CLUSTER.container("edge1")
    job = images.CACHE / "clusters" / CLUSTER.name / "job.py"
    job.write_text(JOB, encoding="utf-8")
    run("docker", "cp", str(job), f"{edge}:/tmp/job.py")
    submit = "cd /tmp && /opt/deeplearning/bin/tfos-submit --executors 2 --memory 1g --timeout 300 /tmp/job.py"
    run("docker", "exec", "--user", "analyst", edge, "sh", "-c", submit)
    answers = json.loads(nodes.execute(edge, "cat", "/tmp/answers.json"))
    assert {answer[0] for answer in answers} <= set(CLUSTER.data_hosts)
    for _, version, features, product, root in answers:
        assert version == f"v{RELEASE.version}-0-gfixture"
        assert {"hdfs", "kafka"} <= set(features)
        assert set(record()["cpu_features"]) & {"avx", "avx2", "sse4_1", "sse4_2"} <= set(features)
        assert product == [[10.0]]
        assert {"user", "tmp"} <= set(root)
