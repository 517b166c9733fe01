"""yarn_manager and labels: which labels it gives and takes away, in which order, and what it leaves to the site. tests/long/test_node_labels.py asks a real YARN."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import host_modules
import pytest
from ansible.module_utils.hadoop_dl_host import yarn_admin
from resource_manager import serving, write_settings

# As RMAdminCLI of 3.3.6: a node takes only a label that the cluster has; one that goes from the cluster goes from its nodes.
ADMIN = """
import json, pathlib, sys
place = pathlib.Path(__file__).with_name("state.json")
state, (_, command, given) = json.loads(place.read_text()), sys.argv[1:]
state["commands"].append([command, given])
if command == state.get("broken"):
    place.write_text(json.dumps(state))
    sys.exit("replaceLabelsOnNode: Call From master1 failed on connection exception")
if command == "-addToClusterNodeLabels":
    state["labels"] += [one.partition("(")[0] for one in given.split(",")]
for node, _, label in (pair.partition("=") for pair in given.split(" ") if command == "-replaceLabelsOnNode"):
    if label and label not in state["labels"]:
        sys.exit("Not all labels being replaced contained by known label collections")
    state["nodes"][node] = label
if command == "-removeFromClusterNodeLabels":
    if given in state["of_queues"]:
        sys.exit(f"Cannot remove label={given}, because queue=root.vision is using this label.")
    state["labels"].remove(given)
place.write_text(json.dumps(state))
"""


class Yarn:
    def __init__(self, directory: Path) -> None:
        self.directory, self.record = directory, directory / "opt/etc/yarn_labels.json"
        self.state = {"labels": [], "nodes": {"data1": "", "data2": ""}, "commands": [], "of_queues": []}
        program = directory / "yarn"
        program.write_text(f"#!{sys.executable}\n{ADMIN}", encoding="utf-8")
        program.chmod(0o755)

    @property
    def state(self) -> Any:
        return json.loads((self.directory / "state.json").read_text(encoding="utf-8"))

    @state.setter
    def state(self, value: Any) -> None:
        (self.directory / "state.json").write_text(json.dumps(value), encoding="utf-8")

    def has(self, **values: Any) -> None:
        self.state = {**self.state, **values}

    def run(
        self, state: str = "present", *, check: bool = False, account: str = "root", **labels: str
    ) -> dict[str, Any]:
        nodes = [{"host": host, "names": [host], "label": label} for host, label in labels.items()]
        arguments = {
            "state": f"labels_{state}",
            "hosts": nodes,
            "conf_dir": str(self.directory),
            "record": str(self.record),
        }
        arguments |= {"patience": 1, "account": account, "program": str(self.directory / "yarn")}
        return host_modules.run("yarn_manager", **arguments, _ansible_check_mode=check)


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[Yarn]:
    manager = Yarn(tmp_path)

    def answer(path: str) -> dict[str, Any] | None:
        state = manager.state
        if "/nodes" in path:
            if state.get("later"):
                manager.state = {**state, "nodes": state["later"], "later": None}
            rows = [(name, {"nodeLabels": [label]} if label else {}) for name, label in state["nodes"].items()]
            return {"nodes": {"node": [{"nodeHostName": name, "state": "RUNNING", **labels} for name, labels in rows]}}
        if "/get-node-labels" in path:
            rows = [{"name": label, "exclusivity": "true"} for label in state["labels"]]
            return {"nodeLabelInfo": rows} if rows else state.get("empty", {})
        return {"clusterInfo": {"hadoopVersion": "3.3.6"}}

    with serving(answer, tmp_path):
        yield manager


def test_a_batch_gets_its_labels_by_two_commands_and_a_second_run_by_none(yarn):
    preview = yarn.run(data1="gpu", data2="gpu", check=True)
    assert (preview["changed"], preview["diff"]["after"]) == (True, "data1 gpu\ndata2 gpu\n")
    assert (yarn.state["commands"], yarn.record.exists()) == ([], False)
    assert yarn.run(data1="gpu", data2="gpu")["changed"]
    commands = [["-addToClusterNodeLabels", "gpu(exclusive=true)"], ["-replaceLabelsOnNode", "data1=gpu data2=gpu"]]
    assert yarn.state["commands"] == commands
    assert not yarn.run(data1="gpu", data2="gpu")["changed"]
    assert yarn.state["commands"] == commands


def test_hadoop_2_has_no_labels_as_null(yarn):
    yarn.has(empty=None)
    assert yarn.run(data1="gpu")["changed"]
    assert (yarn.state["labels"], yarn.state["nodes"]["data1"]) == (["gpu"], "gpu")


def test_a_site_without_labels_is_not_even_asked_and_nobody_logs_in(yarn):
    secure = {"hadoop.security.authentication": "kerberos", yarn_admin.PRINCIPAL: "rm", yarn_admin.KEYTAB: "/nowhere"}
    write_settings(yarn.directory / "yarn-site.xml", secure)
    assert not yarn.run(data1="")["changed"]
    assert not yarn.run("absent", data1="")["changed"]
    assert not yarn.run("none")["changed"]
    assert not (yarn.directory / "opt").exists()
    assert "the keytab /nowhere is required" in yarn.run(data1="gpu")["msg"]


def test_a_host_that_wants_none_any_more_loses_only_what_it_got_here(yarn):
    yarn.has(labels=["fast"], nodes={"data1": "fast", "data2": ""})
    yarn.run(data2="gpu")
    yarn.run(data1="", data2="")
    assert yarn.state["nodes"] == {"data1": "fast", "data2": ""}
    assert yarn.state["labels"] == ["fast"]
    assert not yarn.record.exists()


def test_another_label_of_the_site_is_refused_before_a_change(yarn):
    yarn.has(labels=["fast"], nodes={"data1": "fast", "data2": ""})
    answer = yarn.run(data1="gpu", data2="gpu")
    assert "but data1 has the label fast, which this project did not set. Nothing was changed." in answer["msg"]
    assert yarn.state["commands"] == []


def test_another_name_of_the_label_replaces_the_earlier_one(yarn):
    yarn.run(data1="gpu", data2="gpu")
    yarn.run(data1="v100", data2="v100")
    assert (yarn.state["labels"], yarn.state["nodes"]) == (["v100"], {"data1": "v100", "data2": "v100"})


def test_the_removal_keeps_a_label_that_a_queue_of_the_site_names_and_says_so(yarn):
    yarn.run(data1="gpu")
    yarn.has(of_queues=["gpu"])
    answer = yarn.run("absent", data1="")
    assert "YARN keeps the label gpu, which no host of this project has any more" in answer["warnings"][0]
    assert yarn.state["nodes"] == {"data1": "", "data2": ""}
    assert not yarn.record.exists()


def test_before_a_resourcemanager_forgets_labels_every_host_loses_the_one_it_got_here(yarn):
    yarn.has(labels=["fast"], nodes={"data1": "fast", "data2": ""})
    assert not yarn.run("none")["changed"]
    yarn.run(data2="gpu")
    assert yarn.run("none")["changed"]
    assert (yarn.state["labels"], yarn.state["nodes"]) == (["fast"], {"data1": "fast", "data2": ""})
    assert not yarn.record.exists()


def test_a_node_whose_name_is_none_of_a_host_becomes_no_part_of_a_command(yarn):
    yarn.has(nodes={"data1": "", "data1.x data2=gpu y": ""})
    yarn.run(data1="gpu")
    assert yarn.state["commands"][-1] == ["-replaceLabelsOnNode", "data1=gpu"]


def test_of_two_nodes_with_a_hosts_name_none_gets_the_label(yarn):
    yarn.has(nodes={"data1.data.lan": "", "data1.evil.lan": ""})
    answer = yarn.run(data1="gpu")
    assert "one node of data1, but has data1.data.lan and data1.evil.lan. No label was changed." in answer["msg"]
    assert yarn.state["commands"] == []


def test_a_nodemanager_that_has_just_started_is_waited_for(yarn):
    yarn.has(nodes={"data1": ""}, later={"data1": "", "data2": ""})
    assert yarn.run(data1="gpu", data2="gpu")["changed"]
    assert yarn.state["nodes"] == {"data1": "gpu", "data2": "gpu"}


def test_a_host_that_yarn_does_not_know_is_named_and_nothing_changes(yarn):
    answer = yarn.run(data1="gpu", data9="gpu")
    assert "YARN must have a node of data9, but has none after 1 s. No label was changed." in answer["msg"]
    assert yarn.state["commands"] == []


def test_a_host_that_yarn_has_forgotten_loses_its_label(yarn):
    yarn.run(data1="gpu")
    yarn.has(nodes={"data2": ""})
    yarn.run("absent", data1="")
    assert ["-replaceLabelsOnNode", "data1="] in yarn.state["commands"]
    assert not yarn.record.exists()


def test_a_run_that_failed_on_the_way_is_resumed_and_its_label_is_known_as_ours(yarn):
    yarn.has(broken="-replaceLabelsOnNode")
    answer = yarn.run(data1="gpu")
    assert (
        "`yarn rmadmin -replaceLabelsOnNode data1=gpu` must work as root, but: replaceLabelsOnNode: Call"
        in answer["msg"]
    )
    yarn.has(broken=None)
    assert yarn.run(data1="gpu")["changed"]
    yarn.run("absent", data1="")
    assert (yarn.state["labels"], yarn.record.exists()) == ([], False)


def test_an_account_that_the_host_lacks_is_named(yarn):
    assert "the account nowhere must exist on this host" in yarn.run(data1="gpu", account="nowhere")["msg"]


def test_the_login_is_the_resourcemanagers_own(monkeypatch):
    secure = {"hadoop.security.authentication": "kerberos"}
    settings = {yarn_admin.PRINCIPAL: "rm/_HOST@EXAMPLE.COM", yarn_admin.KEYTAB: "/etc/security/rm.keytab"}
    monkeypatch.setattr(yarn_admin.socket, "getfqdn", lambda: "Master1.example.com")
    assert yarn_admin.own_login(settings) == ("", "")
    expected = ("rm/master1.example.com@EXAMPLE.COM", "/etc/security/rm.keytab")
    assert yarn_admin.own_login({**secure, **settings}) == expected
    assert yarn_admin.own_login(secure) == ("", "")  # Cloudera Manager keeps it in a directory of its own
