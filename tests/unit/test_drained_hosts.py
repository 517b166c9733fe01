"""A host that is out of YARN or in maintenance mode is named by the plan and the report, from the records of this project."""

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import host_system, host_yarn, yarn_exclude
from plan_hosts import NODE, made, make_host

from hadoop_dl.hosts import report
from hadoop_dl.plan.model import Host

SINCE = "2026-11-24 06:55:16 UTC"


def read(root: Path, nodes: dict[str, Any]) -> dict[str, Any]:
    """What the reader finds after the module yarn_manager wrote its record."""
    yarn_exclude.write_record(f"{root}{yarn_exclude.RECORD}", nodes)
    return host_yarn.read(host_system.System(str(root)), [], None)


@pytest.fixture
def yarn(tmp_path: Path) -> dict[str, Any]:
    return read(tmp_path, {"data2.example.com": {"gpus": 2, "since": SINCE}})


def site(yarn: dict[str, Any], *others: Host) -> list[Host]:
    masters = [make_host(name, ("masters",), {**NODE, "yarn": yarn}) for name in ("master1", "master2")]
    return [*masters, make_host("data1"), *others]


def told(hosts: list[Host]) -> list[str]:
    warnings = made(*hosts).warnings
    return [warning for warning in warnings if "out of YARN" in warning]


COMMAND = "ansible-playbook playbooks/node_maintenance.yml -e node_maintenance_state=running --limit"


@pytest.mark.parametrize(
    ("name", "variables"),
    [
        ("data2", {}),
        ("data2.example.com", {}),
        ("gpu-b", {"ansible_host": "data2.example.com"}),
        ("gpu-b", {"node_maintenance_node": "data2.example.com"}),
    ],
)
def test_the_plan_names_the_host_the_time_the_record_and_the_command(name, variables, yarn):
    assert told(site(yarn, make_host(name, **variables))) == [
        f"{name}: node_maintenance took it out of YARN at {SINCE} (recorded on master1). An upgrade that stopped there resumes with the same "
        f"command. To put it back now: {COMMAND} {name}"
    ]


@pytest.mark.parametrize("others", [[], [make_host("data2", node=None)]], ids=["not in this run", "switched off"])
def test_a_drained_host_that_was_not_read_is_named_on_the_host_of_the_record(others, yarn):
    (warning,) = told(site(yarn, *others))
    assert warning.startswith("master1: node_maintenance took data2.example.com out of YARN at 2026")
    assert warning.endswith(f"{COMMAND} {'data2' if others else 'HOST'}")


def test_a_report_has_it_as_a_note_of_the_host(yarn):
    hosts = site(yarn, make_host("data2"))
    site_plan = made(*hosts, grouped=False)
    run_report = report.make_report(hosts, {}, site_plan, {}, 0)
    notes = {entry["host"]: [note for note in entry["notes"] if "out of YARN" in note] for entry in run_report["hosts"]}
    assert {name: len(lines) for name, lines in notes.items()} == {"master1": 0, "master2": 0, "data1": 0, "data2": 1}


@pytest.mark.parametrize("nodes", [{}, {"data2": {"gpus": 2}}], ids=["none", "torn"])
def test_no_host_is_named_without_a_record_that_can_be_read(nodes, tmp_path):
    facts = read(tmp_path, nodes)
    assert facts["drained"] == {}
    assert told(site(facts, make_host("data2"))) == []
