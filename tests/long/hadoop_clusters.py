"""A demo cluster of another Hadoop than the usual one, and what is asked of each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from demo_commands import run

from hadoop_dl_dev.demo import cli, cluster, images, nodes, tour


def of_its_own(found: cluster.Cluster) -> Iterator[None]:
    """After the job that Spark feeds; removed at the end."""
    try:
        assert tour.run_all(found, cli.up) == 0
        yield
    finally:
        cluster.down(found.name)


def play(found: cluster.Cluster, *arguments: str) -> str:
    return run(".venv/bin/ansible-playbook", "-i", str(found.inventory), *arguments)


def run_e2e(found: cluster.Cluster, name: str) -> None:
    """tests/e2e/test_NAME.py on this cluster."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"tests/e2e/test_{name}.py"]
    given = {**os.environ, "E2E_CLUSTER": found.name, "E2E_STACK": found.stack}
    assert subprocess.run(command, cwd=images.REPOSITORY, env=given, check=False).returncode == 0


def check_versions(found: cluster.Cluster) -> None:
    edge = found.container("edge1")
    assert nodes.execute(edge, "hadoop", "version").startswith(f"Hadoop {found.hadoop}")
    assert 'version "1.8.' in nodes.execute(edge, "sh", "-c", "java -version 2>&1")


ENVIRONMENTS, ASIDE = "/opt/deeplearning/envs", "/opt/deeplearning/aside"
TRAIN = """
exec 2>&1; set -e; cd digits; home=hdfs:///user/analyst
train=$(tfos-submit --local choose.py tensorflow)
tfos-submit OPTIONS --deploy-mode MODE --memory 2g --timeout 600 --py-files digits.py,job.py,storage.py --result result.json \
    "$train" --data $home/digits --output $home/trained-MODE --input-mode tensorflow --num-gpus 0 --minimum-accuracy 0.95 --result result.json
"""


def train(found: cluster.Cluster, mode: str, options: str = "") -> str:
    """What was said while TensorFlow read the digits from HDFS. The driver is on the edge node, or on a data node."""
    script = TRAIN.replace("OPTIONS", options).replace("MODE", mode)
    said = nodes.execute(found.container("edge1"), "su", "-", "analyst", "-c", script, check=False)
    assert 'RESULT {"accuracy": 0.9' in said, said
    return said


def train_without_environments(found: cluster.Cluster) -> None:
    """Executors whose hosts have no environment get it by YARN."""
    hosts = [found.container(host) for host in found.data_hosts]
    for host in hosts:
        nodes.execute(host, "mv", ENVIRONMENTS, ASIDE)
    try:
        for mode in ("client", "cluster"):
            said = train(found, mode, "--archive $home/envs")
            assert ("; later jobs find it there" in said) is (mode == "client")
    finally:
        for host in hosts:
            nodes.execute(host, "mv", ASIDE, ENVIRONMENTS)
