"""Node labels by playbooks/yarn_gpu.yml, and a drain, where YARN asks for Kerberos: with the ResourceManager's own login. A cluster of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml
from demo_commands import run
from hadoop_clusters import play
from yarn_processes import until

from hadoop_dl_dev.demo import cli, cluster, nodes
from hadoop_dl_dev.demo.cluster import REALM, Cluster

CLUSTER = Cluster("tf2.15-py3-el9", name="secure", kerberos=True)
MASTER, CONF, KEYTABS = CLUSTER.container("master1"), "/etc/hadoop/conf", "/etc/security/keytabs"
STORE, RECORD = "/yarn/node-labels", "/opt/deeplearning/etc/yarn_labels.json"
WINDOW = ("playbooks/yarn_gpu.yml", "-e", "yarn_gpu_restart_allowed=true")


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


def as_daemon(name: str, command: str) -> str:
    """The command on master1 with the login of one of Hadoop's accounts there."""
    login = f"kinit -k -t {KEYTABS}/{name}.keytab {name}/master1@{REALM}"
    return nodes.execute(MASTER, "sh", "-c", f"export KRB5CCNAME=/tmp/{name}; {login} && {command}", user=name)


def yarn(key: str) -> dict[str, object]:
    """Node -> what YARN says of it. A NodeManager that has another port after a restart is there twice: the one that runs counts."""
    said = as_daemon("yarn", "curl --silent --negotiate --user : http://master1:8088/ws/v1/cluster/nodes")
    found = sorted(json.loads(said)["nodes"].get("node", []), key=lambda node: node["state"] == "RUNNING")
    return {node["nodeHostName"]: node.get(key) for node in found}


def files() -> str:
    return nodes.execute(MASTER, "sh", "-c", f"sha256sum {CONF}/*.xml")


@pytest.fixture
def labelled() -> Iterator[None]:
    """The site gives data2 the label, and data1 none."""
    variables = {"yarn_gpu_node_label": "gpu", "yarn_gpu_node_label_queues": {"root.default": 100}}
    written = {"group_vars/data_nodes.yml": variables, "group_vars/masters.yml": variables}
    written["host_vars/data1.yml"] = {"yarn_gpu_node_label": ""}
    paths = []
    for name, content in written.items():
        paths.append(CLUSTER.inventory / name)
        paths[-1].parent.mkdir(exist_ok=True)
        paths[-1].write_text(yaml.safe_dump(content), encoding="utf-8")
    yield
    for path in paths:
        path.unlink(missing_ok=True)


def test_a_label_comes_survives_and_goes(labelled: None) -> None:
    before = files()
    said = run(".venv/bin/ansible-playbook", "-i", str(CLUSTER.inventory), *WINDOW, status=2)
    assert f"As the superuser of HDFS: hdfs dfs -mkdir -p hdfs://{STORE}" in " ".join(said.split())
    assert files() == before
    as_daemon("hdfs", f"hdfs dfs -mkdir -p {STORE} && hdfs dfs -chown yarn {STORE}")
    said = play(CLUSTER, *WINDOW)
    assert yarn("nodeLabels") == {"data1": None, "data2": ["gpu"]}, said
    assert not re.search(r"changed=[1-9]", play(CLUSTER, *WINDOW))
    for path in ("group_vars/data_nodes.yml", "group_vars/masters.yml", "host_vars/data1.yml"):
        (CLUSTER.inventory / path).unlink()
    play(CLUSTER, *WINDOW)
    assert files() == before
    assert run("docker", "exec", MASTER, "ls", "/opt/deeplearning/etc").split() == ["yarn_gpu.json"]
    assert as_daemon("hdfs", f"hdfs dfs -cat {STORE}/nodelabel.editlog").count("gpu") > 0, "it was kept there"


def test_a_host_leaves_and_comes_back() -> None:
    excluded = "/etc/hadoop/yarn.exclude"
    added = f"<property><name>yarn.resourcemanager.nodes.exclude-path</name><value>{excluded}</value></property>"
    # A NodeManager tries a ResourceManager that restarted every 30 seconds.
    until(lambda: yarn("state") == {"data1": "RUNNING", "data2": "RUNNING"}, 120, "both must be registered")
    nodes.execute(MASTER, "sh", "-c", f"touch {excluded}; chown yarn {excluded}")
    nodes.execute(MASTER, "sed", "-i", f"s|</configuration>|{added}\\n&|", f"{CONF}/yarn-site.xml")
    given = {"node_maintenance_seconds": 60, "node_maintenance_start_command": "systemctl restart yarn-nodemanager"}
    command = ("playbooks/node_maintenance.yml", "--limit", "data1", "-e")
    play(CLUSTER, *command, json.dumps({**given, "node_maintenance_state": "drained"}))
    assert yarn("state")["data2"] == "RUNNING"
    assert nodes.execute(MASTER, "cat", excluded) == "data1\n"
    said = play(CLUSTER, *command, json.dumps({**given, "node_maintenance_state": "running"}))
    assert yarn("state") == {"data1": "RUNNING", "data2": "RUNNING"}, said
    assert nodes.execute(MASTER, "cat", excluded) == ""
    assert not re.search("yarn_labels|node_maintenance", nodes.execute(MASTER, "ls", "/opt/deeplearning/etc"))
