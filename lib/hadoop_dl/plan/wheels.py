"""Wheels of environments through HDFS (environment_source: hdfs): which hosts read them there, and which one puts them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hadoop_dl.plan import kerberos
from hadoop_dl.plan.component import Case, Run
from hadoop_dl.plan.components import concerns
from hadoop_dl.plan.model import Plan, shorten

READS, PUTS = "wheels_from_hdfs", "wheels_to_hdfs"  # hosts of these needs (playbooks/layers/frameworks.yml)
INSTALLS = {"environment", "additional_environments"}


def obstacle(case: Case) -> str:
    """Why the host cannot read HDFS; empty if it can."""
    hadoop, host = case.facts.hadoop, case.host
    if hadoop is None or not hadoop.conf_dir:
        return "no Hadoop client with a core-site.xml"
    if case.wanted.stack is None or not case.wanted.stack.uses_hadoop:
        return "a stack that does not use Hadoop"
    if kerberos.is_secure(host) and not kerberos.logs_in(host):
        return "a cluster with Kerberos, and no login (hadoop_principal and hadoop_keytab)"
    return ""


def arrange(plan: Plan, cases: Sequence[Case], run: Run) -> None:
    """Add the needs of hosts that read wheels in HDFS, and of one that puts there what is missing. Their other needs are complete."""
    asking = [
        case
        for case in cases
        if concerns("environment", case.host) and case.host.variables.get("environment_source") == "hdfs"
    ]
    obstacles = {case.host.name: obstacle(case) for case in asking}
    if asking and all(obstacles.values()):
        listed = shorten([f"{name} has {reason}" for name, reason in obstacles.items()])
        plan.problems.append(
            f"environment_source: hdfs requires a host of this run that can read and write HDFS, but {listed}. Correct that on one of them, or set "
            "environment_source: mirror."
        )
        return
    installing = [case for case in asking if INSTALLS & set(case.needs)]
    readers = [case for case in installing if not obstacles[case.host.name]]
    for case in installing:
        if reason := obstacles[case.host.name]:
            plan.tell(case.host.name, warnings=[f"its wheels come from the mirror, because it has {reason}."])
    for case in readers:
        case.needs.append(READS)
    if readers:
        # An edge node if there is one: what it records there is removed with Spark's archives.
        putting = next((case for case in readers if "edge_nodes" in case.host.groups), readers[0])
        putting.needs.append(PUTS)
        requested = {pair for case in readers for pair in pairs(case)}
        kept_pairs = {*map(tuple, run.kept), *((stack, python) for stack, python, _ in run.environments)}
        putting.part["wheels"] = {"published": sorted(map(list, requested)), "kept": sorted(map(list, kept_pairs))}
        plan.source = f" Wheels come from HDFS on {len(readers)} hosts; {putting.host.name} puts there what is missing."


def pairs(case: Case) -> list[tuple[Any, ...]]:
    """Stack and Python of the environments that the host gets."""
    return [(target.lock.stack, target.python) for target in (case.wanted, *case.additional) if target.lock]
