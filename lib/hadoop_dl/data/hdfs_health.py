"""A DataNode whose host reboots: what speaks against it, and what is waited for afterwards.

Pure functions of what the module hadoop_daemons_info answered. Of a NameNode (FSNamesystem.java, DatanodeManager.java of 3.3.6): a DataNode that
was silent for 30 s is stale; after 10 minutes and 30 s it is dead, and only then its blocks count as under-replicated. So right after a reboot the
NameNode still counts on the DataNode, whether it runs or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hadoop_dl.data import typed
from hadoop_dl.data.typed import Number, Sentence

Blocks = Annotated[int, Number(0, 1 << 53)]
Daemon = Literal["DataNode", "JournalNode", "NameNode", "ResourceManager", "ZooKeeper"]
LOOK = "Look at `hdfs dfsadmin -report` and `hdfs fsck / -list-corruptfileblocks`"


@dataclass(frozen=True)
class Health:
    live: Blocks
    stale: Blocks
    missing: Blocks
    corrupt: Blocks
    under_replicated: Blocks
    safe_mode: bool
    stale_after: Annotated[int, Number(0, 3600)]  # seconds


@dataclass(frozen=True)
class Answer:
    """hdfs: None if HDFS was not asked, or did not answer for the reason in `silent`."""

    daemons: tuple[Daemon, ...]
    hdfs: Health | None
    silent: Annotated[str, Sentence(300)]


def read(answer: Any) -> Answer:
    """A ValueError with the value that has another form."""
    return typed.read(Answer, {**answer, "hdfs": answer.get("hdfs") or None})


def master_problem(host: str, answer: Answer, named: Sequence[str]) -> str | None:
    masters = [daemon for daemon in answer.daemons if daemon != "DataNode"]
    if not masters or host in named:
        return None
    return (
        f"{host} has a {' and a '.join(masters)}, so its reboot concerns the whole cluster. It was not rebooted. Leave it out with --limit '!{host}', or add "
        "it to node_maintenance_named_masters."
    )


def problem(answer: Answer, tolerated: int, away: int) -> str | None:
    """Why HDFS must not lose a DataNode now, as a clause. away: DataNodes that this run reboots at the same time."""
    hdfs = answer.hdfs
    if hdfs is None:
        return f"no active NameNode answers ({answer.silent})"
    if hdfs.safe_mode:
        return "it is in safe mode"
    if max(hdfs.missing, hdfs.corrupt, hdfs.under_replicated) > tolerated:
        return f"{hdfs.missing} blocks are missing, {hdfs.corrupt} corrupt and {hdfs.under_replicated} under-replicated"
    if hdfs.stale > away:
        return f"{hdfs.stale} of {hdfs.live} DataNodes do not report"
    return None


def lasting(answer: Answer, tolerated: int) -> bool:
    """Whether no wait helps: before a rollout, blocks that lack a replica only may be on their way."""
    hdfs = answer.hdfs
    return hdfs is None or hdfs.safe_mode or max(hdfs.missing, hdfs.corrupt) > tolerated


def reporting(answer: Answer) -> int:
    return answer.hdfs.live - answer.hdfs.stale if answer.hdfs else 0
