"""Node labels by playbooks/yarn_gpu.yml, and a drain, where YARN asks for Kerberos: with the ResourceManager's own login. A cluster of its own."""

import json
import re
from collections.abc import Iterator

import pytest
from demo_commands import play, run
from hadoop_clusters import STORE, WINDOW, as_daemon, changes, labelled
from waiting import until

from hadoop_dl_dev.demo import cli, cluster, nodes
from hadoop_dl_dev.demo.cluster import Cluster

CLUSTER = Cluster("tf2.15-py3-el9", name="secure", kerberos=True)
MASTER, CONF = CLUSTER.container("master1"), "/etc/hadoop/conf"


@pytest.fixture(scope="module", autouse=True)
def _cluster_of_its_own() -> Iterator[None]:
    try:
        cli.up(CLUSTER)
        # As a site before labels; the demo's own configuration has them enabled.
        nodes.execute(MASTER, "sed", "-i", "/yarn.node-labels.enabled/d", f"{CONF}/yarn-site.xml")
        play(CLUSTER, "playbooks/gpu.yml")
        play(CLUSTER, *WINDOW)
        yield
    finally:
        cluster.down(CLUSTER.name)


def yarn(key: str) -> dict[str, object]:
    """Node -> what YARN says of it. A NodeManager that has another port after a restart is there twice: the one that runs counts."""
    output = as_daemon(CLUSTER, "yarn", "curl --silent --negotiate --user : http://master1:8088/ws/v1/cluster/nodes")
    node_reports = sorted(json.loads(output)["nodes"].get("node", []), key=lambda node: node["state"] == "RUNNING")
    return {node["nodeHostName"]: node.get(key) for node in node_reports}


def files() -> str:
    return nodes.execute(MASTER, "sh", "-c", f"sha256sum {CONF}/*.xml")


def test_a_label_comes_survives_and_goes():
    before = files()
    with labelled(CLUSTER, "gpu", {"root.default": 100}):
        output = play(CLUSTER, *WINDOW, status=2)
        assert f"As the superuser of HDFS: hdfs dfs -mkdir -p hdfs://{STORE}" in " ".join(output.split())
        assert files() == before
        as_daemon(CLUSTER, "hdfs", f"hdfs dfs -mkdir -p {STORE} && hdfs dfs -chown yarn {STORE}")
        output = play(CLUSTER, *WINDOW)
        assert yarn("nodeLabels") == {"data1": None, "data2": ["gpu"]}, output
        assert changes(play(CLUSTER, *WINDOW)) == {"0"}
    play(CLUSTER, *WINDOW)
    assert files() == before
    assert run("docker", "exec", MASTER, "find", "/opt/deeplearning", "-path", "*/etc/*", "-type", "f") == ""
    assert as_daemon(CLUSTER, "hdfs", f"hdfs dfs -cat {STORE}/nodelabel.editlog").count("gpu") > 0, "it was kept there"


def test_a_host_leaves_and_comes_back():
    path = "/etc/hadoop/yarn.exclude"
    entry = f"<property><name>yarn.resourcemanager.nodes.exclude-path</name><value>{path}</value></property>"
    # A NodeManager tries a ResourceManager that restarted every 30 seconds.
    until(lambda: yarn("state") == {"data1": "RUNNING", "data2": "RUNNING"}, 120, "both must be registered")
    nodes.execute(MASTER, "sh", "-c", f"touch {path}; chown yarn {path}")
    nodes.execute(MASTER, "sed", "-i", f"s|</configuration>|{entry}\\n&|", f"{CONF}/yarn-site.xml")
    settings = {"node_maintenance_seconds": 60, "node_maintenance_start_command": "systemctl restart yarn-nodemanager"}
    command = ("playbooks/node_maintenance.yml", "--limit", "data1", "-e")
    play(CLUSTER, *command, json.dumps({**settings, "node_maintenance_state": "drained"}))
    assert yarn("state")["data2"] == "RUNNING"
    assert nodes.execute(MASTER, "cat", path) == "data1\n"
    output = play(CLUSTER, *command, json.dumps({**settings, "node_maintenance_state": "running"}))
    assert yarn("state") == {"data1": "RUNNING", "data2": "RUNNING"}, output
    assert nodes.execute(MASTER, "cat", path) == ""
    assert not re.search("yarn_labels|node_maintenance", nodes.execute(MASTER, "ls", "/opt/deeplearning/etc"))
