"""Which hosts may leave YARN, which lines of its file of excluded nodes are ours, and what a refresh would do to others.

yarn_answers/*.json: captured from a ResourceManager of Hadoop 3.3.6 with two NodeManagers (tests/long/yarn_processes.py); names were replaced, and
fields that nothing reads are left out.
"""

import json
import os
import pwd
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ansible_programs
import host_modules
import pytest
import python_files
import yaml
from ansible.module_utils.hadoop_dl_host import mapr, yarn_cluster, yarn_exclude, yarn_nodes
from resource_manager import ANSWERS, gpu_node, serving, write_settings

from hadoop_dl.data import yarn_nodes as decisions
from hadoop_dl.data.yarn_nodes import Refused

REPOSITORY = Path(__file__).resolve().parents[2]
ROLE = REPOSITORY / "roles/node_maintenance"
SITE = b"# Hosts of the site\nretired1 retired2 # since May\n"


def node(name: str = "data1", state: str = "RUNNING", **values: Any) -> dict[str, Any]:
    base = {"containers": 0, "gpus": 0, "labels": [], "health": "", "excluded": False, "recorded": False, "had_gpus": 0}
    return {"name": name, "rack": "/r1", "state": state, "mine": name == "data1", "beside": False, **base, **values}


def yarn(*nodes: dict[str, Any], version: str = "3.3.6", running: int = 3, **values: Any) -> decisions.Yarn:
    numbers = {"": running, **values.pop("labels", {})}
    return decisions.read(
        {"version": version, "nodes": list(nodes), "running": numbers, "applications": [], "manager": None, **values}
    )


def role_variables() -> dict[str, Any]:
    files = [ROLE / part / "main.yml" for part in ("defaults", "vars")]
    return {name: value for file in files for name, value in yaml.safe_load(file.read_text(encoding="utf-8")).items()}


OURS = {"excluded": True, "recorded": True}


@pytest.mark.parametrize(
    "nodes",
    [
        [node()],
        [node(state="UNHEALTHY")],
        [node(**OURS)],  # killed before the refresh
        [node(state="DECOMMISSIONING", **OURS)],
        [node(state="DECOMMISSIONED", **OURS), node("data2", "DECOMMISSIONING", excluded=True)],  # no refresh any more
        [node(), node("data2", "DECOMMISSIONING", **OURS)],
        [node(), node("data2", "DECOMMISSIONED", excluded=True), node("data3", "LOST", excluded=True)],
    ],
)
def test_a_host_may_leave(nodes):
    assert decisions.drain_problem("data1", yarn(*nodes)) is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (yarn(node(), version="2.8.5"), "requires Hadoop 2.10 or later, but YARN has 2.8.5"),
        (yarn(node(), version="2.6.0-cdh5.16.2"), "requires Hadoop 2.10"),
        (yarn(node(excluded=True)), "excluded by the site, which also puts it back"),
        (yarn(node(state="DECOMMISSIONED")), "data1 is DECOMMISSIONED and excluded by the site"),
        (yarn(node(state="LOST")), "must run before it is drained, but YARN has it as LOST"),
        (yarn(node(), running=1), "Another NodeManager must run while data1 is away, but none would be left of 1"),
        (yarn(node(labels=["gpu"]), labels={"gpu": 1}), "Another NodeManager with the label gpu must run"),
        (yarn(node(), running=1, labels={"gpu": 2}), "Another NodeManager without a label must run"),
        (yarn(node(), node("data2", "DECOMMISSIONING", excluded=True)), "would reset the time limit of data2"),
        (yarn(node(), node("data2", excluded=True)), "would take data2 out of YARN, too"),
        (yarn(node(**OURS), node("data2", "DECOMMISSIONING")), "would reset the time limit of data2"),
    ],
)
def test_a_host_that_must_not_leave(found, words):
    assert words in str(decisions.drain_problem("data1", found))


@pytest.mark.parametrize("manager", ["cloudera_manager", "ambari"])
def test_a_manager_does_it_itself_and_the_run_goes_on_when_it_is_seen(manager):
    drain, back = decisions.drain_problem, decisions.return_problem
    assert "the NodeManager" in str(drain("data1", yarn(node(), manager=manager)))
    assert "Decommission. Then run the same command" in str(drain("data1", yarn(node(), manager=manager)))
    cluster = yarn(node(state="DECOMMISSIONED"), manager=manager)
    assert drain("data1", cluster) is None
    assert "Recommission, then Start. Then run the same command" in str(back("data1", cluster))
    assert back("data1", yarn(node(), manager=manager)) is None


def test_hosts_of_a_batch_leave_another_one_running():
    batch_node = node("data2", beside=True)
    assert decisions.drain_problem("data1", yarn(node(), batch_node, running=3)) is None
    assert "none would be left of 2" in str(decisions.drain_problem("data1", yarn(node(), batch_node, running=2)))
    other_node = node("data2", "DECOMMISSIONED", beside=True, **OURS)
    assert decisions.drain_problem("data1", yarn(node(), other_node, running=2)) is None
    labelled_node = node("data2", beside=True, labels=["gpu"])
    assert decisions.drain_problem("data1", yarn(node(), labelled_node, running=2, labels={"gpu": 1})) is None


def test_before_a_rollout_goes_on_a_host_that_it_left_out_counts_as_back():
    cluster = yarn(node(), node("data2", "DECOMMISSIONED", **OURS), running=1)
    assert decisions.drain_problem("data1", cluster, early=True) is None
    assert "none would be left of 1" in str(decisions.drain_problem("data1", cluster))
    site_drain = yarn(node(), node("data2", "DECOMMISSIONED", excluded=True), running=1)
    assert "none would be left of 1" in str(decisions.drain_problem("data1", site_drain, early=True))


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (yarn(), None),  # data1 has no NodeManager
        (yarn(node("data2", beside=True), running=9, racks=2), "one NodeManager of data1, but has none of that name"),
        (yarn(node(excluded=True), version="2.7.7", racks=1), None),
        (
            yarn(node(), running=1, racks=1),
            "Another NodeManager must run while data1 is away, but none would be left of 1",
        ),
        (yarn(node(), node("data2", rack="/r2", beside=True), racks=2), "data1 is of /r1 and data2 of /r2"),
        (yarn(node(), *(node(f"data{n}", beside=True) for n in (2, 3)), running=9, racks=2), None),
        (yarn(node(), node("data2", beside=True), running=9, racks=1), None),
        (
            yarn(node(), *(node(f"data{n}", beside=True) for n in (2, 3)), running=9, racks=1),
            "HDFS has replicas (3), because the topology has one rack, but data1 would with 2 others",
        ),
    ],
)
def test_a_batch_reboots_if_every_block_keeps_a_replica(monkeypatch, cluster, words):
    """A host that YARN has by another name than the inventory has an unknown rack."""
    together = ["data1", *(host.name for host in cluster.nodes if host.beside)]
    hostvars = {host: {} for host in together}
    answer = Wait(monkeypatch, cluster).run("rebootable", {"hostvars": hostvars}, together=together)
    assert "msg" not in answer if words is None else words in answer["msg"]


@pytest.mark.parametrize(("together", "refused"), [(["data1", "data2"], True), (["data1"], False)])
def test_hosts_reboot_together_only_if_a_resourcemanager_tells_their_racks(tmp_path, together, refused):
    variables = {**role_variables(), "node_maintenance_together": together}
    tasks = [{"ansible.builtin.include_tasks": str(ROLE / "tasks/together.yml")}]
    status, output = ansible_programs.play_tasks(tmp_path, tasks, {"hosts": {"data1": {}}, "vars": variables})
    assert (status, "because data1, data2 reboot together" in output) == ((2, True) if refused else (0, False)), output


def test_hosts_of_a_batch_are_of_one_rack():
    """HDFS has a replica of each block on another rack; the ResourceManager names racks as HDFS does, by the same script of the site."""
    nodes = [node("data2", beside=True), node("data3", rack="/r2")]
    assert decisions.drain_problem("data1", yarn(node(), *nodes)) is None
    distant_node = node("data4", rack="/r2", beside=True)
    text = str(decisions.drain_problem("data1", yarn(node(), *nodes, distant_node, running=4)))
    assert "data1 is of /r1 and data4 of /r2. Drain one host after the other (upgrade_batch), or rack by rack" in text


@pytest.mark.parametrize("nodes", [[], [node(), node("data1")]])
def test_a_host_that_yarn_does_not_know_once_is_refused(nodes):
    with pytest.raises(Refused, match="Set node_maintenance_node to its name"):
        decisions.drain_problem("data1", yarn(*nodes))


@pytest.mark.parametrize(
    "wrong",
    [
        *map(node, ("data1\n/etc", "-rf", "{{ lookup('pipe', 'id') }}")),
        *(node(state="GONE"), node(containers=-1), node(gpus="2")),
    ],
)
def test_an_answer_of_another_form_is_refused(wrong):
    with pytest.raises(Refused, match="must answer as Hadoop's REST API does"):
        yarn(wrong)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"state": "DECOMMISSIONED", "excluded": True}, "no ResourceManager in node_maintenance_resourcemanagers has"),
        ({"state": "RUNNING", "excluded": True}, None),  # the site has not refreshed yet
        ({"state": "LOST"}, "must run in YARN again, but YARN has it as LOST, and this project did not take it out"),
        ({"state": "UNHEALTHY", "health": "1/1 local-dirs bad"}, "YARN has it as UNHEALTHY (1/1 local-dirs bad)"),
        ({}, None),
    ],
)
def test_a_drain_whose_record_is_lost_does_not_end_as_if_the_host_were_back(values, words):
    problem = decisions.return_problem("data1", yarn(node(**values)))
    assert problem is None if words is None else words in str(problem)


def test_a_host_is_back_when_yarn_uses_it_with_the_gpus_that_it_had():
    def back(**values: Any) -> bool:
        return decisions.is_back(decisions.node_of("data1", yarn(node(**values))))

    assert back()
    assert back(gpus=2, had_gpus=2)
    assert not back(gpus=1, had_gpus=2)
    assert not back(state="UNHEALTHY")
    host = decisions.node_of("data1", yarn(node(gpus=1, had_gpus=2)))
    assert decisions.missing(host) == "it offers 1 of its 2 GPUs"


def test_the_line_of_a_wait_names_applications_users_and_the_time_left():
    applications = [
        {"id": f"application_1_{number}", "user": "an\x1b[31malyst", "name": "x" * 99, "containers": number % 2}
        for number in range(7)
    ]
    line = decisions.waiting("data1", yarn(node(containers=3), applications=applications), 3599.5)
    assert line.startswith("data1 waits for 3 containers of application_1_0 (")
    assert "no container here any more" in line
    assert line.endswith(", 2 more; 59 min left")
    assert line.isprintable()
    assert decisions.waiting("data1", yarn(node(containers=1)), 7).endswith(
        "1 container of applications that are not named; 7 s left"
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", set()),
        (SITE, {"retired1", "retired2"}),
        (b"a\tb\r\nc#d\n # e\n", {"a", "b", "c#d"}),  # as HostsFileReader: a comment begins a word
    ],
)
def test_the_file_is_read_as_hadoop_reads_it(data, expected):
    assert yarn_exclude.names(data) == expected


@pytest.mark.parametrize("before", [b"", SITE, SITE.rstrip(b"\n"), b"data10\n"])
def test_our_line_comes_and_goes_and_others_keep_their_bytes(before):
    after = yarn_exclude.with_name(before, "data1")
    assert yarn_exclude.names(after) == yarn_exclude.names(before) | {"data1"}
    assert yarn_exclude.without_name(after, "data1").rstrip(b"\n") == before.rstrip(b"\n")


class Site:
    """A ResourceManager's host in a directory."""

    def __init__(self, directory: Path) -> None:
        self.conf, self.file, self.record = directory / "conf", directory / "yarn.exclude", directory / "opt/etc/r.json"
        self.conf.mkdir()
        self.named(str(self.file))
        self.file.write_bytes(SITE)

    def named(self, value: str) -> None:
        write_settings(self.conf / "yarn-site.xml", {yarn_exclude.PROPERTY: value})

    def settle(self, state: str, node: str = "data1", **options: Any) -> dict[str, Any]:
        arguments = {"conf_dir": str(self.conf), "node": node, "state": state, "gpus": 2, "record": str(self.record)}
        return host_modules.run("yarn_manager", **{**arguments, **options})


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_line_is_recorded_before_it_is_written_and_forgotten_last(site):
    site.file.chmod(0o640)
    assert site.settle("excluded", _ansible_check_mode=True)["changed"]
    assert (site.file.read_bytes(), site.record.exists()) == (SITE, False)
    assert site.settle("excluded")["changed"]
    assert site.file.read_bytes() == SITE + b"data1\n"
    assert stat.S_IMODE(site.file.stat().st_mode) == 0o640
    assert json.loads(site.record.read_text(encoding="utf-8"))["nodes"]["data1"]["gpus"] == 2
    assert not site.settle("excluded")["changed"]
    assert site.settle("included")["changed"]
    assert (site.file.read_bytes(), site.record.exists()) == (SITE, True)
    assert site.settle("forgotten")["changed"]
    assert not site.record.exists()
    assert not site.settle("forgotten")["changed"]


def test_a_line_that_went_while_the_host_was_out_comes_again(site):
    site.settle("excluded")
    site.file.write_bytes(SITE)
    assert site.settle("excluded")["changed"]
    assert b"data1\n" in site.file.read_bytes()


def test_two_hosts_have_records_of_their_own(site):
    site.settle("excluded")
    site.settle("excluded", "data2")
    site.settle("included")
    site.settle("forgotten")
    assert site.file.read_bytes() == SITE + b"data2\n"
    assert list(json.loads(site.record.read_text(encoding="utf-8"))["nodes"]) == ["data2"]


def test_a_line_of_the_site_is_neither_taken_nor_removed(site):
    site.file.write_bytes(SITE + b"data1\n")
    assert "which the site excluded itself" in site.settle("excluded")["msg"]
    assert not site.settle("included")["changed"]
    assert site.file.read_bytes() == SITE + b"data1\n"


def test_a_line_that_the_site_changed_is_named(site):
    site.settle("excluded")
    site.file.write_bytes(b"data1 data7\n")
    assert "but the site changed it. Remove it there" in site.settle("included")["msg"]
    assert site.record.exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "must name a file in yarn.resourcemanager.nodes.exclude-path"),
        ("/nowhere/yarn.exclude", "must be a file of this host"),
        ("hdfs://nameservice/yarn.exclude", "must be a file of this host"),
        ("{directory}/hosts.xml", "is XML, which this project does not change"),
    ],
)
def test_a_file_that_this_project_cannot_change_is_refused(site, tmp_path, name, words):
    (tmp_path / "hosts.xml").write_text("<hosts/>", encoding="utf-8")
    site.named(name.format(directory=tmp_path))
    assert words in site.settle("excluded")["msg"]


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
NOBODY = pwd.getpwnam("nobody").pw_uid


@AS_ROOT
@pytest.mark.parametrize("kind", ["link", "directory", "yarn-site.xml"])
def test_root_adds_no_line_to_a_file_that_an_account_chose(site, tmp_path, kind):
    secret = tmp_path / "etc" / "shadow"
    secret.parent.mkdir()
    secret.write_text("root:a-secret\n", encoding="utf-8")
    link = tmp_path / "planted"
    if kind != "yarn-site.xml":
        link.symlink_to(secret if kind == "link" else secret.parent)
        os.lchown(link, NOBODY, -1)
    site.named(str({"directory": link / "shadow", "yarn-site.xml": secret}.get(kind, link)))
    if kind == "yarn-site.xml":
        os.chown(site.conf / "yarn-site.xml", NOBODY, -1)
    answer = site.settle("excluded")
    assert answer["failed"]
    assert re.search("link of another account|belongs to another account", answer["msg"])
    assert "a-secret" not in json.dumps(answer)
    assert secret.read_text(encoding="utf-8") == "root:a-secret\n"


@AS_ROOT
def test_links_of_root_and_of_the_files_own_account_are_followed_and_stay(site, tmp_path):
    os.chown(site.file, NOBODY, -1)
    for owner in (0, NOBODY):
        link = tmp_path / f"link{owner}"
        link.symlink_to(site.file)
        os.lchown(link, owner, -1)
        site.named(str(link))
        assert site.settle("excluded")["changed"]
        assert link.is_symlink()
        assert site.file.read_bytes() == SITE + b"data1\n"
        site.settle("included")
        site.settle("forgotten")


def test_a_diff_shows_the_line_of_this_project_and_no_other(site):
    assert site.settle("excluded")["diff"] == {
        "before_header": str(site.file),
        "after_header": str(site.file),
        "before": "",
        "after": "data1\n",
    }


def test_a_torn_record_is_refused(site):
    site.settle("excluded")
    site.record.write_text('{"nodes": ', encoding="utf-8")
    assert "Restore it from a backup" in site.settle("included")["msg"]


# What a ResourceManager answers: nodes.json has one that leaves with a container, one that runs, and a name that only the file has.


Ask = Callable[..., decisions.Yarn]


@pytest.fixture
def ask(site: Site, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What is read of a ResourceManager that answers with this function; more of the question."""

    def read(fetch: Callable[[str], str], **more: Any) -> decisions.Yarn:
        monkeypatch.setattr(yarn_cluster, "fetch", fetch)
        module = python_files.load(REPOSITORY / "plugins" / "modules" / "yarn_manager.py")
        question = {"conf_dir": str(site.conf), "names": ["data1"], "record": str(site.record), "drains": True, **more}
        return decisions.read(module.nodes(question, ["http://rm:8088"]))

    return read


def test_what_a_real_resourcemanager_answers_is_read(site, ask):
    def fetch(url: str) -> str:
        parts = {"/cluster/nodes": "nodes", "/cluster/info": "info", "/node/apps": "node_apps", "/cluster/apps": "apps"}
        (name,) = [name for part, name in parts.items() if part in url]
        return (ANSWERS / f"{name}.json").read_text(encoding="utf-8")

    site.file.write_bytes(b"retired1\ndata1\n")
    yarn_exclude.write_record(str(site.record), {"data1": {"gpus": 0}})
    answer = ask(fetch, applications=True, together=["data2.example.com", "data2"])
    assert [(host.name, host.rack) for host in answer.nodes if host.beside] == [("data2", "/default-rack")]
    assert [(host.name, host.state, host.recorded) for host in answer.nodes] == [
        ("data1", "DECOMMISSIONING", True),
        ("data2", "RUNNING", False),
        ("retired1", "DECOMMISSIONED", False),
    ]
    assert (answer.version, dict(answer.running)) == ("3.3.6", {"": 1})
    assert "(dr.who: nightly training)" in decisions.waiting("data1", answer, 60)
    assert decisions.drain_problem("data1", answer) is None


def test_a_drain_on_mapr_is_refused(tmp_path, ask, monkeypatch):
    (tmp_path / "mapr-clusters.conf").touch()
    monkeypatch.setattr(mapr, "CLUSTERS", str(tmp_path / "mapr-clusters.conf"))
    with pytest.raises(yarn_exclude.Unusable, match="but MapR's Warden runs the services here"):
        ask(lambda _url: "{}")


def test_hadoop_2_7_is_not_asked_for_states_that_it_does_not_know(ask):
    """hadoop27.json is recorded from 2.7.7: `refused` is its answer, with status 400, to DECOMMISSIONING, a state of Hadoop 2.8."""
    answers = json.loads((ANSWERS / "hadoop27.json").read_text(encoding="utf-8"))

    def fetch(url: str) -> str:
        if re.search("DECOMMISSIONING|SHUTDOWN", url):
            raise OSError(answers["refused"]["RemoteException"]["message"])
        return json.dumps(answers[url.rpartition("/")[2].partition("?")[0]])

    answer = ask(fetch, applications=False, together=[])
    assert [(host.name, host.state) for host in answer.nodes] == [("data1", "RUNNING"), ("retired1", "DECOMMISSIONED")]
    assert dict(answer.running) == {"": 1, "gpu": 1}
    assert "A drain requires Hadoop 2.10 or later, but YARN has 2.7.7." in str(decisions.drain_problem("data1", answer))
    assert decisions.return_problem("data1", answer) is None


def test_a_node_with_a_label_is_none_of_those_without():
    nodes = [{"state": "RUNNING"}, {"state": "RUNNING", "nodeLabels": ["gpu"]}, {"state": "LOST"}]
    assert yarn_nodes.running(nodes) == {"": 1, "gpu": 1}


@pytest.mark.parametrize(
    ("nodes", "kept"),
    [
        ([("data1", "DECOMMISSIONED", 9), ("data1", "RUNNING", 8), ("data2", "LOST", 1)], [1, 2]),
        ([("data1", "SHUTDOWN", 7), ("data1", "DECOMMISSIONED", 8)], [1]),
        ([("data1", "LOST", None), ("data1", "SHUTDOWN", None)], [0]),
        ([("data1", "RUNNING", 7), ("data1", "UNHEALTHY", 8)], [0, 1]),  # who knows which
        ([("data1.a", "LOST", 7), ("data1.b", "RUNNING", 8)], [0, 1]),
    ],
)
def test_a_node_of_an_earlier_port_does_not_count(nodes, kept):
    """A NodeManager whose address has the port 0, Hadoop's default, has another port after each start, and YARN a node of each."""
    answers = [{"nodeHostName": name, "state": state, "lastHealthUpdate": time} for name, state, time in nodes]
    assert yarn_nodes.current(answers) == [answers[number] for number in kept]


def test_gpus_of_a_node_are_those_that_yarn_counts():
    resources = [{"name": "vcores"}, {"name": "yarn.io/gpu", "value": 2}]
    assert yarn_nodes.gpus({"totalResource": {"resourceInformations": {"resourceInformation": resources}}}) == 2
    assert yarn_nodes.gpus({}) == 0
    assert yarn_nodes.gpus(gpu_node("data1", 3, free=2)) == 3  # 2.10.2 names no totalResource


@pytest.mark.parametrize(
    ("known", "own"),
    [
        (["data1", "data10"], ["data1"]),
        (["data1.example.com", "data2.example.com"], ["data1.example.com"]),
        (["10.0.0.1", "10.0.0.11"], ["10.0.0.1"]),
        (["data1.evil.lan", "data1.example.com"], ["data1.example.com"]),
        (["data1.evil.lan", "data1"], ["data1"]),
        (["data1.evil.lan", "data2.example.com"], []),  # its own has not registered yet
        (["data1.data.lan", "data2.data.lan"], ["data1.data.lan"]),  # masters are of another domain
        (["data1.data.lan", "data1.evil.lan"], ["data1.data.lan", "data1.evil.lan"]),  # drains and labels are refused
    ],
)
def test_a_nodemanager_of_another_domain_is_not_taken_for_a_host(known, own, monkeypatch):
    monkeypatch.setattr(yarn_nodes.socket, "getfqdn", lambda: "master1.example.com")
    nodes = [{"nodeHostName": name} for name in known]
    assert [row["nodeHostName"] for row in yarn_nodes.of_host(nodes, ["data1", "10.0.0.1"])] == own


@pytest.mark.parametrize("recorded_at", ["rm1", "rm2", None])
def test_the_record_of_any_resourcemanager_puts_a_host_back(site, tmp_path, recorded_at):
    """rm1 was rebuilt, or is the first one only since."""
    variables = {
        **role_variables(),
        "node_maintenance_state": "running",
        "node_maintenance_resourcemanagers": ["rm1", "rm2"],
        "node_maintenance_conf_dir": str(site.conf),
        "node_maintenance_start_command": "true",
        # Of each host its own: both are this machine.
        "__node_maintenance_record": f"{tmp_path}/{{{{ item | default(__node_maintenance_rm) }}}}/etc/record.json",
    }
    out = {"nodeHostName": "data1", "state": "DECOMMISSIONED"}
    answers = {"/nodes": {"nodes": {"node": [out]}}, "/info": {"clusterInfo": {"hadoopVersion": "3.3.6"}}}
    if recorded_at:
        site.settle("excluded", record=f"{tmp_path}/{recorded_at}/etc/record.json")
    else:
        site.file.write_bytes(b"data1\n")
    show = {"ansible.builtin.debug": {"msg": "{{ __node_maintenance.node }} by {{ __node_maintenance_rm }}"}}
    tasks = [{"ansible.builtin.include_tasks": str(ROLE / "tasks/preflight.yml")}, show]
    hosts = {"hosts": dict.fromkeys(("data1", "rm1", "rm2"), {}), "vars": variables}
    (tmp_path / "address").mkdir()
    (site.conf / "hdfs-site.xml").symlink_to(tmp_path / "address/yarn-site.xml")
    with serving(lambda path: answers[path[path.rindex("/") :]], tmp_path / "address"):
        status, output = ansible_programs.play_tasks(tmp_path, tasks, hosts, hosts="data1")
    if recorded_at:
        assert f"True}} by {recorded_at}" in output, output
    else:
        assert (status, "no ResourceManager in node_maintenance_resourcemanagers has a record" in output) == (
            2,
            True,
        ), output


# The action: a host module that answers from a list; nothing sleeps.


class Wait:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: decisions.Yarn | str) -> None:
        self.module = python_files.load(REPOSITORY / "plugins" / "action" / "yarn_node.py")
        self.answers, self.clock, self.lines = list(answers), 0.0, []
        monkeypatch.setattr(self.module, "time", SimpleNamespace(monotonic=lambda: self.clock, sleep=self.sleep))
        display = SimpleNamespace(display=self.lines.append, warning=self.lines.append)
        monkeypatch.setattr(self.module, "Display", lambda: display)

    def sleep(self, seconds: float) -> None:
        self.clock += seconds

    def run(
        self, state: str, variables: Mapping[str, Any] | None = None, check: bool = False, **arguments: Any
    ) -> dict[str, Any]:
        args = {"state": state, "conf_dir": "/c", **arguments}
        task = SimpleNamespace(async_val=0, check_mode=check, action="yarn_node", args=args)
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=""))
        action = self.module.ActionModule(task, connection, None, None, None, None)
        action.ask_again = self.answer
        return action.run(task_vars={"inventory_hostname": "data1", **(variables or {})})

    def answer(self, *_: Any, **asked: Any) -> dict[str, Any]:
        state = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(state, str):
            raise self.module.AnsibleActionFail(state)
        return {"yarn": decisions.typed.as_json(state)}


LEAVING, OUT = node(state="DECOMMISSIONING", containers=1, **OURS), node(state="DECOMMISSIONED", **OURS)


def test_a_wait_says_what_it_waits_for_once_and_ends_with_yarn(monkeypatch):
    wait = Wait(monkeypatch, *[yarn(LEAVING)] * 3, "the ResourceManager restarts", yarn(OUT))
    assert wait.run("drained", seconds=600)["node"]["state"] == "DECOMMISSIONED"
    assert len(wait.lines) == 1


def test_a_wait_has_a_limit(monkeypatch):
    wait = Wait(monkeypatch, yarn(LEAVING))
    assert "YARN must end the containers of data1 60 s after the refresh" in wait.run("drained", seconds=60)["msg"]
    assert wait.clock <= 60 + wait.module.GRACE + 1
    wait = Wait(monkeypatch, yarn(node(gpus=1, had_gpus=2, **OURS)))
    assert "must run again within 300 s, but it offers 1 of its 2 GPUs" in wait.run("running", seconds=300)["msg"]


def test_a_resourcemanager_that_stays_silent_ends_the_wait(monkeypatch):
    wait = Wait(monkeypatch, yarn(LEAVING), "no answer")
    assert wait.run("drained", seconds=3600)["msg"] == "no answer"
    assert wait.clock < wait.module.PATIENCE + 60


def test_check_mode_waits_for_nothing(monkeypatch):
    assert Wait(monkeypatch, yarn(node())).run("drained", check=True, seconds=3600)["node"]["name"] == "data1"


@pytest.mark.parametrize(
    ("state", "found", "refresh"),
    [
        ("drainable", node(), True),
        ("drainable", LEAVING, False),
        ("returnable", OUT, True),
        ("returnable", node(**OURS), False),
        ("returnable", node(), False),
    ],
)
def test_yarn_is_refreshed_only_if_the_node_is_not_there_yet(monkeypatch, state, found, refresh):
    assert Wait(monkeypatch, yarn(found)).run(state)["refresh"] is refresh


def test_a_host_does_not_return_while_the_site_decommissions_another(monkeypatch):
    """-g would change that node's time limit; without -g it would end at once."""
    wait = Wait(monkeypatch, yarn(OUT, node("data2", "DECOMMISSIONING", excluded=True)))
    assert "would reset the time limit of data2" in wait.run("returnable")["msg"]


APPLICATION = decisions.Application("application_1795501148427_0001", "ann", "training", 2)


@pytest.mark.parametrize(
    ("nodes", "applications", "occupants"),
    [
        ([], (), ["YARN has no NodeManager of this name"]),
        ([node()], (), []),
        ([node(containers=2)], (APPLICATION,), ["application_1795501148427_0001 (ann: training)"]),
        ([node(containers=2)], (), ["2 containers on data1, which does not name their applications"]),
    ],
)
def test_what_runs_on_a_host_is_named(monkeypatch, nodes, applications, occupants):
    answer = decisions.typed.read(
        decisions.Yarn, decisions.typed.as_json(yarn(*nodes)) | {"applications": decisions.typed.as_json(applications)}
    )
    result = Wait(monkeypatch, answer).run("occupied")
    assert (result["occupants"], result["changed"]) == (occupants, False)
