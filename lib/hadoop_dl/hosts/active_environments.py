"""Which environments hosts of a run still name, so that no other host removes them. Pure functions."""

from collections.abc import Iterable, Mapping
from typing import Any


def answered(variables: Mapping[str, Any]) -> str | None:
    """The environment that was active when the host was read; None if it was not read."""
    node = variables.get("preflight_node")
    facts = node.get("facts") if isinstance(node, dict) else None
    part = facts.get("deeplearning") if isinstance(facts, dict) else None
    return str(part.get("current") or "") if isinstance(part, dict) else None


def in_use(hosts: Mapping[str, Mapping[str, Any]], required: Iterable[str], switched: Iterable[str]) -> dict[str, Any]:
    """`names` of environments that stay, and `unknown`: hosts that did not switch and whose environment is not known.

    hosts: the variables of all hosts; required: those that must be known, which are the hosts of the play that switches, and all hosts
    of the cluster, because a job names one environment for its driver and all executors; switched: those that did.
    """
    switched_hosts, required_hosts, names, unknown = set(switched), set(required), set(), []
    for host in sorted({*hosts} - switched_hosts):
        environment = answered(hosts[host])
        if environment:
            names.add(environment)
        elif environment is None and host in required_hosts:
            unknown.append(host)
    plans = [hosts[host].get("plan") for host in switched_hosts]
    names |= {str(plan["environment"]) for plan in plans if isinstance(plan, dict) and plan.get("environment")}
    return {"names": sorted(names), "unknown": unknown}
