"""Hosts, groups and Hadoop's paths from Ambari. The work is in lib/hadoop_dl/hosts/managers."""

DOCUMENTATION = r"""
name: ambari
short_description: Inventory of the hosts that Ambari manages
description:
  - Reads hosts and roles over the REST API of Ambari, with GET requests only.
  - Roles decide the groups C(data_nodes), C(edge_nodes), C(cdsw_hosts) and C(masters); variables name Hadoop's paths and release.
  - The file must be named C(ambari.yml) or C(ambari.yaml). C(inventories/managers) has an example.
  - A cached answer is used until its time is over and never afterwards. A refused login empties the cache.
extends_documentation_fragment:
  - manager_inventory
  - constructed
  - inventory_cache
options:
  plugin:
    choices: [ambari]
  url:
    env: [{name: AMBARI_URL}]
  user:
    env: [{name: AMBARI_USER}]
  password:
    env: [{name: AMBARI_PASSWORD}]
  token:
    env: [{name: AMBARI_TOKEN}]
  ca:
    env: [{name: AMBARI_CA}]
  cluster:
    description: Name of the cluster. Required if Ambari has several.
    env: [{name: AMBARI_CLUSTER}]
  timeout:
    env: [{name: AMBARI_TIMEOUT}]
  role_groups:
    description:
      - Groups and the components (C(NODEMANAGER)) that put a host into them. A group named here replaces the default of that name; others are added.
      - C(edge_nodes) has only hosts that are in no other of these groups.
  decommissioned_hosts:
    description: >-
      What to do with hosts that Ambari has decommissioned or taken offline: C(leave_out), or C(include) them in the group
      C(decommissioned) alone, if nothing is installed. Ambari does not report such hosts, so this has no effect here.
"""

from typing import Any

from hadoop_dl.hosts.managers import facts, groups
from hadoop_dl.hosts.managers.ambari import Ambari
from hadoop_dl.hosts.managers.inventory import ManagerInventory
from hadoop_dl.hosts.managers.server import Server


class InventoryModule(ManagerInventory):
    NAME = "ambari"
    PRODUCT = "Ambari"
    GROUPS = groups.AMBARI_GROUPS

    def facts(self, server: Server) -> dict[str, Any]:
        return facts.ambari_facts(Ambari(server), str(self.get_option("cluster") or ""))

    def variables(self, host: dict[str, Any]) -> dict[str, Any]:
        return groups.ambari_variables(host)
