"""The facts of a management server for an inventory: every host with its cluster, roles and state, as plain data that a cache can hold.

No configuration and no login is in it.
"""

from typing import Any

from hadoop_dl.hosts.managers.ambari import Ambari
from hadoop_dl.hosts.managers.cloudera_manager import ClouderaManager
from hadoop_dl.hosts.managers.listed import Listed
from hadoop_dl.hosts.managers.server import ManagerError

Json = dict[str, Any]
PARCELS = Listed.parcels_directory  # where Cloudera Manager unpacks parcels unless parcels_directory is set


def cloudera_facts(manager: ClouderaManager, cluster: str = "") -> Json:
    """The hosts of all clusters, or of one (by its name or display name)."""
    clusters = [
        cluster_item
        for cluster_item in manager.clusters()
        if not cluster or cluster in (cluster_item.get("name"), cluster_item.get("displayName"))
    ]
    if cluster and not clusters:
        raise ManagerError(f"{manager.server} has no cluster {cluster}. Correct its name.")
    of_host: dict[str, Json] = {}
    directory = manager.config("cm", "allHosts").get("parcels_directory") or PARCELS
    for cluster_item in clusters:
        name = cluster_item["name"]
        active = [parcel for parcel in manager.parcels(name) if parcel.get("stage") == "ACTIVATED"]
        parcels = {str(parcel.get("product")): str(parcel.get("version")) for parcel in active}
        version = str(cluster_item.get("fullVersion") or "")
        for service in manager.services(name):
            for role in manager.roles(name, service["name"]):
                host = of_host.setdefault(role["hostRef"]["hostId"], {"roles": set()})
                host["roles"].add(f"{service['type']}:{role['type']}")
                host.update(cluster=cluster_item.get("displayName") or name, version=version, parcels=parcels)
    hosts = []
    for host in manager.hosts():
        part = of_host.get(host["hostId"], {})
        if cluster and not part:
            continue
        hosts.append(
            {
                "name": host["hostname"],
                "id": host["hostId"],
                "ip": host.get("ipAddress") or "",
                "rack": host.get("rackId") or "",
                "cluster": part.get("cluster", ""),
                "version": part.get("version", ""),
                "distribution": cloudera_distribution(part.get("version", "")),
                "parcels": part.get("parcels", {}),
                "parcels_directory": directory,
                "roles": sorted(part.get("roles", ())),
                "maintenance": manager.maintenance(host),
                "commission_state": host.get("commissionState") or "UNKNOWN",
                "health": host.get("healthSummary") or "",
            }
        )
    return {"hosts": sorted(hosts, key=lambda host: str(host["name"]))}


def cloudera_distribution(version: str) -> str:
    """cdh for 5 and 6, cdp for 7; as compat/hadoop.yml and the resolver name them."""
    major = version.partition(".")[0]
    return {"5": "cdh", "6": "cdh", "7": "cdp"}.get(major, "")


def ambari_facts(manager: Ambari, cluster: str = "") -> Json:
    """The hosts of one cluster with their components."""
    cluster_item = manager.cluster(cluster)
    name, version = str(cluster_item["cluster_name"]), str(cluster_item.get("version") or "")
    distribution, _, release = version.partition("-")
    hosts = []
    for item in manager.hosts(name):
        host = manager.part(item, "Hosts")
        parts = [component.get("HostRoles", {}) for component in item.get("host_components", [])]
        hosts.append(
            {
                "name": host["host_name"],
                "ip": host.get("ip") or "",
                "rack": host.get("rack_info") or "",
                "cluster": name,
                "version": release,
                "distribution": distribution.lower(),
                "roles": sorted(str(part["component_name"]) for part in parts if part.get("component_name")),
                "maintenance": manager.maintenance(host),
                "health": host.get("host_status") or "",
            }
        )
    return {"hosts": sorted(hosts, key=lambda host: str(host["name"]))}
