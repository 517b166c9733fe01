"""CDSW in the plan: what is read of a host, what all its hosts get by release and kind, and what a restart means."""

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import cdsw_settings, host_reader
from cdsw_deployment import DRIVERS, SAMPLE, WANTED
from plan_hosts import changed_node, made, make_host
from trees import write

from hadoop_dl.data import cdsw, compat
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan.components import COMPONENTS
from hadoop_dl_dev.invented_hosts import after

DOCKER: dict[str, Any] = {"runtimes": [], "daemon_json_problem": None, "packages": {}}
GPUS = {"gpus": [{"vendor": "10de", "device": "15f8"}] * 2, "installed": "418.67", "driver": "418.67"}
LISTENS = "Main:\n  +-- 0.0.0.0/0 3 0 5\n           |-- 192.0.2.10\n              /32 host LOCAL\nLocal:\n"
STATUS = """Sending detailed logs to [/tmp/cdsw_status_HAmpRL.log] ...
CDSW Version: [1.3.0:9bb84f6]
|  NAME | STATUS | CREATED-AT | VERSION | EXTERNAL-IP | OS-IMAGE | KERNEL-VERSION | GPU | STATEFUL |
|  ip-10-0-0-167 | True | 2018-01-28 14:40:09+00:00 | v1.6.11 | None | CentOS Linux 7 (Core) | 3.10.0-514.16.1.el7.x86_64 | 2 | True |
1/1 nodes are ready.
|  NAME | READY | STATUS | RESTARTS | CREATED-AT | POD-IP | HOST-IP | ROLE |
|  web-3320989329-698m4 | 1/1 | Running | 0 | 2018-01-28 14:41:48+00:00 | 100.66.0.11 | 10.0.0.167 | web |
Cloudera Data Science Workbench is ready!"""


# --- what is read ---------------------------------------------------------------------------------------------------


def tree(root: Path, files: dict[str, str]) -> dict[str, Any]:
    write(root, files)
    return dict(host_reader.read(str(root)))


def test_an_installation_from_the_rpm_is_read_without_its_secrets(tmp_path, monkeypatch):
    packages = "cloudera-data-science-workbench 1.4.0.431664-1\nnvidia-docker 1.0.1-1\n"
    monkeypatch.setattr(host_reader.Reader, "output", lambda self, argv, accepted: packages)
    files = {
        "/etc/cdsw/config/cdsw.conf": SAMPLE.replace('PATH=""', f'PATH="{DRIVERS}/418.67" # ours'),
        "/usr/bin/rpm": "",
        "/proc/net/fib_trie": LISTENS,
        f"{DRIVERS}/418.67/lib64/libcuda.so.418.67": "",
    }
    node = tree(tmp_path, files)
    assert node["workbench"] == {
        "kind": "rpm",
        "release": "1.4.0",
        "settings": {**WANTED, "NVIDIA_GPU_ENABLE": "false", "MASTER_IP": "192.0.2.10"},
        "master": True,
        "drivers": ["418.67"],
        **dict.fromkeys(("sessions", "images", "mig")),
        "restart_pending": False,
    }
    assert "a-secret" not in str(node)
    assert node["cdsw"] is True
    assert node["containers"] is None


def test_a_parcel_is_read_from_its_link(tmp_path):
    (tmp_path / "opt/cloudera/parcels").mkdir(parents=True)
    (tmp_path / "opt/cloudera/parcels/CDSW").symlink_to("CDSW-1.10.5.p1.47677668")
    facts = tree(tmp_path, {"/etc/hostname": "cdsw1"})["workbench"]
    assert (facts["kind"], facts["release"], facts["master"], facts["settings"]) == ("parcel", "1.10.5", False, {})


def test_a_host_without_cdsw_and_docker_is_asked_nothing(tmp_path):
    node = tree(tmp_path, {"/etc/hostname": "data1"})
    assert (node["workbench"], node["containers"], node["cdsw"]) == (None, None, False)


@pytest.mark.parametrize(
    ("text", "runtimes", "problem"),
    [
        (None, [], None),
        ('{"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}}}', ["nvidia"], None),
        ("{'runtimes': {}}", [], "Expecting property name"),
        ("[]", [], "it is no mapping"),
    ],
)
def test_daemon_json_is_read(tmp_path, text, runtimes, problem):
    files = {"/usr/bin/docker": "", **({"/etc/docker/daemon.json": text} if text else {})}
    containers = tree(tmp_path, files)["containers"]
    assert containers["runtimes"] == runtimes
    assert (problem or "") in (containers["daemon_json_problem"] or "")
    assert bool(problem) == bool(containers["daemon_json_problem"])


# --- what releases need ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "runtime", "library"),
    [
        ("1.1.1", "nvidia-docker", "/usr/local/nvidia/lib64"),
        ("1.5.0", "nvidia-docker", "/usr/local/nvidia/lib64"),
        ("1.6.1", None, None),
        ("1.9.2", None, "/usr/lib/x86_64-linux-gnu"),
        ("1.10.5", None, "/usr/lib/x86_64-linux-gnu"),
    ],
)
def test_a_release_needs_on_a_host(release, runtime, library):
    requirements = cdsw.support(release)
    assert (requirements.runtime, requirements.library) == (runtime, library)


def test_the_rows_of_releases_leave_no_gap():
    rows = compat.load().rows("cdsw", "gpu_support")
    assert [row["before"] for row in rows[:-1]] == [row["first"] for row in rows[1:]]
    assert rows[-1]["before"] is None
    assert cdsw.support("1.0") is None


@pytest.mark.parametrize(
    ("kind", "release", "settings"),
    [
        ("rpm", "1.4.0", WANTED),
        ("rpm", "1.10.5", {"NVIDIA_GPU_ENABLE": "true"}),
        ("parcel", "1.4.0", {"cdsw.enable.gpu.config": "true", "cdsw.nvidia.lib.path.config": f"{DRIVERS}/418.67"}),
        ("parcel", "1.10.5", {"cdsw.enable.gpu.config": "true"}),
    ],
)
def test_the_settings_follow_release_and_kind(kind, release, settings):
    assert cdsw.settings(kind, release, "418.67") == settings


# --- the plan -------------------------------------------------------------------------------------------------------


def bench(**parts: Any) -> dict[str, Any]:
    defaults = {"kind": "rpm", "release": "1.4.0", "settings": {}, "master": True, "drivers": ["418.67"], "sessions": 2}
    return {**defaults, "images": [], "mig": None, **parts}


def cdsw_host(name: str = "cdsw1", gpus: Any = GPUS, variables: Any = None, **parts: Any) -> plan_model.Host:
    node = changed_node(nvidia=gpus, cdsw=True, workbench=bench(**parts), containers=DOCKER)
    return make_host(name, ("cdsw_hosts",), node, **(variables or {}))


def test_an_rpm_of_1_4_gets_nvidia_docker_and_the_drivers_path():
    site_plan = made(cdsw_host(variables={"cdsw_restart_allowed": "yes"}))
    assert site_plan.problems == []
    part = site_plan.hosts["cdsw1"]
    assert part["container_runtime"] == {"name": "nvidia-docker", "driver": "418.67"}
    assert part["cdsw"]["settings"] == WANTED
    assert (part["cdsw"]["role"], part["cdsw"]["master"], part["cdsw"]["gpu_count"]) == ("master", "cdsw1", 2)
    assert "CDSW restarts on cdsw1 (CDSW 1.4.0: 2 sessions run; a restart ends them)." in site_plan.table()
    assert part["needs"].index("container_runtime") < part["needs"].index("cdsw")


def test_a_restart_that_is_not_allowed_is_told_with_its_sessions():
    site_plan = made(cdsw_host())
    assert site_plan.restarts == []
    (warning,) = [text for text in site_plan.warnings if "restart of CDSW" in text]
    assert "2 sessions run; a restart ends them" in warning
    assert "Set cdsw_restart_allowed: true" in warning


def test_a_parcel_of_1_10_needs_no_runtime_and_restarts_nothing():
    site_plan = made(cdsw_host(kind="parcel", release="1.10.5", drivers=[]))
    assert site_plan.problems == []
    assert "container_runtime" not in site_plan.hosts["cdsw1"]["needs"]
    assert site_plan.hosts["cdsw1"]["cdsw"]["settings"] == {"cdsw.enable.gpu.config": "true"}
    assert site_plan.restarts == []
    assert not [text for text in site_plan.warnings if "restart of CDSW" in text]


def test_a_driver_that_comes_changes_the_path():
    same_plan = made(cdsw_host(settings=WANTED))
    assert "settings of cdsw.conf" not in [row.reason for row in same_plan.rows]
    site_plan = made(cdsw_host(gpus=NEWER, settings=WANTED, variables={"cdsw_restart_allowed": True}))
    (row,) = [row for row in site_plan.rows if row.component == "cdsw"]
    assert f"NVIDIA_LIBRARY_PATH={DRIVERS}/440.64" in row.wanted
    assert row.reason == "settings of cdsw.conf"
    assert site_plan.restarts


@pytest.mark.parametrize(
    ("record", "pending"),
    [
        ('{"rows": [{"kind": "restart", "services": ["cdsw"], "pending": true}]}', True),
        ('{"rows": []}', False),
        ("[]", False),
        ("{", False),
    ],
)
def test_a_pending_restart_is_read(tmp_path, record, pending):
    files = {"/etc/cdsw/config/cdsw.conf": "", "/opt/deeplearning/state/cdsw.json": record}
    assert tree(tmp_path, files)["workbench"]["restart_pending"] is pending


def test_a_pending_restart_is_planned_though_the_receipt_is_right():
    first = made(cdsw_host(settings=WANTED))
    killed_host = cdsw_host(settings=WANTED, restart_pending=True, variables={"cdsw_restart_allowed": True})
    site_plan = made(after(killed_host, first))
    (row,) = [row for row in site_plan.rows if row.component == "cdsw"]
    assert row.reason == "a restart of CDSW is pending"
    assert site_plan.restarts


def test_the_master_takes_part_in_a_run_for_a_worker():
    """Its table says whether the worker is in CDSW."""
    master, worker = cdsw_host(settings=WANTED), cdsw_host("cdsw2", settings=WANTED, master=False)
    first = made(master, worker)
    finished_host = after(master, first)
    site_plan = made(finished_host, cdsw_host("cdsw2", settings={}, master=False))
    assert "cdsw" in site_plan.hosts["cdsw1"]["needs"]
    assert site_plan.hosts["cdsw1"]["cdsw"]["role"] == "master"
    assert [row.host for row in site_plan.rows if row.component == "cdsw"] == ["cdsw2"]
    second_plan = made(finished_host, after(worker, first))
    assert [name for name, part in second_plan.hosts.items() if "cdsw" in part["needs"]] == []


@pytest.mark.parametrize("permissions", [[], ["cdsw_restart_allowed"], ["container_runtime_reload_allowed"]])
def test_a_host_that_is_done_needs_nothing_also_without_the_permissions_of_that_run(permissions):
    first = made(cdsw_host(settings=WANTED, variables=dict.fromkeys(permissions, True)))
    second_plan = made(after(cdsw_host(settings=WANTED), first))
    assert not {"cdsw", "container_runtime"} & set(second_plan.hosts["cdsw1"]["needs"])


def test_a_host_without_gpus_has_the_same_settings():
    """cdsw.conf must be the same on all hosts."""
    without = cdsw_host("cdsw2", gpus={"gpus": []}, master=False)
    site_plan = made(cdsw_host(), without)
    assert site_plan.hosts["cdsw2"]["cdsw"]["settings"] == site_plan.hosts["cdsw1"]["cdsw"]["settings"]
    assert site_plan.hosts["cdsw2"]["cdsw"]["role"] == "worker"
    assert "container_runtime" not in site_plan.hosts["cdsw2"]["needs"]


NEWER = {**GPUS, "installed": "440.64", "driver": "440.64"}
V100 = {**GPUS, "gpus": [{"vendor": "10de", "device": "1db4"}]}


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ([cdsw_host(), cdsw_host("cdsw2", gpus=V100, master=False)], "same make and model of GPU"),
        ([cdsw_host(), cdsw_host("cdsw2", release="1.5.0")], "must have one release of one kind"),
        ([cdsw_host(release="1.0.1")], "CDSW 1.0.1 gives sessions no GPUs; that begins with 1.1"),
        ([cdsw_host(kind="parcel", release="1.10.1", mig=True)], "MIG is enabled on cdsw1. Disable it there"),
        ([cdsw_host(master=False)], "must have the address that MASTER_IP in cdsw.conf names"),
        (
            [cdsw_host(), cdsw_host("cdsw2", gpus=NEWER)],
            "one path of the driver for all its hosts, so they must have one driver, but have cdsw1 418.67, cdsw2 440.64",
        ),
        (
            [cdsw_host(release="1.7.2", variables={"container_runtime": "nvidia-container-toolkit"})],
            "needs the driver only, because its Docker daemon has NVIDIA's runtime already",
        ),
    ],
)
def test_what_cdsw_cannot_do_is_a_problem_of_the_plan(hosts, words):
    assert words in "\n".join(made(*hosts).problems)


@pytest.mark.parametrize(
    ("containers", "words"),
    [
        (None, "needs Docker on the host, but there is none"),
        ({**DOCKER, "daemon_json_problem": "line 3"}, "daemon.json must be JSON but is not: line 3"),
    ],
)
def test_a_runtime_needs_docker_and_a_daemon_json_that_is_json(containers, words):
    host = make_host(node=changed_node(containers=containers), container_runtime="nvidia-container-toolkit")
    assert words in "\n".join(made(host).problems)


def test_a_removal_that_waits_for_its_window_stays_in_the_plan():
    state = {"current": None, "environments": {}, "receipts": {"cdsw": {"digest": "a", "problem": None}}}
    node = changed_node(nvidia=GPUS, workbench=bench(), containers=DOCKER, deeplearning=state)
    site_plan = made(make_host("cdsw1", ("cdsw_hosts",), node, cdsw_state="absent"))
    (row,) = [row for row in site_plan.rows if row.component == "cdsw"]
    assert (row.wanted, row.reason) == ("as before", "no longer requested")


def test_a_switch_that_waits_for_its_window_is_no_reason_to_verify_again():
    host = cdsw_host()
    waiting_host = after(host, made(host))
    assert made(waiting_host).hosts["cdsw1"]["needs"] == ["cdsw"]


def test_an_unreadable_release_leaves_cdsw_alone():
    site_plan = made(cdsw_host(release=None))
    assert "cdsw" not in site_plan.hosts["cdsw1"]["needs"]
    assert "could not be read from its package or parcel" in "\n".join(site_plan.warnings)


def test_a_site_without_cdsw_and_docker_has_nothing_of_it():
    assert not {"cdsw", "container_runtime"} & set(made(make_host()).hosts["data1"]["needs"])
    assert COMPONENTS["cdsw"].groups == ("cdsw_hosts",)


# --- cdsw status ----------------------------------------------------------------------------------------------------


def test_the_table_of_nodes_tells_the_gpus():
    """The table of pods, which follows, has NAME and STATUS too."""
    assert cdsw_settings.nodes(STATUS) == {"ip-10-0-0-167": 2}
    assert cdsw_settings.nodes(STATUS.replace("| True | 2018", "| False | 2018")) == {}
    assert cdsw_settings.nodes("Cloudera Data Science Workbench is ready!") is None
    assert cdsw_settings.ready(0, STATUS)
    assert cdsw_settings.nodes(STATUS.replace(" GPU |", "").replace(" 2 |", "")) == {"ip-10-0-0-167": None}


def test_a_broken_cdsw_is_told_in_its_own_words():
    text = "OK: Sysctl params check\nProcesses are not running: [kubelet]. Check the CDSW role logs for more details.\nnot ready yet"
    assert "Processes are not running: [kubelet]" in cdsw_settings.reason(1, text)
