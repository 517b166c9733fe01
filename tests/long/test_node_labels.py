"""Node labels by the roles yarn_gpu and node_maintenance on Hadoop 3.3.6, 3.1.1 and 2.10.2: a real ResourceManager, two real NodeManagers and jobs."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ansible_programs
import pytest
import yaml
from ansible.module_utils.hadoop_dl_host.yarn_cluster import entries
from waiting import until
from yarn_processes import NAMES, NODES, Cluster

from hadoop_dl.data import yarn_work
from hadoop_dl_dev.demo import images

REPOSITORY = Path(__file__).resolve().parents[2]
SITE_FILES = ("yarn-site.xml", "capacity-scheduler.xml", "resource-types.xml")


class Operator:
    """Who runs the tasks of playbooks/layers/yarn_gpu.yml and of the removal, with records of the test's own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.conf = cluster, cluster.conf("rm")
        self.store = cluster.directory / "labels"
        self.record = cluster.directory / "opt/etc/yarn_labels.json"
        self.before = self.files()

    def files(self) -> dict[str, bytes | None]:
        paths = [self.conf / name for name in SITE_FILES]
        return {path.name: path.read_bytes() if path.exists() else None for path in paths}

    def play(self, hosts: str, *tasks: dict[str, Any], **variables: Any) -> str:
        """What Ansible says; the hosts of the group are one batch."""
        play = {"hosts": hosts, "gather_facts": False, "any_errors_fatal": True, "tasks": list(tasks)}
        path = self.cluster.directory / "play.yml"
        path.write_text(yaml.safe_dump([play]), encoding="utf-8")
        settings = {"__node_maintenance_rm": "master1", **variables}
        completed = ansible_programs.run(
            "ansible-playbook",
            *("-i", self.cluster.inventory(**settings), path),
            timeout=900,
            ANSIBLE_ROLES_PATH=str(REPOSITORY / "roles"),
        )
        self.status = completed.returncode
        return completed.stdout + completed.stderr

    def configures(self, state: str = "present") -> str:
        """The ResourceManager's part."""
        labels = {"label": "gpu", "store": f"file://{self.store}", "shares": {"root.default": 0, "root.vision": 100}}
        labels["unlimited"] = list(
            yarn_work.unlimited(labels["shares"], {"yarn.scheduler.capacity.root.vision.capacity": "0"})
        )
        store_task = {"yarn_labels": {"state": "stored", "store": labels["store"], **self.admin()}}
        request = {"conf_dir": str(self.conf), "services": ["resourcemanager"], "devices": "auto", "discovery": ""}
        request |= {"isolation": {}, "labels": labels, "health": False}
        files = "{{ request | yarn_gpu_settings(false) }}" if state == "present" else {}
        settings = {"file_keys": {"component": "yarn_gpu", "files": files, "root": str(self.record.parents[1])}}
        restart = {"command": f"{self.cluster.directory}/restart"}
        output = self.play("masters", *[store_task] * (state == "present"), settings, restart, request=request)
        assert self.status == 0, output
        until(lambda: list(self.cluster.states().values()) == ["RUNNING"] * 2, 120, "NodeManagers must register again")
        return output

    def admin(self) -> dict[str, str]:
        parameters = {"conf_dir": str(self.conf), "account": "root", "program": str(self.cluster.directory / "yarn")}
        return {**parameters, "record": str(self.record)}

    def labels(self, state: str = "present", **hosts: str) -> str:
        """hosts: their labels, as the plan has them."""
        plans = {name: {"yarn_gpu": {"services": ["nodemanager"], "label": hosts.get(name, "")}} for name in NODES}
        task = {"yarn_labels": {"state": state, **self.admin()}, "delegate_to": "master1", "run_once": True}
        return self.play("data_nodes", task, plans=plans, plan="{{ plans[inventory_hostname] }}")

    def has(self) -> dict[str, list[str]]:
        """What YARN says: host -> labels."""
        nodes = self.cluster.ask("/nodes")["nodes"]["node"]  # the site has an excluded host, too
        return {NAMES[row["nodeHostName"]]: row.get("nodeLabels", []) for row in nodes if row["nodeHostName"] in NAMES}


@pytest.fixture(scope="module", params=["el9", "el7-hadoop31", "el7-hadoop2"], ids=images.hadoop)
def operator(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Operator]:
    with Cluster(tmp_path_factory.mktemp("yarn"), request.param, default="100", vision="0").running() as cluster:
        operator = Operator(cluster)
        operator.configures()
        yield operator


def test_a_host_gets_its_label_once_and_jobs_without_it_go_elsewhere(operator):
    output = operator.labels(data2="gpu")
    assert (operator.status, operator.has()) == (0, {"data1": [], "data2": ["gpu"]}), output
    assert "changed=1 " in output
    assert operator.record.stat().st_mode & 0o777 == 0o600
    assert "changed=0 " in operator.labels(data2="gpu")
    plain = operator.cluster.submit("without a label")
    # Its share of other hosts is 0 %, so without maximum-applications YARN would refuse it.
    training = operator.cluster.submit("training", queue="vision", **{"am-container-node-label-expression": "gpu"})
    assert (plain.host, training.host) == ("data1", "data2")
    plain.finish()
    training.finish()


def test_a_label_survives_a_restart_of_yarn(operator):
    operator.labels(data2="gpu")
    subprocess.run([str(operator.cluster.directory / "restart")], check=True)
    until(lambda: list(operator.cluster.states().values()) == ["RUNNING"] * 2, 120, "NodeManagers must register again")
    assert operator.has() == {"data1": [], "data2": ["gpu"]}


def test_a_label_of_the_site_is_neither_changed_nor_taken_away(operator):
    operator.labels(data2="gpu")
    yarn = [str(operator.cluster.directory / "yarn"), "rmadmin"]
    environment = {**os.environ, "HADOOP_CONF_DIR": str(operator.conf)}
    for arguments in (["-addToClusterNodeLabels", "fast"], ["-replaceLabelsOnNode", f"{NODES['data1']}=fast"]):
        subprocess.run([*yarn, *arguments], check=True, env=environment)
    output = " ".join(operator.labels(data1="gpu", data2="gpu").split())
    assert operator.status != 0
    assert f"but {NODES['data1']} has the label fast, which this project did not set. Nothing was changed." in output
    operator.labels(data2="")
    assert operator.has() == {"data1": ["fast"], "data2": []}
    assert not operator.record.exists()
    subprocess.run([*yarn, "-removeFromClusterNodeLabels", "fast"], check=True, env=environment)


def test_the_removal_takes_every_label_and_setting_away(operator):
    operator.labels(data2="gpu")
    output = operator.labels("absent")
    assert (operator.status, operator.has()) == (0, {"data1": [], "data2": []}), output
    assert not entries(operator.cluster.ask("/get-node-labels"), None, "nodeLabelInfo")  # 2.10.2 answers null
    assert "changed=0 " in operator.labels("absent")
    operator.configures("absent")
    assert operator.files() == operator.before


def test_a_directory_that_cannot_be_made_is_refused_before_a_change(operator):
    store = operator.cluster.directory / "yarn.exclude" / "labels"
    task = {"yarn_labels": {"state": "stored", "store": f"file://{store}", **operator.admin()}}
    output = " ".join(operator.play("masters", task).split())
    assert operator.status != 0
    assert f"hdfs dfs -mkdir -p file://{store}` must work as root, but:" in output
    assert "As the superuser of HDFS: hdfs dfs -mkdir -p" in output
