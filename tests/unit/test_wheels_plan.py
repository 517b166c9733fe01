"""environment_source: hdfs in the plan: who reads, who puts, and which hosts cannot."""

from __future__ import annotations

from typing import Any

import pytest
from test_plan import NODE, REPOSITORY, STACK, changed_node, make_host

from hadoop_dl import plan
from hadoop_dl.plan import wheels
from hadoop_dl.plan.model import Plan

BARE = changed_node(hadoop=None)
SECURE = changed_node(kerberos={"secure": True, "web": False, "realm": "A", "missing": []})
LOGIN = {"hadoop_principal": "deeplearning@SITE.EXAMPLE", "hadoop_keytab": "/etc/d.keytab"}


def planned(*hosts: tuple[str, dict[str, Any], dict[str, Any]], source: str = "hdfs") -> Plan:
    """Of hosts with their answers and variables; a name begins with that of its group."""
    site_hosts = [
        make_host(name, (f"{name.rstrip('0123456789')}_nodes",), node, environment_source=source, **more)
        for name, node, more in hosts
    ]
    return plan.make_plan(site_hosts, REPOSITORY)


def with_need(made: Plan, need: str) -> list[str]:
    return [name for name, part in made.hosts.items() if need in part["needs"]]


def test_all_hosts_read_and_an_edge_node_puts() -> None:
    site_plan = planned(("data1", NODE, {}), ("data2", NODE, {}), ("edge1", NODE, {}))
    assert with_need(site_plan, wheels.READS) == ["data1", "data2", "edge1"]
    assert with_need(site_plan, wheels.PUTS) == ["edge1"]
    assert site_plan.hosts["edge1"]["wheels"] == {"published": [[STACK, "2.7"]], "kept": [[STACK, "2.7"]]}
    assert "Wheels come from HDFS on 3 hosts; edge1 puts there what is missing." in site_plan.table()


def test_by_default_nobody_does() -> None:
    site_plan = planned(("data1", NODE, {}), source="mirror")
    assert with_need(site_plan, wheels.READS) == with_need(site_plan, wheels.PUTS) == []
    assert "HDFS" not in site_plan.table()


@pytest.mark.parametrize(
    ("node", "words"),
    [(BARE, "it has no Hadoop client with a core-site.xml"), (SECURE, "a cluster with Kerberos, and no login")],
)
def test_a_host_that_cannot_read_is_named_and_the_others_read(node: dict[str, Any], words: str) -> None:
    site_plan = planned(("data1", node, {}), ("data2", NODE, {}))
    assert with_need(site_plan, wheels.READS) == with_need(site_plan, wheels.PUTS) == ["data2"]
    assert any(
        text.startswith("data1: its wheels come from the mirror") and words in text for text in site_plan.warnings
    )


def test_a_login_is_enough_on_a_cluster_with_kerberos() -> None:
    assert with_need(planned(("data1", SECURE, LOGIN)), wheels.PUTS) == ["data1"]


@pytest.mark.parametrize(
    ("node", "variables"),
    [(BARE, {}), (SECURE, {}), (SECURE, {"hadoop_login": "none"}), (NODE, {"deeplearning_request": "tf2.21-py311"})],
)
def test_a_run_without_a_host_that_can_is_refused_with_the_reasons(
    node: dict[str, Any], variables: dict[str, Any]
) -> None:
    site_plan = planned(("data1", node, variables))
    problem = next(text for text in site_plan.problems if "environment_source" in text)
    assert "requires a host of this run that can read and write HDFS, but data1 has" in problem
    assert problem.endswith("set environment_source: mirror.")
