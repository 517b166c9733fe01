"""What the ResourceManager answers about its NodeManagers. Python 2.7 and 3, standard library only; decides nothing.

https://hadoop.apache.org/docs/r3.3.6/hadoop-yarn/hadoop-yarn-site/ResourceManagerRest.html, and NodeManagerRest.html for the applications of a node.
"""

import re
import socket

from . import yarn_cluster

GPU = "yarn.io/gpu"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\Z")  # of a host; a NodeManager may call itself otherwise
UNHEARD = "Healthy"  # the ResourceManager's own word for a node that registered and has not reported yet (RMNodeImpl of 2.7.7 to 3.3.6)
GONE = ("DECOMMISSIONED", "LOST", "REBOOTED", "SHUTDOWN")


class Silent(Exception):
    """No ResourceManager answers; the text says what it did."""


def cluster(addresses):
    """(address, version of Hadoop, nodes) of the active ResourceManager."""
    reason = "yarn-site.xml names none"
    for address in addresses:
        try:
            # Of all states, which are not named: 2.7.7 refuses a question with one that came later.
            response = ask(address, "/ws/v1/cluster/nodes")
            version = ask(address, "/ws/v1/cluster/info")["clusterInfo"]["hadoopVersion"]
            return address, version, current(yarn_cluster.rows(response, "nodes", "node"))
        except yarn_cluster.NO_ANSWER as problem:
            reason = "%s: %s" % (address, problem)
    raise Silent(reason)


def current(nodes):
    """Without what is left of a NodeManager's earlier ports: with Hadoop's default it has another one after each start, and YARN has a node of each."""
    latest = {}
    for node in nodes:
        name, time = "%s" % node.get("nodeHostName"), node.get("lastHealthUpdate")
        rank = node.get("state") not in GONE, time if isinstance(time, int) else 0
        if name not in latest or rank > latest[name][0]:
            latest[name] = rank, node
    return [row for row in nodes if row.get("state") not in GONE or row is latest["%s" % row.get("nodeHostName")][1]]


def ask(address, path):
    return yarn_cluster.ask(address + path)


def summary(node):
    return {
        "name": node.get("nodeHostName"),
        "rack": node.get("rack"),
        "state": node.get("state"),
        "containers": node.get("numContainers") or 0,
        "gpus": gpus(node),
        "labels": yarn_cluster.entries(node, None, "nodeLabels"),
        "health": node.get("healthReport") or "",
    }


def gpus(node):
    """Of its total, which Hadoop 2.10 does not name: there those in use and the rest."""
    parts = (
        [node["totalResource"]]
        if node.get("totalResource")
        else [node.get("usedResource"), node.get("availableResource")]
    )
    part_entries = [yarn_cluster.entries(part or {}, "resourceInformations", "resourceInformation") for part in parts]
    numbers = [resource.get("value") for entries in part_entries for resource in entries if resource.get("name") == GPU]
    return sum(numbers) if all(isinstance(number, int) for number in numbers) else numbers  # the plan refuses others


def running(nodes):
    """Label -> RUNNING nodes that have it; "" counts those without one: a label's nodes are closed to the jobs of others, or to their masters."""
    numbers = {}
    for node in nodes:
        if node.get("state") == "RUNNING":
            for label in yarn_cluster.entries(node, None, "nodeLabels") or [""]:
                numbers[label] = numbers.get(label, 0) + 1
    return numbers


def reporting(nodes):
    """Names of the nodes that have reported since they registered."""
    heard = [node for node in nodes if node.get("state") == "RUNNING" and node.get("healthReport") != UNHEARD]
    return sorted(set("%s" % node.get("nodeHostName") for node in heard if NAME.match("%s" % node.get("nodeHostName"))))


def of_host(nodes, names):
    """The nodes of a host with one of these names. A name without a domain means this host's domain, if YARN has a node of that: without Kerberos
    anybody registers a NodeManager, such as data1.elsewhere."""
    domain = "." + socket.getfqdn().partition(".")[2]
    known = ["%s" % node.get("nodeHostName") for node in nodes]
    own_names = set(names).union(name + domain for name in names)
    if not set(known).intersection(own_names) and not any(name.endswith(domain) for name in known):
        own_names.update(name for name in known if name.split(".")[0] in names)
    return [node for node, name in zip(nodes, known) if name in own_names]


def applications(address, node):
    """What YARN waits for on this node, by the node's own answer, with the names of the ResourceManager; empty without an answer."""
    scheme = address.split("://")[0]
    try:
        node_apps = ask("%s://%s" % (scheme, node["nodeHTTPAddress"]), "/ws/v1/node/apps")
        everywhere = ask(address, "/ws/v1/cluster/apps?states=" + yarn_cluster.LIVING)
    except yarn_cluster.NO_ANSWER:
        return []
    titles = dict((app.get("id"), app.get("name")) for app in yarn_cluster.entries(everywhere, "apps", "app"))
    return [
        {
            "id": app.get("id"),
            "user": app.get("user"),
            "name": titles[app.get("id")],
            "containers": len(yarn_cluster.entries(app, None, "containerids")),
        }
        for app in yarn_cluster.entries(node_apps, "apps", "app")
        if app.get("id") in titles
    ]
