"""Which of this project's groups a host belongs to, and its variables. Pure functions over managers.facts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Groups = Mapping[str, Sequence[str]]
LAST = "edge_nodes"  # hosts that only have clients: those of the other groups have clients as well
LEFT = ("DECOMMISSIONING", "DECOMMISSIONED", "OFFLINING", "OFFLINED")
HADOOP = ("HDFS", "YARN", "SPARK", "NODEMANAGER", "DATANODE", "NAMENODE", "RESOURCEMANAGER")

CLOUDERA_GROUPS: Groups = {
    "data_nodes": ["YARN:NODEMANAGER"],
    "masters": ["HDFS:NAMENODE", "HDFS:SECONDARYNAMENODE", "YARN:RESOURCEMANAGER"],
    "cdsw_hosts": ["CDSW:CDSW_MASTER", "CDSW:CDSW_WORKER"],
    LAST: ["YARN:GATEWAY", "SPARK_ON_YARN:GATEWAY", "SPARK2_ON_YARN:GATEWAY", "SPARK3_ON_YARN:GATEWAY"],
}
AMBARI_GROUPS: Groups = {
    "data_nodes": ["NODEMANAGER"],
    "masters": ["NAMENODE", "SECONDARY_NAMENODE", "RESOURCEMANAGER"],
    "cdsw_hosts": [],  # Ambari does not manage CDSW
    LAST: ["YARN_CLIENT", "SPARK_CLIENT", "SPARK2_CLIENT", "SPARK3_CLIENT"],
}


def groups_of(roles: Sequence[str], groups: Groups) -> list[str]:
    """The groups of a host with these roles. An entry is a role, or SERVICE:ROLE."""
    names = {*roles, *(role.rpartition(":")[2] for role in roles)}
    host_groups = [group for group, group_roles in groups.items() if names & set(group_roles)]
    return [group for group in host_groups if group != LAST or len(host_groups) == 1]


def names_problem(hosts: Sequence[Json]) -> str:
    """Why these hosts cannot be an inventory; empty if they can."""
    twice = sorted(name for name, count in Counter(host["name"] for host in hosts).items() if count > 1)
    return f"every host must appear once, but {', '.join(twice)} appears more often" if twice else ""


def decommissioned(host: Json) -> bool:
    return host.get("commission_state") in LEFT


def cloudera_variables(host: Json) -> Json:
    """The variables of a host: what the manager knows of it, and where this project finds Hadoop."""
    variables: Json = {
        "cloudera_manager_host_id": host["id"],
        "cloudera_manager_health": host["health"],
        "cloudera_manager_commission_state": host["commission_state"],
        "cloudera_manager_parcels": host["parcels"],
    }
    variables |= common_variables(host, "cloudera_manager")
    if has_hadoop(host):
        parcel = f"{host['parcels_directory']}/CDH/lib/hadoop"
        variables["hadoop_client_hadoop_home"] = parcel if "CDH" in host["parcels"] else "/usr/lib/hadoop"
        variables["hadoop_client_conf_dir"] = "/etc/hadoop/conf"
    return variables


def ambari_variables(host: Json) -> Json:
    variables = {"ambari_health": host["health"], **common_variables(host, "ambari")}
    if has_hadoop(host) and host["distribution"] == "hdp":
        variables["hadoop_client_hadoop_home"] = "/usr/hdp/current/hadoop-client"
        variables["hadoop_client_conf_dir"] = "/etc/hadoop/conf"
    return variables


def common_variables(host: Json, prefix: str) -> Json:
    variables = {f"{prefix}_{key}": host[key] for key in ("ip", "rack", "cluster", "roles", "maintenance")}
    variables["hadoop_distribution"], variables["hadoop_version"] = host["distribution"], host["version"]
    return variables


def has_hadoop(host: Json) -> bool:
    """Whether the manager deploys Hadoop and its client configuration to this host."""
    return any(part.startswith(HADOOP) for role in host["roles"] for part in role.split(":")[:1])
