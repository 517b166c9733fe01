"""The answer of CDSW's master about the hosts of its deployment, in a form that every host may read."""

import re
from collections.abc import Mapping
from typing import Any

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
LARGEST = 1024  # GPUs of one host


def answer(health: Mapping[str, Any]) -> dict[str, Any]:
    """Whether CDSW is ready, and the GPUs of each node, from the result of cdsw_service. Of its texts only checked names stay.

    `nodes` is None if CDSW prints no table, and a node's number is None if it has no such column.
    """
    nodes = health.get("nodes")
    return {"healthy": health.get("healthy") is True, "nodes": checked(nodes) if isinstance(nodes, Mapping) else None}


def checked(nodes: Mapping[Any, Any]) -> dict[str, int | None]:
    return {
        name: count if type(count) is int and 0 <= count <= LARGEST else None
        for name, count in nodes.items()
        if isinstance(name, str) and NAME.fullmatch(name)
    }


def row(nodes: Mapping[str, int | None], node: str) -> list[int | None]:
    """The node's number of GPUs, which CDSW may name with or without its domain; nothing if it is missing."""
    short = node.lower().partition(".")[0]
    return [count for name, count in nodes.items() if name.lower().partition(".")[0] == short][:1]


def gpus(nodes: Mapping[str, int | None] | None, node: str) -> int | None:
    """The GPUs that CDSW detected on this host; None if it does not tell."""
    return next(iter(row(nodes or {}, node)), None)


def absence(published: Mapping[str, Any], master: str, host: str, node: str) -> str:
    """Why CDSW does not have this host, as a sentence; empty if it has, or if it prints no table. An empty node asks for the master alone."""
    if "healthy" not in published:
        return (
            f"{host} waits for CDSW's master {master or '(cdsw_master)'}, which failed, cannot be reached or is not in this run. "
            "Solve what is printed for the master, then run the same command for all hosts of CDSW, without --limit."
        )
    if not published["healthy"]:
        return f"{host} needs a CDSW that is ready, but the master {master} is not. Read its message and the output of cdsw logs there, then run this again."
    nodes = published["nodes"]
    if not node or nodes is None or row(nodes, node):
        return ""
    return f"CDSW must have {host} ({node}) but has {', '.join(sorted(nodes)) or 'no node'}. Run cdsw join on {host} and look at its output, then run this again."


def miscount(published: Mapping[str, Any], host: str, node: str, expected: int) -> str:
    """A sentence if CDSW detects another number of GPUs than expected; empty if it agrees or reports none."""
    count = gpus(published.get("nodes"), node)
    if count is None or count == int(expected):
        return ""
    return (
        f"CDSW must detect {expected} GPUs on {host} but detects {count}. cdsw.conf has the settings for it. "
        "Ask on the host: /opt/deeplearning/bin/gpu-check driver_runs; then restart CDSW."
    )
