"""Who holds GPUs and does nothing with them: the host's part, YARN's part, and what the report makes of the two.

Cells of nvidia-smi as in captures of an L40S (595.80) and an H100 with MIG (590.48): github.com/utkuozdemir/nvidia_gpu_exporter, internal/captures.
Paths of cgroups: yarn.nodemanager.linux-container-executor.cgroups.hierarchy is /hadoop-yarn (yarn-default.xml of 3.3.6), with the container below
it (CGroupsHandlerImpl), and below that Docker's (--cgroup-parent, DockerLinuxContainerRuntime).
"""

import json
import time
from pathlib import Path
from typing import Any

import gpu_check_hosts
import pytest
import report_reader
from ansible.module_utils.hadoop_dl_host import gpu_use as host_gpu_use
from gpu_check.host import Host
from gpu_check.questions import Fail
from resource_manager import application, gpu_node, gpus, serving
from trees import write

from hadoop_dl.data.report_answers import Asked, asked_of
from hadoop_dl.hosts import gpu_use, report_page, report_text
from hadoop_dl.plan.model import Host as PlanHost
from hadoop_dl.plan.model import host_of
from hadoop_dl_dev import report_sample

APPLICATION = "application_1795503116011_0001"
CONTAINER = "container_1795503116011_0001_01_000002"
LATER = CONTAINER.replace("_1795503116011", "_e17_1795503116011")  # after restarts of the ResourceManager
NOW = report_sample.NOW


@pytest.mark.parametrize(
    ("cgroup", "environment", "expected"),
    [
        (f"11:devices:/hadoop-yarn/{CONTAINER}\n1:name=systemd:/system.slice/hadoop-yarn.service\n", "", APPLICATION),
        (f"4:cpu,cpuacct:/hadoop-yarn/{LATER}\n", "", APPLICATION),
        (f"4:cpu,cpuacct:/hadoop-yarn/{CONTAINER}/{'4f' * 32}\n", "", APPLICATION),
        ("0::/system.slice/hadoop-yarn.service\n", f"A=1\0CONTAINER_ID={LATER}\0B=2\0", APPLICATION),
        (f"4:cpu:/hadoop-yarn/{CONTAINER}\n", f"CONTAINER_ID={CONTAINER.replace('_0001_', '_0009_')}\0", APPLICATION),
        ("0::/user.slice/user-1000.slice\n", f"X=CONTAINER_ID={CONTAINER}\0X={CONTAINER}\0", None),
        (f"4:cpu:/x{CONTAINER}\n5:cpu:/{CONTAINER}x\n", "", None),
        (None, None, None),  # it has ended
    ],
    ids=["v1", "epoch", "docker", "environment", "kernel first", "no variable", "no such name", "ended"],
)
def test_a_process_belongs_to_the_application_of_its_container(cgroup, environment, expected, tmp_path):
    texts = {"/proc/7/cgroup": cgroup, "/proc/7/environ": environment}
    write(tmp_path, {path: text for path, text in texts.items() if text is not None})
    assert host_gpu_use.application_of(Host(str(tmp_path)), "7") == expected


def machine(root: Path, loads: str, processes: str, gpus: int = 2, status: int = 0) -> Host:
    """A host whose process 21180 is in CONTAINER, and 21181 in none."""
    answers = {
        "nvidia-smi --query-gpu=uuid,utilization.gpu": (0, loads),
        "nvidia-smi --query-compute-apps=gpu_uuid,pid": (status, processes),
    }
    files = {"/proc/21180/cgroup": f"11:devices:/hadoop-yarn/{CONTAINER}\n", "/proc/21181/cgroup": "0::/init.scope\n"}
    return gpu_check_hosts.host(root, gpus=gpus, answers=answers, files=files)


@pytest.mark.parametrize(
    ("loads", "processes", "expected"),
    [
        ("GPU-0, 97 %\nGPU-1, 0 %\n", "GPU-0, 21180\n", {APPLICATION: 1}),
        ("GPU-0, 97 %\nGPU-1, 3 %\n", "GPU-0, 21180\nGPU-1, 21180\nGPU-1, 21180\n", {APPLICATION: 2}),
        ("GPU-0, 0 %\nGPU-1, 0 %\n", "GPU-0, 21180\n", {}),  # it has memory there and computes nothing
        ("GPU-0, [N/A]\nGPU-1, [N/A]\n", "GPU-0, 21180\n", {APPLICATION: 1}),  # MIG
        ("GPU-0, 97 %\nGPU-1, 0 %\n", "GPU-0, 21181\n", {None: 1}),
        ("GPU-0, 97 %\nGPU-1, 0 %\n", "", {None: 1}),  # such as a vGPU's neighbour, or a process that has just ended
    ],
)
def test_a_gpu_is_busy_if_a_process_computes_on_it(loads, processes, expected, tmp_path):
    found = report_reader.use(PASSED, lambda: machine(tmp_path, loads, processes))
    assert {use["application"]: use["gpus"] for use in found} == expected


PASSED = [{"name": "driver_runs", "outcome": "PASS", "message": ""}]
FAILED = [{"name": "driver_runs", "outcome": "FAIL", "message": ""}]


@pytest.mark.parametrize(
    ("loads", "processes", "status"),
    [
        ("GPU-0, [GPU is lost]\nGPU-1, 0 %\n", "", 0),
        ("GPU-0, 0 %\n", "", 0),  # of two GPUs
        ("GPU-0, 0 %\nGPU-1, 0 %\n", "GPU-0, [Insufficient Permissions]\n", 0),
        ("GPU-0, 0 %\nGPU-1, 0 %\n", "No devices were found\n", 6),
    ],
)
def test_an_odd_answer_of_nvidia_smi_is_no_idle_gpu(loads, processes, status, tmp_path):
    host = machine(tmp_path, loads, processes, status=status)
    with pytest.raises((Fail, ValueError)):
        host_gpu_use.busy(host)
    assert report_reader.use(PASSED, lambda: host) is None


def test_a_driver_that_does_not_answer_is_not_asked_and_a_host_that_shows_no_gpu_cannot_tell():
    """YARN names only nodes with GPUs: a card that fell off the bus is no idle one."""
    assert report_reader.use(FAILED, None) is None
    assert report_reader.use(None, None) is None


def test_processes_that_cannot_be_read_in_time_do_not_hold_the_report(monkeypatch):
    monkeypatch.setattr(report_reader, "USE_TIMEOUT", 0.3)
    start = time.monotonic()
    assert report_reader.use(PASSED, lambda: time.sleep(60)) is None
    assert time.monotonic() - start < 30


def containers(path: str) -> Any:
    """Of Hadoop 3.3.6, as far as it is read."""
    if path.endswith("/nodes"):
        nodes = [gpu_node("data1", 2, 0), gpu_node("edge1", 0)]
        return {"nodes": {"node": [{**node, "nodeHTTPAddress": f"{node['nodeHostName']}:8042"} for node in nodes]}}
    if path.endswith("/appattempts"):
        return {"appAttempts": {"appAttempt": [{"id": 1, "appAttemptId": "appattempt_1795503116011_0001_000001"}]}}
    master = {"containerId": CONTAINER.replace("02", "01"), "nodeHttpAddress": "http://edge1:8042"}
    return {"container": [master, {"containerId": CONTAINER, "nodeHttpAddress": "http://data1:8042"}]}


def test_yarn_names_the_running_applications_that_hold_gpus(tmp_path):
    apps = [
        application(1, "RUNNING", user="anna", queue="root.vision", resourceInfo=gpus(2)),
        application(2, "RUNNING", resourceInfo=gpus(0)),
        application(3, "RUNNING", resourceInfo=None),  # of another user, with yarn.acl.enable
    ]
    asked: list[str] = []

    def answer(path: str) -> Any:
        asked.append(path)
        return {"apps": {"app": apps}} if "?" in path else containers(path)

    with serving(answer, tmp_path):
        found, problem = host_gpu_use.holders([str(tmp_path / "none"), str(tmp_path)])
    expected = {"id": APPLICATION, "user": "anna", "queue": "root.vision", "gpus": 2, "nodes": ["data1"]}
    assert (found, problem) == ([expected], None)
    assert len(asked) == 4
    assert asked_of({"holders": found}).holders[0].nodes == ("data1",)


def test_a_node_with_a_name_that_no_host_has_makes_the_nodes_unknown(tmp_path):
    def answer(path: str) -> Any:
        apps = {"apps": {"app": [application(1, "RUNNING", resourceInfo=gpus(1))]}}
        return apps if "?" in path else json.loads(json.dumps(containers(path)).replace("data1", "d\u00e4ta1"))

    with serving(answer, tmp_path):
        found, _ = host_gpu_use.holders([str(tmp_path)])
    assert asked_of({"holders": found}).holders[0].nodes == ()


def test_a_slow_manager_is_left_before_the_report_kills_who_asks_it(tmp_path, monkeypatch):
    monkeypatch.setattr(host_gpu_use, "SECONDS", -1)
    apps = {"apps": {"app": [application(1, "RUNNING", resourceInfo=gpus(1))]}}
    with serving(lambda path: apps if "?" in path else containers(path), tmp_path):
        found, problem = host_gpu_use.holders([str(tmp_path)])
    assert (found, "no list of all applications within" in problem) == (None, True)


def test_a_manager_that_does_not_answer_in_yarns_form_is_the_reason(tmp_path):
    with serving(lambda path: {"apps": {"app": ["x"]}}, tmp_path):
        found, problem = host_gpu_use.holders([str(tmp_path)])
    assert found is None
    assert problem.endswith("apps is no list of mappings")
    assert host_gpu_use.holders([str(tmp_path / "none")]) == (None, None)


def holder(number: int, held: int, *nodes: str, user: str = "anna") -> dict[str, Any]:
    name = f"application_1795503116011_{number:04d}"
    return {"id": name, "user": user, "queue": "default", "gpus": held, "nodes": list(nodes)}


def site(holders: list[dict[str, Any]], **busy: Any) -> tuple[list[PlanHost], dict[str, Asked]]:
    """A master with YARN's list, and data nodes with what they answered."""
    hosts = [host_of("master1", ("masters",), {}, None), *(host_of(n, ("data_nodes",), {}, None) for n in busy)]
    answers = {name: asked_of({"busy": answer}) for name, answer in busy.items()}
    return hosts, {**answers, "master1": asked_of({"busy": [], "holders": holders})}


def rows(holders: list[dict[str, Any]], earlier: dict[str, int] | None = None, **busy: Any) -> dict[str, Any]:
    found = gpu_use.applications(*site(holders, **busy), earlier or {}, NOW)
    return {row["id"][-4:]: (row["busy"], row["idle_since"]) for row in found}


def uses(**applications: int) -> list[dict[str, Any]]:
    names = {"none": None, "one": APPLICATION, "two": APPLICATION.replace("0001", "0002")}
    return [{"application": names[name], "gpus": count} for name, count in applications.items()]


def test_most_idle_gpus_come_first_and_busy_ones_are_summed_over_hosts():
    found = rows([holder(1, 3, "data1", "data2"), holder(2, 4, "data2")], data1=uses(one=1), data2=uses(one=2, two=1))
    assert list(found.items()) == [("0002", (1, None)), ("0001", (3, None))]


def test_an_application_is_idle_since_the_first_report_that_saw_none_of_its_gpus_compute():
    first = rows([holder(1, 2, "data1.example.com")], data1=[])
    assert first == {"0001": (0, "2026-11-22T13:00:00Z")}
    assert rows([holder(1, 2, "data1")], {APPLICATION: NOW - 7200}, data1=[]) == {"0001": (0, "2026-11-22T11:00:00Z")}
    assert rows([holder(1, 2, "data1")], {APPLICATION: NOW - 7200}, data1=uses(one=1)) == {"0001": (1, None)}


@pytest.mark.parametrize("answer", [None, uses(none=1)], ids=["no answer", "a process of no container"])
def test_a_host_whose_gpus_nobody_knows_makes_none_of_its_applications_idle(answer):
    holders = [holder(1, 2, "data1", "data2"), holder(2, 1, "data2"), holder(3, 1), holder(4, 1, "data9")]
    found = rows(holders, data1=answer, data2=[])
    assert {name: since is not None for name, (_, since) in found.items()} == {
        **{"0001": False, "0002": True, "0003": False, "0004": False}
    }


def test_only_yarns_masters_say_what_yarn_gave():
    hosts, answers = site([])
    hosts.append(host_of("data1", ("data_nodes",), {}, None))
    answers["data1"] = asked_of({"busy": [], "holders": [holder(1, 2, "data1")]})
    assert gpu_use.applications(hosts, answers, {}, NOW) == []


def test_a_site_with_gpus_under_yarn_is_told_why_there_is_no_list():
    hosts = [host_of("master1", ("masters",), {"yarn_gpu": True}, None)]
    answers = {"master1": asked_of({"yarn_problem": "http://master1:8088: it is no mapping"})}
    (sentence,) = gpu_use.unanswered(hosts, answers)
    assert sentence.endswith("http://master1:8088: it is no mapping")
    assert gpu_use.unanswered([host_of("master1", ("masters",), {}, None)], answers) == []
    assert gpu_use.unanswered(hosts, {"master1": asked_of({"holders": []})}) == []


def test_the_earlier_report_is_that_of_the_same_inventory(tmp_path):
    row = {"id": APPLICATION, "idle_since": "2026-11-22T11:00:00Z"}
    content = {"inventory": ["hosts"], "applications": [row, {"id": "x", "idle_since": None}]}
    path = tmp_path / "report.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert gpu_use.idle_before(tmp_path, ["hosts"]) == {APPLICATION: NOW - 7200}
    assert gpu_use.idle_before(tmp_path, ["others"]) == {}
    for text in ("", "[]", '{"inventory": ["hosts"]}', json.dumps({**content, "applications": [{"idle_since": 1}]})):
        path.write_text(text, encoding="utf-8")  # that of an earlier version has no applications
        assert gpu_use.idle_before(tmp_path, ["hosts"]) == {}


def test_the_text_and_the_page_name_who_holds_what_and_no_markup_acts():
    hosts, answers = site([holder(1, 2, "data1", user="<b>anna\n"), holder(2, 1, "data2")], data1=[], data2=None)
    earlier = {APPLICATION: NOW - 11100}
    report = {**report_sample.sample(3), "applications": gpu_use.applications(hosts, answers, earlier, NOW)}
    text = report_text.text(report)
    assert f"  2 held, 0 busy, idle for 185 min: {APPLICATION} of <b>anna in queue default\n" in text
    assert "1 held, 0 busy, the use on data2 is not known: application_1795503116011_0002 of anna" in text
    page = report_page.page(report)
    assert f"idle for 185 min: {APPLICATION} of &lt;b&gt;anna in queue default" in page
    assert "idle now: " in report_text.text(report_sample.sample(3))
