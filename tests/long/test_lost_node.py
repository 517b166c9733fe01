"""A data node dies in the middle of a training: tfos-submit --attempts goes on from the last checkpoint. Clusters of their own, removed at the end."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import hadoop_clusters
import pytest
from demo_commands import run
from waiting import until

from hadoop_dl_dev.demo import nodes, services
from hadoop_dl_dev.demo.cluster import Cluster

# On this machine the epochs take minutes. With three data nodes the second attempt has room for an executor on each of two.
CLUSTERS = {
    "train_tf1.py --epochs 900": Cluster("tf1.15-py27-el7", data_nodes=3, name="lost-tf1"),
    "train_tf2.py --epochs 400": Cluster("tf2.15-cpu-py3-el9", data_nodes=3, name="lost-tf2"),
}
TRAIN = """
exec 2>&1; cd digits
tfos-submit --attempts 3 --executors 2 --per-node 1 --wait 200 --timeout 1800 --py-files digits.py,job.py,storage.py \
    SCRIPT --data hdfs:///user/analyst/digits --output hdfs:///user/analyst/lost --input-mode tensorflow --num-gpus 0 \
    --minimum-accuracy 0.95
"""


@pytest.fixture(scope="module", params=CLUSTERS)
def training(request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, str]]:
    with hadoop_clusters.of_its_own(CLUSTERS[request.param]):
        yield CLUSTERS[request.param], request.param


def as_analyst(cluster: Cluster, script: str) -> list[str]:
    return ["docker", "exec", cluster.container("edge1"), "su", "-", "analyst", "-c", script]


def test_the_steps_go_on_from_the_last_checkpoint(training: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, script = training
    log = tmp_path / "log"
    with log.open("w") as sink:
        process = subprocess.Popen(as_analyst(cluster, TRAIN.replace("SCRIPT", script)), stdout=sink)
        # The list of checkpoints is written last: what it does not name yet is none.
        saved = as_analyst(cluster, "hdfs dfs -cat 'lost/*/checkpoint' || true")
        first = until(
            lambda: re.search(r'path: "\S*ckpt-([1-9]\d*)"', run(*saved)), 900, "a checkpoint must be written"
        )
        hadoop_clusters.lose_an_executor(cluster)
        assert process.wait(3000) == 0, log.read_text()
    text = log.read_text()
    assert "attempt 1 of 3 was lost, so the job is submitted again: " in text
    assert 'RESULT {"accuracy": 0.9' in text
    applications = services.get(cluster, ":8088/ws/v1/cluster/apps?user=analyst")["apps"]["app"]
    last = max(application["id"] for application in applications)  # Spark 3.0 prints none
    logs = nodes.execute(*as_analyst(cluster, f"tfos-submit logs {last} 2>&1")[2:])
    begin = re.findall(r"begins after \S*?(?:step |ckpt-)(\d+)", logs)
    assert int(begin[0]) >= int(first[1]), logs
