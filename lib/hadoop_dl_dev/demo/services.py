"""HDFS, YARN and Kafka on the demo's nodes: started side by side, and asked over their own HTTP interfaces.

A Hadoop command starts a JVM, which takes seconds on a machine that is starting eight others: none is used here.
"""

import json
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hadoop_dl_dev.demo import fixtures, nodes
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.shell import DemoError, say

UNITS = {
    "master": ("hdfs-namenode", "yarn-resourcemanager"),
    "data": ("hdfs-datanode", "yarn-nodemanager"),
    "edge": ("kafka",),
}
READY_SECONDS = 300  # a service takes 10 seconds on an idle machine, minutes on one that is busy elsewhere
REQUEST_SECONDS = 20
# What users and services of a cluster find in HDFS: path, permission, owner, group.
DIRECTORIES = (
    ("/tmp", "1777", "hdfs", "supergroup"),  # noqa: S108 (in HDFS)
    ("/app-logs", "1777", "hdfs", "hadoop"),
    ("/user", "755", "hdfs", "supergroup"),
    ("/user/analyst", "755", "analyst", "analyst"),
)
# On a cluster with Kerberos, for hadoop_principal.
OF_PROJECT = ("/apps/deeplearning", "755", "deeplearning", "deeplearning")
CURL = ("curl", "--silent", "--show-error", "--fail", "--negotiate", "--user", ":")
INSTALL_STAND_IN = (
    "[ -x /usr/bin/nvidia-smi ] || { rm -f /etc/yum.repos.d/*; cat > /etc/yum.repos.d/site.repo && "
    "dnf -q -y install nvidia-smi-standin; }"
)
# The nodes are on a network of this machine: no proxy is between.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def units_of(host: str) -> tuple[str, ...]:
    return UNITS.get(host.rstrip("0123456789"), ())


def start(cluster: Cluster) -> None:
    """Start the services, and install nvidia-smi's stand-in where GPUs are first: the NodeManager reads it."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda host: start_on(cluster, host), cluster.hosts))


def start_on(cluster: Cluster, host: str) -> None:
    container = cluster.container(host)
    if host in cluster.gpu_hosts:
        nodes.execute(container, "sh", "-c", INSTALL_STAND_IN, stdin=fixtures.REPOSITORY_FILE)
    if units_of(host):
        nodes.execute(container, "systemctl", "enable", "--quiet", "--now", "--no-block", *units_of(host))


def wait(cluster: Cluster) -> None:
    """Return when every service answers and HDFS has the directories that users need."""
    edge = cluster.addresses["edge1"]
    say("    waiting for HDFS …")
    until("HDFS", lambda: hdfs_problem(cluster))
    for path, permission, owner, group in (*DIRECTORIES, *((OF_PROJECT,) if cluster.kerberos else ())):
        webhdfs(cluster, path, "MKDIRS", permission=permission)
        webhdfs(cluster, path, "SETPERMISSION", permission=permission)
        webhdfs(cluster, path, "SETOWNER", owner=owner, group=group)
    say("    waiting for YARN and Kafka …")
    until("YARN", lambda: yarn_problem(cluster))
    until("Kafka", lambda: kafka_problem(edge))


def until(name: str, problem: Callable[[], str | None], seconds: float = READY_SECONDS, every: float = 1.0) -> None:
    """Repeat a question until it finds no problem; a DemoError with the last one after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            reason = problem()
        except (OSError, ValueError, KeyError) as error:  # not listening yet, or not all of it is up
            reason = f"{type(error).__name__}: {error}"
        if reason is None:
            return
        if time.monotonic() > deadline:
            raise DemoError(f"{name} must be ready within {seconds:.0f} seconds, but is not: {reason}")
        time.sleep(every)


def get(cluster: Cluster, path: str) -> Any:
    """Ask a daemon on master1; with Kerberos by the ticket of root there."""
    if cluster.kerberos:
        return json.loads(nodes.execute(cluster.container("master1"), *CURL, f"http://master1{path}", check=False))
    with OPENER.open(f"http://{cluster.addresses['master1']}{path}", timeout=REQUEST_SECONDS) as answer:
        return json.load(answer)


def hdfs_problem(cluster: Cluster) -> str | None:
    """Ask the NameNode how many DataNodes live, and whether it accepts writes."""
    query = urllib.parse.quote("Hadoop:service=NameNode,name=FSNamesystemState")
    [state] = get(cluster, f":9870/jmx?qry={query}")["beans"]
    if state["NumLiveDataNodes"] != cluster.data_nodes:
        return f"{state['NumLiveDataNodes']} of {cluster.data_nodes} DataNodes are live."
    return None if state["FSState"] == "Operational" else f"the NameNode is in the state {state['FSState']}."


def yarn_problem(cluster: Cluster) -> str | None:
    active = get(cluster, ":8088/ws/v1/cluster/metrics")["clusterMetrics"]["activeNodes"]
    return None if active == cluster.data_nodes else f"{active} of {cluster.data_nodes} NodeManagers are active."


def kafka_problem(edge: str) -> str | None:
    with socket.create_connection((edge, 9092), REQUEST_SECONDS):
        return None


def webhdfs(cluster: Cluster, path: str, operation: str, **parameters: str) -> None:
    """Change something in HDFS as its superuser; with Kerberos by the ticket of root on master1."""
    master = cluster.addresses["master1"]
    if cluster.kerberos:
        query = urllib.parse.urlencode({"op": operation, **parameters})
        url = f"http://master1:9870/webhdfs/v1{path}?{query}"
        nodes.execute(cluster.container("master1"), *CURL, "--request", "PUT", url)
        return
    query = urllib.parse.urlencode({"op": operation, "user.name": "hdfs", **parameters})
    request = urllib.request.Request(f"http://{master}:9870/webhdfs/v1{path}?{query}", method="PUT")
    try:
        with OPENER.open(request, timeout=REQUEST_SECONDS):
            pass
    except urllib.error.HTTPError as error:
        answer = error.read().decode("utf-8", "replace")[:300]
        raise DemoError(f"HDFS must accept {operation} of {path}, but answers {error.code}: {answer}") from error


def status(cluster: Cluster) -> list[str]:
    """Print a line for every node, and return the problems."""
    problems = []
    for host in cluster.hosts:
        container = cluster.container(host)
        state, current, complaint = nodes.state(container), "", ""
        if state == "running":
            current = nodes.execute(container, "readlink", "/opt/deeplearning/current", check=False).strip()
            units = units_of(host)
            states = nodes.execute(container, "systemctl", "is-active", *units, check=False).split() if units else []
            pairs = zip(units, states, strict=True)
            complaint = ", ".join(f"{unit} is {answer}" for unit, answer in pairs if answer != "active")
        say(f"  {host:<8} {cluster.address(host):<14} {state:<8} {current.rpartition('/')[2] or '-':<34} {complaint}")
        problems += [f"{host} is {state}"] if state != "running" else [f"{complaint} on {host}"] if complaint else []
    return problems
