"""A DataNode whose host reboots: what speaks against it, and what is waited for afterwards.

Pure functions of what the module hadoop_daemons_info answered. A NameNode (DatanodeManager.java of 3.3.6) takes a DataNode that was silent for 30 s for
stale, and after 10 minutes and 30 s for dead; only then its blocks count as under-replicated. So right after a reboot it still counts on the
DataNode, whether it runs or not: its last word must be younger than the reboot.
"""

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
    silent: Blocks
    missing: Blocks
    corrupt: Blocks
    under_replicated: Blocks
    safe_mode: bool
    stale_after: Annotated[int, Number(0, 3600)]  # seconds
    own_reports: bool | None


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
    if hdfs.silent > away:
        return f"{hdfs.silent} of {hdfs.live} DataNodes do not report"
    return None


def back_problem(before: Answer, answer: Answer) -> str | None:
    """Why the DataNode of a host is not back after its reboot, as a clause."""
    if before.hdfs is None or answer.hdfs is None:
        return None
    if "DataNode" not in answer.daemons:
        return "no DataNode runs there"
    if answer.hdfs.own_reports is False:
        return "its DataNode does not report"
    here, there = (state.live - state.silent for state in (answer.hdfs, before.hdfs))
    return f"{here} DataNodes report, but there were {there}" if here < there else None


def lasting(answer: Answer, tolerated: int) -> bool:
    """Whether no wait helps: before a rollout, blocks that lack a replica only may be on their way."""
    hdfs = answer.hdfs
    return hdfs is None or hdfs.safe_mode or max(hdfs.missing, hdfs.corrupt) > tolerated
