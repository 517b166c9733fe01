"""TensorBoard as services of edge nodes: when they have work, what the plan refuses, and what a removal calls their processes."""

from dataclasses import replace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import removal_reader
from plan_hosts import REPOSITORY, changed_node, el9_node, made, make_host, needs

from hadoop_dl.plan import inputs, model
from hadoop_dl_dev.invented_hosts import after

ANNA = {"name": "vision", "directory": "hdfs:///user/anna/runs", "user": "anna", "port": 6100}
LOGIN = {"principal": "anna@EXAMPLE.COM", "keytab": "/etc/keytabs/anna"}
NAMED = {
    "named": {
        "paths": {"/etc/keytabs/anna": True, "/gone": False},
        "accounts": {"anna": {"uid": 1001, "home": "/home/anna"}, "ben": None},
    }
}
SECURE = {"kerberos": {"secure": True, "web": False, "realm": "EXAMPLE.COM", "missing": []}}


def edge(*services: dict[str, Any], node: dict[str, Any] | None = None, **variables: Any) -> model.Host:
    node = node or changed_node(**NAMED)
    return make_host("edge1", ("edge_nodes",), node, tensorboard_services=list(services), **variables)


def test_a_service_needs_work_once_and_again_when_it_or_the_environment_changes():
    host = edge(ANNA)
    edge1 = after(host, made(host))
    assert "tensorboard" in needs(made(host), "edge1")
    assert needs(made(edge1), "edge1") == []
    moved_host = replace(edge1, variables={**edge1.variables, "tensorboard_services": [{**ANNA, "port": 6200}]})
    assert needs(made(moved_host), "edge1") == ["tensorboard"]
    other_stack = replace(edge1, variables={**edge1.variables, "deeplearning_request": "tf1.15-cpu-py27-el7"})
    assert "tensorboard" in needs(made(other_stack), "edge1")


def test_services_that_are_no_longer_requested_have_work_until_they_are_gone():
    host = edge(ANNA)
    current_host = after(host, made(host))
    empty_host = replace(current_host, variables={**current_host.variables, "tensorboard_services": []})
    assert [(row.component, row.reason) for row in made(empty_host).rows] == [("tensorboard", "no longer requested")]
    assert needs(made(after(empty_host, made(empty_host))), "edge1") == []


@pytest.mark.parametrize("group", ["data_nodes", "cdsw_hosts"])
def test_other_hosts_serve_nothing(group):
    host = make_host("host1", (group,), changed_node(**NAMED), tensorboard_services=[{**ANNA, "user": "ben"}])
    assert "tensorboard" not in needs(made(host), "host1")


@pytest.mark.parametrize(
    ("services", "words"),
    [
        ([ANNA, {**ANNA, "name": "other"}], "must have each port once, but has 6100 several times"),
        ([ANNA, {**ANNA, "port": 6101}], "must have each name once, but has vision several times"),
        ([{**ANNA, "user": "ben"}], "(vision) requires the account ben, but the host has none"),
        ([{**ANNA, **LOGIN, "keytab": "/gone"}], '(vision) requires the keytab "/gone", but the host has none'),
        ([{**ANNA, "keytab": "/etc/keytabs/anna"}], "(vision) requires principal and keytab together"),
    ],
)
def test_what_a_service_lacks_is_told_before_a_host_changes(services, words):
    assert words in made(edge(*services)).failure()


def test_in_hdfs_with_kerberos_a_service_requires_a_keytab():
    secure = changed_node(**NAMED, **SECURE)
    login = {"hadoop_principal": "dl@EXAMPLE.COM", "hadoop_keytab": "/etc/keytabs/dl"}
    local = {**ANNA, "directory": "/home/anna/runs"}
    for service, is_refused in ((ANNA, True), ({**ANNA, **LOGIN}, False), (local, False)):
        failure = made(edge(service, node=secure, **login)).failure()
        assert ("requires Kerberos, but no keytab" in failure) is is_refused


def test_a_stack_without_tensorboard_is_refused():
    host = edge(ANNA, node=el9_node("3.11", **NAMED), deeplearning_request="tf2.21-cpu-py311")
    assert "requires TensorBoard, but tf2.21-cpu-py311 has none" in made(host).failure()


@pytest.mark.parametrize(
    "change",
    [
        *({"directory": path} for path in ("runs", "hdfs:///a b", "/home/%h", "/home/$HOME", '/a"', "/a/../etc")),
        *({"directory": "http://host/x"}, {"keytab": "/a%h"}, {"keytab": ""}),
        *({"user": "root"}, {"port": 80}, {"name": "a/b"}),
    ],
)
def test_what_systemd_would_read_otherwise_is_refused(change):
    variables = {"tensorboard_services": [{**ANNA, **LOGIN}]}
    assert inputs.check(variables, REPOSITORY).problems == []
    (problem,) = inputs.check({"tensorboard_services": [{**ANNA, **LOGIN, **change}]}, REPOSITORY).problems
    assert problem.startswith("tensorboard_services must be ")


@pytest.mark.parametrize(
    ("cgroups", "ours"),
    [
        ("0::/system.slice/deeplearning-tensorboard-vision.service\n", True),
        ("4:pids:/system.slice/deeplearning-tensorboard-a.b.service\n1:name=systemd:/system.slice/x\n", True),
        ("0::/user.slice/user-1000.slice/session-3.scope\n", False),
        ("0::/system.slice/other-deeplearning-tensorboard-vision.service\n", False),
    ],
)
def test_a_process_of_a_service_does_not_hold_a_removal(cgroups, ours):
    assert bool(removal_reader.OWN_SERVICE.search(cgroups)) is ours


def test_units_alone_are_something_to_remove_and_what_a_site_added_to_one_is_not(tmp_path):
    units = tmp_path / "etc/systemd/system"
    (units / "deeplearning-tensorboard-vision.service.d").mkdir(parents=True)
    host = removal_reader.Removal(str(tmp_path / "none"), system=str(tmp_path))
    assert host.environments() == []
    (units / "deeplearning-ticket-vision.timer").write_text("")
    assert host.environments() == ["services of TensorBoard"]
