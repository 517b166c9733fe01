"""When a DataNode may reboot. yarn_answers/name_nodes.json: what the NameNodes of Hadoop 2.10.2 and 3.3.6 said (tests/long/hdfs_processes.py) with three
DataNodes and one file, 6 s after one was killed, and when it was dead; only the keys that are read."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import python_files
import yaml
from ansible.errors import AnsibleActionFail
from ansible.module_utils.hadoop_dl_host import name_nodes, yarn_cluster
from host_modules import PLUGINS

from hadoop_dl.data import hdfs_health

RECORDED = json.loads((Path(__file__).parent / "yarn_answers" / "name_nodes.json").read_text(encoding="utf-8"))
WHOLE = {
    "live": 3,
    "silent": 0,
    "missing": 0,
    "corrupt": 0,
    "under_replicated": 0,
    "safe_mode": False,
    "stale_after": 30,
    "own_reports": True,
}
guarded_reboot = python_files.load(PLUGINS / "action" / "guarded_reboot.py")


@pytest.mark.parametrize(
    ("configuration", "addresses"),
    [
        ({"fs.defaultFS": "hdfs://nn1:8020"}, [["http://nn1:9870", "http://nn1:50070"]]),
        ({"fs.defaultFS": "hdfs://nn1", "dfs.namenode.http-address": "0.0.0.0:50070"}, [["http://nn1:50070"]]),
        ({"dfs.namenode.http-address": "nn2:9870", "fs.defaultFS": "hdfs://nn1"}, [["http://nn2:9870"]]),
        ({"dfs.http.policy": "HTTPS_ONLY", "dfs.namenode.https-address": "nn1:9871"}, [["https://nn1:9871"]]),
        (
            {
                "fs.defaultFS": "hdfs://ns1",
                "dfs.nameservices": "ns1,remote",
                "dfs.internal.nameservices": "ns1",
                "dfs.ha.namenodes.ns1": "a, b",
                "dfs.namenode.http-address.ns1.a": "nn1:9870",
                "dfs.namenode.rpc-address.ns1.b": "nn2:8020",
            },
            [["http://nn1:9870", "http://nn2:9870", "http://nn2:50070"]],
        ),
        (
            {
                "dfs.nameservices": "ns1,ns2",
                "dfs.namenode.http-address.ns1": "nn1:9870",
                "dfs.namenode.http-address.ns2": "nn2:9870",
            },
            [["http://nn1:9870"], ["http://nn2:9870"]],
        ),
        ({"fs.defaultFS": "s3a://bucket"}, [[]]),
    ],
)
def test_where_the_namenodes_of_each_part_are(configuration: dict[str, str], addresses: list[list[str]]) -> None:
    assert name_nodes.addresses(configuration) == addresses


def test_which_daemons_run_is_read_from_the_processes(tmp_path: Path) -> None:
    mains = {daemon: main.decode() for main, daemon in name_nodes.MAINS.items()}
    lines = [
        ["/usr/lib/jvm/bin/java", "-Dproc_namenode", "-cp", "x"],
        ["java", "-cp", "x", mains["DataNode"]],
        ["java", "-version"],
    ]
    lines += [["grep", mains["ZooKeeper"]], ["java", f"a{mains['JournalNode']}"]]
    for number, words in enumerate(lines):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "cmdline").write_bytes("\0".join(words).encode() + b"\0")
    assert name_nodes.daemons(str(tmp_path)) == ["DataNode", "NameNode"]


@pytest.mark.parametrize("version", RECORDED)
@pytest.mark.parametrize(
    ("moment", "change"),
    [("whole", {}), ("silent", {"silent": 1, "own_reports": False}), ("dead", {"live": 2, "under_replicated": 1})],
)
def test_what_a_real_namenode_answers_is_read(version, moment, change, monkeypatch):
    """All DataNodes of the recording have an address of this host. NumStaleDataNodes is not asked: it is up to five minutes old."""

    def fetch(url):
        beans = RECORDED[version][moment]["beans"]
        cached = [beans[0], {**beans[1], "UnderReplicatedBlocks": 99}]  # the second one is that of ten seconds ago
        text = json.dumps({"beans": beans[2:] if "NameNodeInfo" in url else cached})
        return text.replace('"active"', '"standby"') if "nn1" in url else text

    monkeypatch.setattr(yarn_cluster, "fetch", fetch)
    configuration = {"dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "a,b", name_nodes.STALE: "5000"}
    configuration |= {
        f"dfs.namenode.http-address.ns.{name}": f"nn{number}:9870" for number, name in ((1, "a"), (2, "b"))
    }
    assert name_nodes.health(configuration) == {**WHOLE, **change, "stale_after": 5}
    with pytest.raises(name_nodes.Silent, match="http://nn1:9870: it is standby"):
        name_nodes.health({"dfs.namenode.http-address": "nn1:9870"})


def test_a_dead_datanode_in_maintenance_counts_as_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """HDFS does not count its replicas as lacking, although they may be the others of a block (HdfsDataNodeAdminGuide)."""

    def fetch(url: str) -> str:
        beans = RECORDED["3.3.6"]["whole"]["beans"]
        state = {**beans[0], "NumInMaintenanceDeadDataNodes": 1}
        return json.dumps({"beans": beans[2:] if "NameNodeInfo" in url else [state, beans[1]]})

    monkeypatch.setattr(yarn_cluster, "fetch", fetch)
    health = name_nodes.health({"dfs.namenode.http-address": "nn1:9870"})
    assert (health["live"], health["silent"]) == (4, 1)
    answer = hdfs_health.read({"daemons": ["DataNode"], "hdfs": health, "silent": ""})
    assert "1 of 4 DataNodes do not report" in str(hdfs_health.problem(answer, 0, 0))


def test_only_a_rollout_in_batches_reboots_several_hosts_together() -> None:
    """site.yml has no batches, so nothing could check that the hosts which reboot together are of one rack."""
    playbooks = PLUGINS.parent / "playbooks"
    for_all = yaml.safe_load((playbooks / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    assert "nvidia_driver_reboot_batch" not in for_all
    plays = yaml.safe_load((playbooks / "layers" / "upgrade.yml").read_text(encoding="utf-8"))
    assert ["nvidia_driver_reboot_batch" in play.get("vars", {}) for play in plays] == [True, True, False]


def test_which_datanode_is_that_of_this_host():
    assert name_nodes.is_local("127.0.0.1:9866")
    assert name_nodes.is_local("[::1]:9866")
    assert not any(name_nodes.is_local(address) for address in ("192.0.2.1:9866", ":9866", "", "no host:1"))


@pytest.mark.parametrize(
    "answer", ["[]", "{}", '{"beans": []}', '{"beans": [{"tag.HAState": "active", "FSState": 1}]}', "<html>"]
)
def test_an_answer_of_another_form_is_none(answer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yarn_cluster, "fetch", lambda _url: answer)
    with pytest.raises(name_nodes.Silent, match="http://nn1:9870: "):
        name_nodes.health({"dfs.namenode.http-address": "nn1:9870"})


def said(*daemons: str, because: str = "", **change: Any) -> dict[str, Any]:
    return {
        "daemons": list(daemons),
        "hdfs": {} if because else {**WHOLE, "stale_after": 0, **change},
        "silent": because,
    }


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (said(), None),
        (said(silent=1), None),  # of this run
        (said(silent=2), "2 of 3 DataNodes do not report"),
        (said(missing=2), None),
        (said(missing=3), "3 blocks are missing, 0 corrupt and 0 under-replicated"),
        (said(corrupt=3), "3 corrupt"),
        (said(under_replicated=3), "3 under-replicated"),
        (said(safe_mode=True), "it is in safe mode"),
        (said(because="connection refused"), "no active NameNode answers (connection refused)"),
    ],
)
def test_hdfs_must_be_whole_but_for_the_blocks_that_the_site_accepts(answer: dict[str, Any], words: str | None) -> None:
    reason = hdfs_health.problem(hdfs_health.read(answer), 2, 1)
    assert reason == words if words is None else words in str(reason)


class Reboot(guarded_reboot.ActionModule):  # type: ignore[misc]  # of a plugin
    """The action on a host that gives these answers, the last one again and again."""

    def __init__(self, state: str, answers: Sequence[dict[str, Any]], **args: Any) -> None:
        self.args = {"state": state, "conf_dir": "/c", "masters": [], "seconds": 1, "blocks": 0, "at_once": 1, **args}
        self.variables = {"inventory_hostname": "data1"}
        self.answers, self.asked, self.reboots = list(answers), [], 0

    checking = False

    def ask_again(self, module: str, *_args: Any, **args: Any) -> dict[str, Any]:
        self.asked.append(args["hdfs"])
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def plugin(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        assert name == "ansible.builtin.reboot"
        self.reboots += 1
        return {}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_reboot, "POLL", 0.01)


def test_a_datanode_reboots_when_hdfs_is_whole_and_the_run_goes_on_when_it_is_again() -> None:
    lacking, away = said("DataNode", under_replicated=4), said("DataNode", live=3, silent=1)
    action = Reboot(
        "rebooted",
        [
            lacking,
            said("DataNode"),
            said(),
            away,
            said("DataNode", live=2),
            said("DataNode", own_reports=False),
            said("DataNode"),
        ],
    )
    action.act()
    assert (action.reboots, len(action.asked)) == (1, 7)


@pytest.mark.parametrize(
    ("state", "answers", "words", "reboots"),
    [
        ("rebooted", [said("DataNode", under_replicated=4)], "whole before data1 reboots, but after 1 s 0 blocks are missing", 0),
        ("rebooted", [said("DataNode"), said()], "but after 1 s no DataNode runs there. Start the DataNodes", 1),
        ("rebooted", [said("DataNode"), said("DataNode", live=2)], "2 DataNodes report, but there were 3. Start", 1),
        ("rebooted", [said("DataNode"), said("DataNode", own_reports=False)], "its DataNode does not report", 1),
        ("checked", [said("DataNode", missing=1)], "whole before data1 reboots, but 1 blocks are missing", 0),
        ("checked", [said("DataNode", because="refused")], "no active NameNode answers (refused)", 0),
        ("checked", [said("JournalNode", "ZooKeeper")], "data1 has a JournalNode and a ZooKeeper, so its reboot concerns", 0),
        ("rebooted", [said("DataNode", live="3")], "data1: HDFS must answer as Hadoop does, but has", 0),
    ],
)  # fmt: skip
def test_what_stops_a_reboot(state: str, answers: list[dict[str, Any]], words: str, reboots: int) -> None:
    action = Reboot(state, answers)
    with pytest.raises(AnsibleActionFail) as refusal:
        action.act()
    assert words in str(refusal.value)
    assert action.reboots == reboots


def test_hosts_that_nothing_is_asked_of() -> None:
    lacking = said("DataNode", under_replicated=4)
    for answer, args in ((said(), {}), (lacking, {"seconds": 0}), (said("NameNode"), {"masters": ["data1"]})):
        action = Reboot("rebooted", [answer], **args)
        action.act()
        assert (action.reboots, action.asked) == (1, ["never" if args.get("seconds") == 0 else "datanode"])
    action = Reboot("checked", [lacking])  # before the rollout they may be on their way
    action.act()
    assert action.reboots == 0
