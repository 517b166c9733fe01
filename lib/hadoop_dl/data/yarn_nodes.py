"""A NodeManager that leaves YARN for maintenance and comes back: what speaks against it, and what is waited for.

Pure functions of what the module yarn_manager answered. How YARN decommissions, read in Hadoop 3.3.6 (NodesListManager.java) and in
https://hadoop.apache.org/docs/r3.3.6/hadoop-yarn/hadoop-yarn-site/GracefulDecommission.html:

- A refresh handles all lines of the file of excluded nodes, also those that the site added and has not refreshed yet.
- Without -g it ends every node that still decommissions; with it, their time limits become that of the command.
- A node is DECOMMISSIONING until its containers, and the applications that had some there, have ended; at the limit they are ended.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from hadoop_dl.data import typed
from hadoop_dl.data.host_facts import Count, Word
from hadoop_dl.data.typed import Sentence, Text

T = TypeVar("T")
SINCE = (2, 10)  # -server is of YARN-5434; 3.1.1 and 3.3.6 were run
ACTIVE = ("NEW", "RUNNING", "UNHEALTHY")
LEAVES = ("DECOMMISSIONING", "DECOMMISSIONED")
SHOWN = 5  # applications of a line
REPLICAS = 3  # of a block, by default: https://hadoop.apache.org/docs/r3.3.6/hadoop-project-dist/hadoop-hdfs/hdfs-default.xml, dfs.replication
# They write the file of excluded nodes themselves, so a line of this project would be lost there. The steps are theirs:
# https://docs.cloudera.com/cdp-private-cloud-base/7.1.9/managing-clusters/topics/cm-role-instance-decommission.html
# https://docs.cloudera.com/HDPDocuments/Ambari-2.6.0.0/bk_ambari-operations/content/decommissioning_masters_and_slaves.html
# No manager was met by a test.
STEPS = {
    "cloudera_manager": (
        "Cloudera Manager: YARN, Instances, the NodeManager of {host}, Actions for Selected, {action}",
        "Decommission",
        "Recommission, then Start",
    ),
    "ambari": ("Ambari: Hosts, {host}, the NodeManager's menu, {action}", "Decommission", "Recommission, then Start"),
}

NAME = Text(r"[A-Za-z0-9][A-Za-z0-9_.-]*", "the name of a host", "data1.example.com", 253)
APPLICATION = Text(r"application_\d{1,20}_\d{1,10}", "an application's id", "application_1795501148427_0001", 50)
ApplicationId = Annotated[str, APPLICATION]
State = Literal["NEW", "RUNNING", "UNHEALTHY", "DECOMMISSIONING", "DECOMMISSIONED", "LOST", "REBOOTED", "SHUTDOWN"]


class Refused(ValueError):
    """A reason not to go on; the text is the message."""


@dataclass(frozen=True)
class Node:
    """mine: of the host in question; beside: of one that leaves at the same time; excluded: the file has it; recorded: by this project, when it
    offered `had_gpus`. rack: as the site's script names it; YARN tells none of a node that has left."""

    name: Annotated[str, NAME]
    rack: Annotated[str, Sentence(200)] | None
    state: State
    containers: Count
    gpus: Count
    labels: tuple[Word, ...]
    health: Annotated[str, Sentence(200)]
    mine: bool
    beside: bool
    excluded: bool
    recorded: bool
    had_gpus: Count


@dataclass(frozen=True)
class Application:
    id: ApplicationId
    user: Annotated[str, Sentence(40)]
    name: Annotated[str, Sentence(40)]
    containers: Count


@dataclass(frozen=True)
class Yarn:
    """running: label -> RUNNING nodes that have it; "" counts those without one. racks: of RUNNING nodes."""

    version: Annotated[str, Text(r"\d{1,4}(\.\d{1,6}){1,4}[A-Za-z0-9_.-]*", "a version of Hadoop", "3.3.6", 60)]
    nodes: tuple[Node, ...]
    running: Mapping[Word, Count]
    applications: tuple[Application, ...]
    manager: Literal["cloudera_manager", "ambari"] | None
    racks: Count = 0


@dataclass(frozen=True)
class Reports:
    """Names of nodes, as the module yarn_manager answers them."""

    reporting: tuple[Annotated[str, NAME], ...]
    silent: tuple[Annotated[str, NAME], ...]


def read(answer: Any) -> Yarn:
    return read_as(Yarn, answer)


def read_as(kind: type[T], answer: Any) -> T:
    try:
        return typed.read(kind, answer)
    except typed.TypedError as error:
        raise Refused(f"The ResourceManager must answer as Hadoop's REST API does, but has {error}.") from None


def node_of(host: str, yarn: Yarn) -> Node:
    """The host's node."""
    nodes = [node for node in yarn.nodes if node.mine]
    if len(nodes) != 1:
        names = ", ".join(node.name for node in nodes) or "none"
        raise Refused(
            f"YARN must have one NodeManager of {host}, but has {names} of that name. Set node_maintenance_node to its name in YARN (yarn node -list -all)."
        )
    return nodes[0]


def refresh_problem(host: str, yarn: Yarn) -> str | None:
    """Why a refresh would also do to other nodes what nobody asked of this run."""
    other_nodes = [node for node in yarn.nodes if not node.mine and not node.recorded]
    leaving = [node.name for node in other_nodes if node.state == "DECOMMISSIONING"]
    if leaving:
        return (
            f"A refresh for {host} would reset the time limit of {', '.join(leaving)}, which the site decommissions. "
            "Wait until that has ended (yarn node -list -states DECOMMISSIONING), and run again."
        )
    pending = [node.name for node in other_nodes if node.excluded and node.state in ACTIVE]
    if pending:
        return (
            f"A refresh for {host} would take {', '.join(pending)} out of YARN, too: the site excluded it, but has not refreshed YARN. "
            "Do that, or remove the line, and run again."
        )
    return None


def drain_problem(host: str, yarn: Yarn, *, early: bool = False) -> str | None:
    """Why the host must not leave YARN; None also for one that this project excluded before.
    early: other drained hosts come back first; YARN does not report their labels yet."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", yarn.version)[:2])
    if numbers < SINCE:
        return f"A drain requires Hadoop 2.10 or later, but YARN has {yarn.version}. Drain {host} by your own means (docs/operate/operations.md)."
    node = node_of(host, yarn)
    if yarn.manager:
        return None if is_drained(node) else steps(host, yarn, f"must be out of YARN, but is {node.state}", 1)
    if node.recorded:
        return refresh_problem(host, yarn) if node.state in ACTIVE else None
    if node.excluded or node.state in LEAVES:
        return f"{node.name} is {node.state} and excluded by the site, which also puts it back. Leave it out of this run, or put it back first."
    if node.state not in ACTIVE:
        return f"The NodeManager of {host} must run before it is drained, but YARN has it as {node.state}. Start it, or leave the host out of this run."
    return together_problem(host, yarn, early=early) or refresh_problem(host, yarn)


def reboot_problem(host: str, yarn: Yarn, at_once: int, *, early: bool = False) -> str | None:
    """Why a DataNode's host must not reboot with the others of its batch, `at_once` in all. Alone, one without a NodeManager may."""
    if at_once == 1 and not any(node.mine for node in yarn.nodes):
        return None
    node_of(host, yarn)  # else its rack is unknown
    if at_once >= REPLICAS and yarn.racks < 2:
        return (
            f"Fewer hosts must reboot together than HDFS has replicas ({REPLICAS}), because the topology has one rack, but {host} would with "
            f"{at_once - 1} others. Lower upgrade_batch."
        )
    return together_problem(host, yarn, early=early)


def together_problem(host: str, yarn: Yarn, *, early: bool) -> str | None:
    """Why the host must not leave at the same time as those beside it: racks, and the last NodeManager of a label."""
    node, beside = node_of(host, yarn), [other_node for other_node in yarn.nodes if other_node.beside]
    problem = rack_problem(host, node, beside)
    if problem:
        return problem
    others_return = any(other_node.recorded and other_node.state != "RUNNING" for other_node in yarn.nodes)
    leaving = [member.labels or ("",) for member in (node, *beside) if member.state == "RUNNING"]
    for label in () if early and others_return else node.labels or ("",):
        if yarn.running.get(label, 0) - sum(label in labels for labels in leaving) < 1:
            of = f" with the label {label}" if label else " without a label" if len(yarn.running) > 1 else ""
            return (
                f"Another NodeManager{of} must run while {host} is away, but none would be left of {yarn.running.get(label, 0)}. "
                "Take one host after the other (upgrade_batch), or leave this one out."
            )
    return None


def rack_problem(host: str, node: Node, beside: Sequence[Node]) -> str | None:
    """A block has replicas on at least two racks, if the topology has two
    (https://hadoop.apache.org/docs/r3.3.6/hadoop-project-dist/hadoop-hdfs/HdfsDesign.html, replica placement)."""
    for other_node in beside:
        if other_node.rack and node.rack and other_node.rack != node.rack:
            return (
                f"Hosts that leave together must be of one rack, because HDFS keeps a replica of each block on another one, but {host} is of "
                f"{node.rack} and {other_node.name} of {other_node.rack}. Drain one host after the other (upgrade_batch), or rack by rack (--limit)."
            )
    return None


def return_problem(host: str, yarn: Yarn) -> str | None:
    """Why the host cannot come back; None also for one that has not left."""
    node = node_of(host, yarn)
    if yarn.manager:
        return None if is_back(node) else steps(host, yarn, f"must run in YARN again, but is {node.state}", 2)
    if node.recorded:
        return refresh_problem(host, yarn) if node.state != "RUNNING" else None
    if is_back(node):
        return None
    if node.excluded:
        return (
            f"{node.name} must have a record of its drain to be put back, but YARN has it as {node.state}, the file of excluded nodes has its line, and "
            "no ResourceManager in node_maintenance_resourcemanagers has a record. Nothing was changed. Add the ResourceManager that has it; or remove "
            "the line, run yarn rmadmin -refreshNodes, start the NodeManager, and run again; or leave the host out if the site excluded it."
        )
    return f"{host} must run in YARN again, but {missing(node)}, and this project did not take it out. Start its NodeManager, and run again."


def steps(host: str, yarn: Yarn, problem: str, action: int) -> str:
    words = STEPS[str(yarn.manager)]
    return (
        f"{host} {problem}, and its manager alone may change that. Do it there: {words[0].format(host=host, action=words[action])}. Then run the same command; "
        "it resumes there."
    )


def is_drained(node: Node) -> bool:
    """Whether nothing of YARN runs there any more; a NodeManager that was lost on the way has ended as well."""
    return node.state not in (*ACTIVE, "DECOMMISSIONING")


def is_back(node: Node) -> bool:
    """Whether YARN uses it again, with the GPUs that it had."""
    return node.state == "RUNNING" and node.gpus >= node.had_gpus


def missing(node: Node) -> str:
    """Why is_back is false, in words."""
    if node.state == "RUNNING":
        return f"it offers {node.gpus} of its {node.had_gpus} GPUs"
    return f"YARN has it as {node.state}" + (f" ({node.health})" if node.health else "")


def waiting(host: str, yarn: Yarn, seconds: float) -> str:
    """The progress of a drain, in one line."""
    node = node_of(host, yarn)
    names = [application_words(application) for application in yarn.applications[:SHOWN]]
    if len(yarn.applications) > SHOWN:
        names.append(f"{len(yarn.applications) - SHOWN} more")
    of = ", ".join(names) or "applications that are not named"
    count = "1 container" if node.containers == 1 else f"{node.containers} containers"
    return f"{host} waits for {count} of {of}; {minutes(seconds)} left"


def occupants(yarn: Yarn) -> list[str]:
    """What runs on the host's nodes, in words. A node that does not answer names no application; YARN still counts its containers."""
    nodes = [node for node in yarn.nodes if node.mine]
    if not nodes:
        return ["YARN has no NodeManager of this name"]
    unnamed = [] if yarn.applications else [node for node in nodes if node.containers]
    return [
        *map(application_words, yarn.applications),
        *(f"{node.containers} containers on {node.name}, which does not name their applications" for node in unnamed),
    ]


def application_words(application: Application) -> str:
    """A name is the user's text; the id is YARN's."""
    return (
        f"{application.id} ({application.user}: {application.name})"
        if application.containers
        else f"{application.id} ({application.user}: {application.name}, no container here any more)"
    )


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min" if seconds >= 120 else f"{max(0, int(seconds))} s"


def is_named(node: str, names: Collection[str]) -> bool:
    """Whether a node of YARN may be that of a host with these names, by itself; among all nodes, of_host of the host's yarn_nodes decides."""
    return node in names or node.split(".")[0] in names


def names_of(host: str, variables: Mapping[str, Any], node_name: str | None = None) -> Sequence[str]:
    """Under which names a host's node is looked for. node_name: node_maintenance_node, if the variables are not templated yet."""
    name = str(variables.get("node_maintenance_node") or "") if node_name is None else node_name
    return [name] if name else [host, *([str(variables["ansible_host"])] if variables.get("ansible_host") else [])]
