"""Hosts, groups and Hadoop's paths from Cloudera Manager. The work is in lib/hadoop_dl/hosts/managers."""

DOCUMENTATION = r"""
name: cloudera_manager
short_description: Inventory of the hosts that Cloudera Manager manages
description:
  - Reads hosts and roles over the REST API of Cloudera Manager, with GET requests only.
  - Roles decide the groups C(data_nodes), C(edge_nodes), C(cdsw_hosts) and C(masters); variables name Hadoop's paths and release.
  - The file must be named C(cloudera_manager.yml) or C(cloudera_manager.yaml). C(inventories/managers) has an example.
  - A cached answer is used until its time is over and never afterwards. A refused login empties the cache.
extends_documentation_fragment:
  - manager_inventory
  - constructed
  - inventory_cache
options:
  plugin:
    choices: [cloudera_manager]
  url:
    env: [{name: CLOUDERA_MANAGER_URL}]
  user:
    env: [{name: CLOUDERA_MANAGER_USER}]
  password:
    env: [{name: CLOUDERA_MANAGER_PASSWORD}]
  token:
    env: [{name: CLOUDERA_MANAGER_TOKEN}]
  ca:
    env: [{name: CLOUDERA_MANAGER_CA}]
  cluster:
    description: Name or display name of one cluster. Unset, all clusters, also hosts that belong to none.
    env: [{name: CLOUDERA_MANAGER_CLUSTER}]
  timeout:
    env: [{name: CLOUDERA_MANAGER_TIMEOUT}]
  role_groups:
    description:
      - Groups and the role types (C(NODEMANAGER) or C(YARN:NODEMANAGER)) that put a host into them. A group named here replaces the default of that name; others are added.
      - C(edge_nodes) has only hosts that are in no other of these groups.
  decommissioned_hosts:
    description: >-
      What to do with hosts that Cloudera Manager has decommissioned or taken offline: C(leave_out), or C(include) them in the group
      C(decommissioned) alone, if nothing is installed.
"""

from typing import Any

from hadoop_dl.hosts.managers import facts, groups
from hadoop_dl.hosts.managers.cloudera_manager import ClouderaManager
from hadoop_dl.hosts.managers.inventory import ManagerInventory
from hadoop_dl.hosts.managers.server import Server


class InventoryModule(ManagerInventory):
    NAME = "cloudera_manager"
    PRODUCT = "Cloudera Manager"
    GROUPS = groups.CLOUDERA_GROUPS

    def facts(self, server: Server) -> dict[str, Any]:
        return facts.cloudera_facts(ClouderaManager(server), str(self.get_option("cluster") or ""))

    def variables(self, host: dict[str, Any]) -> dict[str, Any]:
        return groups.cloudera_variables(host)
