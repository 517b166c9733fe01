"""The report: what hosts answered and the plan become rows, states and an exit status."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import host_reader

from hadoop_dl import plan
from hadoop_dl.data import typed
from hadoop_dl.data.report_answers import asked_of
from hadoop_dl.hosts import report, report_text
from hadoop_dl.plan.model import Host, host_of
from hadoop_dl_dev import invented_hosts, report_sample

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site() -> list[Host]:
    """An edge node, a mirror and three data nodes, all as planned."""
    return report_sample.installed(report_sample.bare_hosts(5))


def made_of(hosts: list[Host], verified: dict[str, Any] | None = None, **health: Any) -> dict[str, Any]:
    """The report of these hosts, of which data0002 answers so about its GPUs."""
    gpu_health = {"results": [{"name": "driver_runs", "outcome": "PASS", "message": ""}], "problem": None}
    answers = {
        host.name: asked_of(
            {"health": gpu_health, "times": {"changed": 1000, "verified": 2000}}
            if host.facts or host.problem
            else {"unanswered": "No route to host"}
        )
        for host in hosts
    }
    if health:
        answers["data0002"] = asked_of({"health": {"results": None, "problem": None, **health}})
    plan_ = plan.make_plan(hosts, REPOSITORY, grouped=False)
    report_ = report.make_report(hosts, answers, plan_, verified or {}, report_sample.NOW)
    return dict(json.loads(json.dumps(report_)))


def changed(hosts: list[Host], name: str, node: Any = ..., **variables: Any) -> list[Host]:
    """The hosts, one of which has other variables, or another node: a function changes a copy of it."""
    changed_hosts = []
    for host in hosts:
        if host.name == name:
            host = replace(host, variables={**host.variables, **variables})
            if callable(node):
                host = invented_hosts.altered(host, node)
            elif node is not ...:
                host = invented_hosts.host(host.name, host.groups, host.variables, node)
        changed_hosts.append(host)
    return changed_hosts


def older(hosts: list[Host]) -> list[Host]:
    """The hosts, one of which has another environment than was planned."""
    return changed(hosts, "data0002", lambda node: node["deeplearning"].update(current=report_sample.OLD))


def row(found: dict[str, Any], name: str = "data0002") -> dict[str, Any]:
    (entry,) = [entry for entry in found["hosts"] if entry["host"] == name]
    return dict(entry)


def test_a_site_as_planned_is_status_0_and_every_row_says_what_is_there(site):
    report_ = made_of(site)
    assert (report_["status"], report_["states"]["as planned"], report_["problems"]) == (0, 5, [])
    entry = row(report_)
    assert entry["state"] == "as planned"
    assert entry["reasons"] == []
    assert (entry["stack"], entry["os"]) == ("tf2.15-py3-el9", "Red Hat Enterprise Linux 9.4 (Plow)")
    assert entry["environment"] == f"{entry['stack']}-{entry['digest']}"
    assert (entry["driver"], entry["module"]) == ("580.95.05", "proprietary")
    assert (entry["gpus"], entry["gpu_models"]) == (2, ["T4"])
    assert entry["in_environment"] == {"cuda": "12.2", "cudnn": "8.9", "nccl": "2.16.5"}
    assert (entry["changed"], entry["verified"]) == ("1970-01-01T00:16:40Z", "1970-01-01T00:33:20Z")
    assert [group["differ"] for group in report_["groups"]] == [{}, {}, {}]


def test_what_the_site_decided_is_a_note_of_its_host(site):
    report_ = made_of([*site, invented_hosts.host("broker1", ("brokers",), {}, {})])
    assert report_["status"] == 0
    (note,) = row(report_, "broker1")["notes"]
    assert note.startswith("in none of the groups mirror_host")


def test_an_unreachable_host_is_a_row_with_the_reason_and_status_4(site):
    report_ = made_of(changed(site, "data0003", None))
    assert report_["status"] == 4
    assert (row(report_, "data0003")["state"], row(report_, "data0003")["reasons"]) == (
        "unreachable",
        ["No route to host"],
    )
    assert row(report_)["state"] == "as planned"
    assert report_["problems"] == []


def test_unreachable_hosts_outweigh_drift_and_hide_none_of_it(site):
    report_ = made_of(changed(older(site), "data0003", None))
    assert report_["status"] == 4
    assert row(report_)["state"] == "drift"


def test_a_host_that_could_not_be_read_counts_as_unreachable(site):
    host = replace(site[2], facts=None)
    answer = asked_of({"unanswered": "Python 2.7 or 3 is required"})
    plan_ = plan.make_plan([host, site[3]], REPOSITORY, grouped=False)
    report_ = report.make_report([host, site[3]], {host.name: answer}, plan_, {}, report_sample.NOW)
    assert (report_["status"], row(report_, host.name)["reasons"]) == (4, ["Python 2.7 or 3 is required"])


def test_a_host_whose_answer_has_no_sense_is_its_own_row(site):
    """An outcome that is none, a version that is none: each is a row of that host, and the others have theirs."""
    wrong_host = host_of("data0003", ("data_nodes",), {}, {**typed.as_json(site[3].known), "glibc": "abc"})
    report_ = made_of(
        [wrong_host if host.name == "data0003" else host for host in site],
        results=[{"name": "xid", "outcome": "BROKEN", "message": ""}],
    )
    assert report_["status"] == 4
    assert [row(report_, f"data000{number}")["state"] for number in (2, 3, 4)] == ["fault", "unreachable", "as planned"]
    (reason,) = row(report_, "data0003")["reasons"]
    assert reason.startswith("answered 'abc' for glibc, which must be a version of numbers and point")
    outcome = "the host answered 'BROKEN' for health.results[0].outcome, which must be one of PASS, FAIL, SKIP"
    assert row(report_)["reasons"][0].startswith(outcome)


def test_a_wrong_input_of_an_unreachable_host_hides_no_reason(site):
    report_ = made_of(changed(site, "data0003", None, gpu_count=1000))
    reason, problem = row(report_, "data0003")["reasons"]
    assert (reason, problem.startswith("gpu_count ")) == ("No route to host", True)


def test_another_environment_is_drift_with_what_is_there_and_what_was_planned(site):
    report_ = made_of(older(site))
    assert (report_["status"], row(report_)["state"]) == (3, "drift")
    (reason,) = row(report_)["reasons"]
    assert reason.startswith(f"environment: {report_sample.OLD} -> tf2.15-py3-el9-")
    assert row(report_)["drift"][0]["component"] == "environment"


def test_what_stands_in_the_way_of_a_plan_is_a_row_and_stops_no_report(site):
    report_ = made_of(changed(site, "data0002", gpu_count=3))
    assert (report_["status"], row(report_)["state"]) == (3, "drift")
    assert "gpu_count is 3, but the host shows 2 GPUs" in row(report_)["reasons"][0]
    assert row(report_, "data0003")["state"] == "as planned"


def test_what_only_shows_when_hosts_are_looked_at_together_is_reported_too(site):
    unlike_hosts = changed(site, "edge0000", deeplearning_request="tf2.15-cpu-py3-el9")
    assert made_of(unlike_hosts)["status"] == 3
    assert "requires one environment" in report_text.text(made_of(unlike_hosts))
    for hosts in (unlike_hosts, changed(unlike_hosts, "data0003", None)):
        assert any("requires one environment" in problem for problem in made_of(hosts)["problems"])


def test_a_damaged_environment_is_a_fault(site):
    def damage(node: Any) -> Any:
        deeplearning = node["deeplearning"]
        deeplearning["environments"][deeplearning["current"]]["problem"] = "bin/python is missing"

    report_ = made_of(changed(site, "data0002", damage))
    assert (report_["status"], row(report_)["state"]) == (3, "fault")
    assert "is damaged: bin/python is missing" in row(report_)["reasons"][0]


def test_what_the_reader_reads_of_a_host_is_what_its_row_shows(stages, tmp_path):
    """No invented facts: a real sealed environment, read from its tree."""
    shutil.copytree(stages["active"], tmp_path / "opt" / "deeplearning", symlinks=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text('ID="rhel"\nVERSION_ID="9.4"\nPRETTY_NAME="RHEL 9.4"\n', encoding="utf-8")

    def entry() -> dict[str, Any]:
        answer = {"facts": host_reader.read(str(tmp_path)), "times": host_reader.times(str(tmp_path))}
        host = host_of("data1", ("build_hosts",), {}, answer["facts"])
        plan_ = plan.make_plan([host], REPOSITORY, grouped=False)
        return row(report.make_report([host], {"data1": asked_of(answer)}, plan_, {}, report_sample.NOW), "data1")

    host_row = entry()
    assert (host_row["state"], host_row["os"], host_row["gpu_check"]) == ("as planned", "RHEL 9.4", None)
    assert (host_row["stack"], host_row["digest"]) == ("demo-stack", "0123456789ab")
    assert host_row["changed"] is not None
    next((tmp_path / "opt/deeplearning/envs/demo-stack-0123456789ab.1").rglob("six.py")).unlink()
    assert entry()["state"] == "fault"
    assert "six.py" in entry()["reasons"][0]


def test_a_question_of_gpu_check_that_fails_is_a_fault(site):
    results = [{"name": "xid", "outcome": "FAIL", "message": "Xid 79"}, {"name": "a", "outcome": "PASS", "message": ""}]
    report_ = made_of(site, results=results)
    assert (report_["status"], row(report_)["state"], row(report_)["reasons"]) == (
        3,
        "fault",
        ["gpu-check xid: Xid 79"],
    )
    assert row(report_)["gpu_check"] == {"problem": None, "passed": ["a"], "failed": {"xid": "Xid 79"}, "skipped": {}}


def test_a_gpu_check_that_hangs_is_a_row_with_the_reason(site):
    report_ = made_of(site, problem="gpu-check gave no answer within 100 s")
    assert (row(report_)["state"], row(report_)["reasons"]) == ("fault", ["gpu-check gave no answer within 100 s"])


def test_another_kernel_in_a_group_is_told_and_is_no_drift(site):
    report_ = made_of(changed(site, "data0002", lambda node: node["kernel"].update(running="5.14.0-362") or node))
    assert report_["status"] == 0
    (group,) = [group for group in report_["groups"] if group["group"] == "data_nodes"]
    kernels = {report_sample.KERNELS[0]: ["data0003", "data0004"], "5.14.0-362": ["data0002"]}
    assert group["differ"] == {"kernel": kernels}
    text = report_text.text(report_)
    assert "data_nodes: kernel 5.14.0-427.18.1.el9_4.x86_64 on data0003, data0004; 5.14.0-362 on data0002" in text
    assert f"data0002: the next boot starts kernel {report_sample.KERNELS[0]}" in text


def test_hosts_that_are_alike_are_one_line_of_the_text(site):
    text = report_text.text(made_of(site))
    assert text.startswith("REPORT of 2026-11-22 13:00:00 UTC: 5 hosts: 5 as planned.")
    assert text.count("\n  data0002, data0003, data0004  as planned  ") == 1


def sealed(files: str, python: str | None = "3.9.18 (main) [GCC 11.4.1]", lock: str | None = None) -> Any:
    """A change of a node: its active environment was sealed with these bytes by this Python, of this lock of TensorFlow."""

    def alter(node: dict[str, Any]) -> None:
        deeplearning = node["deeplearning"]
        deeplearning["environments"][deeplearning["current"]] |= {"contents": files, "python": python, "lock": lock}

    return alter


def test_an_environment_with_other_bytes_than_on_most_hosts_is_drift(site):
    hosts = site
    for host, files in zip([member for member in site if member.facts.deeplearning.current], "aaab", strict=False):
        hosts = changed(hosts, host.name, sealed(files * 64))
    rows = [entry for entry in made_of(hosts)["hosts"] if entry["state"] == "drift"]
    assert len(rows) == 1
    sentence = "must have the same bytes on all hosts with one build of Python, but has others than on"
    assert sentence in rows[0]["reasons"][0]
    other_build = changed(hosts, rows[0]["host"], sealed("b" * 64, "3.9.21 (main) [GCC 11.5.0]"))
    assert made_of(other_build)["status"] == 0  # a Python of another build compiles other bytecode
    older_hosts = changed(hosts, rows[0]["host"], sealed("b" * 64, None))
    assert made_of(older_hosts)["status"] == 0  # sealed by an earlier version
    assert report.other_bytes(changed(hosts, rows[0]["host"], sealed("b" * 64, lock="c" * 64))) == {}  # the other form


def suite(directory: Path, inventory: str) -> None:
    results = [
        {"host": "data0002", "question": "java starts", "outcome": "passed"},
        {"host": "data0002", "question": "HDFS answers", "outcome": "failed"},
    ]
    (directory / "report.json").write_text(json.dumps(results), encoding="utf-8")
    (directory / "run.json").write_text(json.dumps({"inventory": inventory, "at": 3000}), encoding="utf-8")


def test_the_last_verification_is_the_newest_of_the_hosts_record_and_the_controllers(site, tmp_path):
    suite(tmp_path, str(tmp_path / "site"))
    report_ = made_of(site, report.last_verify(tmp_path, [str(tmp_path / "site")]))
    assert row(report_)["verified"] == "1970-01-01T00:50:00Z"
    assert "the last verification failed 1 of 2 questions: HDFS answers" in row(report_)["notes"]
    assert row(report_, "data0003")["verified"] == "1970-01-01T00:33:20Z"


def test_the_verification_of_another_inventory_says_nothing_about_this_one(tmp_path):
    suite(tmp_path, str(tmp_path / "other"))
    assert report.last_verify(tmp_path, [str(tmp_path / "site")]) == {}
    assert report.last_verify(tmp_path / "missing", ["site"]) == {}
