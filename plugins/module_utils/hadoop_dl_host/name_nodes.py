"""Which of Hadoop's masters and DataNodes run on this host, and what the active NameNodes answer about blocks. Python 2.7 and 3, standard library only.

The answer is that of JMX (https://hadoop.apache.org/docs/r3.3.6/hadoop-project-dist/hadoop-common/Metrics.html, FSNamesystem), read from 2.10.2 and 3.3.6.
"""

from __future__ import absolute_import, division, print_function

import glob
import os
import re

from . import yarn_cluster

# Main class of the process -> the daemon.
MAINS = {
    b"org.apache.hadoop.hdfs.server.datanode.DataNode": "DataNode",
    b"org.apache.hadoop.hdfs.server.datanode.SecureDataNodeStarter": "DataNode",
    b"org.apache.hadoop.hdfs.server.namenode.NameNode": "NameNode",
    b"org.apache.hadoop.hdfs.qjournal.server.JournalNode": "JournalNode",
    b"org.apache.hadoop.yarn.server.resourcemanager.ResourceManager": "ResourceManager",
    b"org.apache.zookeeper.server.ZooKeeperServerMain": "ZooKeeper",
    b"org.apache.zookeeper.server.quorum.QuorumPeerMain": "ZooKeeper",
}
STALE = "dfs.namenode.stale.datanode.interval"
QUERY = "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem*"  # FSNamesystem and FSNamesystemState
EVERYWHERE = ("", "0.0.0.0")  # noqa: S104 (a NameNode's setting)
COUNTS = {
    "live": "NumLiveDataNodes",
    "stale": "NumStaleDataNodes",
    "missing": "MissingBlocks",
    "corrupt": "CorruptBlocks",
    "under_replicated": "UnderReplicatedBlocks",
}


class Silent(Exception):
    """No active NameNode answers for one part of HDFS; the text says what it did."""


def daemons(proc="/proc"):
    """Those of MAINS that run on this host."""
    found = set()
    for path in glob.glob(os.path.join(proc, "[0-9]*", "cmdline")):
        try:
            with open(path, "rb") as handle:
                found.update(MAINS[word] for word in handle.read().split(b"\0") if word in MAINS)
        except (IOError, OSError):  # it has ended
            continue
    return sorted(found)


def words(configuration, name):
    return [word.strip() for word in configuration.get(name, "").split(",") if word.strip()]


def addresses(configuration):
    """For each part of HDFS (one, or several with federation) the web addresses of its NameNodes; of an unset port Hadoop 3's and 2's."""
    secure = configuration.get("dfs.http.policy") == "HTTPS_ONLY"
    scheme, key, ports = ("https", "https", (9871, 50470)) if secure else ("http", "http", (9870, 50070))
    default_host = re.match(r"hdfs://([^/:]+)", configuration.get("fs.defaultFS", ""))
    services = words(configuration, "dfs.internal.nameservices") or words(configuration, "dfs.nameservices")
    parts = []
    for service in ["." + name for name in services] or [""]:
        part = []
        for suffix in [service + "." + name for name in words(configuration, "dfs.ha.namenodes" + service)] or [
            service
        ]:
            address = configuration.get("dfs.namenode.%s-address%s" % (key, suffix), "")
            host, _, port = address.rpartition(":")
            if host in EVERYWHERE:
                host = configuration.get("dfs.namenode.rpc-address" + suffix, "").rpartition(":")[0]
                host = host if host not in EVERYWHERE else default_host.group(1) if default_host else ""
            part += ["%s://%s:%s" % (scheme, host, number) for number in ([port] if port else ports) if host]
        parts.append(part)
    return parts


def health(configuration):
    """The numbers of COUNTS for the whole of HDFS, whether a part is in safe mode, and after how many seconds without a word a DataNode is stale."""
    interval = configuration.get(STALE, "")
    total = dict(
        dict.fromkeys(COUNTS, 0), safe_mode=False, stale_after=int(interval) // 1000 if interval.isdigit() else 30
    )
    for part in addresses(configuration):
        beans = active(part)
        for name, key in COUNTS.items():
            total[name] += beans[key]
        total["safe_mode"] = total["safe_mode"] or beans["FSState"] != "Operational"
    return total


def active(part):
    """The values of the NameNode among these addresses that is active."""
    reason = "hdfs-site.xml and core-site.xml name no NameNode"
    for address in part:
        try:
            values = {}
            for bean in yarn_cluster.rows(yarn_cluster.ask(address + QUERY), None, "beans"):
                values.update(bean)
            if values["tag.HAState"] == "active" and all(isinstance(values[key], int) for key in COUNTS.values()):
                return dict(values, FSState=values["FSState"])
            reason = "%s: it is %s" % (address, yarn_cluster.text(values["tag.HAState"]))
        except yarn_cluster.NO_ANSWER as problem:
            reason = "%s: %s" % (address, problem)
    raise Silent(reason)
