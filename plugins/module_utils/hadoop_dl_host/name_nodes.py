"""Which of Hadoop's masters and DataNodes run on this host, and what the active NameNodes answer about blocks. Python 2.7 and 3, standard library only.

The answer is that of JMX (https://hadoop.apache.org/docs/r3.3.6/hadoop-project-dist/hadoop-common/Metrics.html, FSNamesystem), read from 2.10.2 and 3.3.6.
"""

import glob
import json
import os
import re
import socket

from . import yarn_cluster

# Main class of the process, or what Hadoop's launcher puts first: kernels before 4.2 show 4,096 bytes of a command, and a class path is long.
MAINS = {
    b"-Dproc_datanode": "DataNode",
    b"-Dproc_namenode": "NameNode",
    b"-Dproc_journalnode": "JournalNode",
    b"-Dproc_resourcemanager": "ResourceManager",
    b"org.apache.hadoop.hdfs.server.datanode.DataNode": "DataNode",
    b"org.apache.hadoop.hdfs.server.datanode.SecureDataNodeStarter": "DataNode",
    b"org.apache.hadoop.hdfs.server.namenode.NameNode": "NameNode",
    b"org.apache.hadoop.hdfs.qjournal.server.JournalNode": "JournalNode",
    b"org.apache.hadoop.yarn.server.resourcemanager.ResourceManager": "ResourceManager",
    b"org.apache.zookeeper.server.ZooKeeperServerMain": "ZooKeeper",
    b"org.apache.zookeeper.server.quorum.QuorumPeerMain": "ZooKeeper",
}
PROGRAMS = (b"java", b"jsvc", b"jsvc.exec")
EVERYWHERE = ("", "0.0.0.0", "[::]")  # noqa: S104 (a NameNode's setting)
COUNTS = {"missing": "NumberOfMissingBlocks", "corrupt": "CorruptBlocks", "under_replicated": "UnderReplicatedBlocks"}
STALE = "dfs.namenode.stale.datanode.interval"
# HDFS keeps the replicas of such a DataNode in its count, so a block of which it has one is not under-replicated. Since 2.9; nothing before.
AWAY = "NumInMaintenanceDeadDataNodes"
QUERY = "/jmx?qry=Hadoop:service=NameNode,name="
# FSNamesystem and FSNamesystemState; the number of stale DataNodes there is up to five minutes old, so each one's last contact is read.
BEANS = ("FSNamesystem*", "NameNodeInfo")


class Silent(Exception):
    """No active NameNode answers for one part of HDFS; the text says what it did."""


def daemons(proc="/proc"):
    """Those of MAINS that run on this host."""
    found = set()
    for path in glob.glob(os.path.join(proc, "[0-9]*", "cmdline")):
        try:
            with open(path, "rb") as handle:
                words = handle.read().split(b"\0")
            if os.path.basename(words[0]) in PROGRAMS:
                found.update(MAINS[word] for word in words if word in MAINS)
        except (IOError, OSError):  # it has ended
            continue
    return sorted(found)


def names_of(configuration, name):
    return [word.strip() for word in configuration.get(name, "").split(",") if word.strip()]


def addresses(configuration):
    """For each part of HDFS (one, or several with federation) the web addresses of its NameNodes; of an unset port Hadoop 3's and 2's."""
    secure = configuration.get("dfs.http.policy", "").upper() == "HTTPS_ONLY"
    scheme, key, ports = ("https", "https", (9871, 50470)) if secure else ("http", "http", (9870, 50070))
    default_host = re.match(
        r"hdfs://([^/:]+)", configuration.get("fs.defaultFS") or configuration.get("fs.default.name", "")
    )
    services = names_of(configuration, "dfs.internal.nameservices") or names_of(configuration, "dfs.nameservices")
    parts = []
    for service in ["." + name for name in services] or [""]:
        part = []
        for suffix in [service + "." + name for name in names_of(configuration, "dfs.ha.namenodes" + service)] or [
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
    """The numbers of COUNTS for the whole of HDFS, whether a part is in safe mode, and how many DataNodes are live or in maintenance, and were silent for stale_after seconds.

    own_reports: whether that of this host is none of these; None if the NameNode knows none with an address of this host.
    """
    interval = configuration.get(STALE, "")
    stale_after = int(interval) // 1000 if interval.isdigit() else 30
    total, own = dict(dict.fromkeys(COUNTS, 0), safe_mode=False, live=0, silent=0, stale_after=stale_after), []
    for part in addresses(configuration):
        values, contacts = active(part)
        for name, key in COUNTS.items():
            total[name] += values[key]
        total["safe_mode"] = total["safe_mode"] or values["FSState"] != "Operational"
        total["live"] += len(contacts) + values.get(AWAY, 0)
        total["silent"] += sum(seconds >= stale_after for seconds, _ in contacts) + values.get(AWAY, 0)
        own += [seconds < stale_after for seconds, address in contacts if is_local(address)]
    return dict(total, own_reports=all(own) if own else None)


def is_local(address):
    """Whether this is an address of this host, with a port."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        probe = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            probe.bind((host, 0))
        finally:
            probe.close()
    except (IOError, OSError, UnicodeError):
        return False
    return bool(host)


def active(part):
    """The values of the NameNode among these addresses that is active, and the seconds since each DataNode's last word, with its address."""
    reason = "hdfs-site.xml and core-site.xml name no NameNode"
    for address in part:
        try:
            values = {}
            for name in BEANS:
                beans = yarn_cluster.rows(yarn_cluster.ask(address + QUERY + name), None, "beans")
                # Those of FSNamesystem, which comes first, may be ten seconds old; others are of this moment.
                for bean in sorted(beans, key=lambda bean: "%s" % bean["name"]):
                    values.update(bean)
            if values["tag.HAState"] != "active":
                reason = "%s: it is %s" % (address, yarn_cluster.text(values["tag.HAState"]))
                continue
            nodes = json.loads(values["LiveNodes"], parse_int=yarn_cluster.whole_number).values()
            contacts = [(node["lastContact"], "%s" % node["xferaddr"]) for node in nodes]
            numbers = (
                [values[key] for key in COUNTS.values()] + [values.get(AWAY, 0)] + [seconds for seconds, _ in contacts]
            )
            if "FSState" in values and all(isinstance(number, int) for number in numbers):
                return values, contacts
            reason = "%s: it has something else where numbers belong" % address
        except yarn_cluster.NO_ANSWER as problem:
            reason = "%s: %s" % (address, problem)
    raise Silent(reason)
