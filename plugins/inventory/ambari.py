"""Hosts, groups and Hadoop's paths from Ambari. The work is in lib/hadoop_dl/hosts/managers."""

from __future__ import annotations

DOCUMENTATION = r"""
name: ambari
short_description: Inventory of the hosts that Ambari manages
description:
  - Reads hosts and roles over the REST API of Ambari, with GET requests only.
  - Roles decide the groups C(data_nodes), C(edge_nodes), C(cdsw_hosts) and C(masters); variables name Hadoop's paths and release.
  - The file must be named C(ambari.yml) or C(ambari.yaml).
  - A cached answer is used until its time is over and never afterwards. A refused login empties the cache.
extends_documentation_fragment:
  - constructed
  - inventory_cache
options:
  plugin:
    description: Name of this plugin.
    type: str
    required: true
    choices: [ambari]
  url:
    description: Address such as C(https://ambari01.example.com:8443), without user and password.
    type: str
    required: true
    env: [{name: AMBARI_URL}]
  user:
    description: User who may read Ambari; a read-only one is enough.
    type: str
    env: [{name: AMBARI_USER}]
  password:
    description: Its password, encrypted with ansible-vault, or in the environment. A readable one in the file is refused.
    type: str
    env: [{name: AMBARI_PASSWORD}]
  token:
    description: >-
      In place of user and password, a token that a gateway in front of Ambari takes (a bearer token);
      handled as the password.
    type: str
    env: [{name: AMBARI_TOKEN}]
  ca:
    description: File with the CA certificates, in PEM format, that https is checked against. Unset, those of the system.
    type: path
    env: [{name: AMBARI_CA}]
  cluster:
    description: Name of the cluster. Required where Ambari has several.
    type: str
    env: [{name: AMBARI_CLUSTER}]
  timeout:
    description: Seconds for everything that is asked of Ambari.
    type: int
    default: 300
    env: [{name: AMBARI_TIMEOUT}]
  role_groups:
    description:
      - Groups and the components (C(NODEMANAGER)) that put a host into them. A group named here replaces the default of that name; others are added.
      - C(edge_nodes) has only hosts that are in no other of these groups.
    type: dict
    default: {}
  decommissioned_hosts:
    description: >-
      What to do with hosts that Ambari has decommissioned or taken offline: C(leave_out), or C(include) them in the group
      C(decommissioned) alone, where nothing is installed. Ambari does not tell such hosts, so this has no effect here.
    type: str
    choices: [leave_out, include]
    default: leave_out
  maintenance_hosts:
    description: Whether hosts in maintenance mode are in their groups and in C(maintenance), or left out.
    type: str
    choices: [include, leave_out]
    default: include
"""

EXAMPLES = r"""
# ambari.yml, beside hosts.yml with the mirror's host
plugin: ambari
url: https://ambari01.example.com:8443
ca: /etc/pki/tls/certs/site-ca.pem
# AMBARI_USER and AMBARI_PASSWORD are in the environment
cache: true
cache_plugin: jsonfile
cache_connection: .cache/inventory
cache_timeout: 3600
compose:
  ansible_host: ambari_ip
keyed_groups:
  - key: ambari_cluster
    prefix: cluster
"""

from typing import Any

from hadoop_dl.hosts.managers import facts, groups
from hadoop_dl.hosts.managers.ambari import HEADERS, Ambari
from hadoop_dl.hosts.managers.inventory import ManagerInventory
from hadoop_dl.hosts.managers.server import Server


class InventoryModule(ManagerInventory):
    NAME = "ambari"
    PRODUCT = "Ambari"
    GROUPS = groups.AMBARI_GROUPS
    HEADERS = HEADERS

    def facts(self, server: Server) -> dict[str, Any]:
        return facts.ambari_facts(Ambari(server), str(self.get_option("cluster") or ""))

    def variables(self, host: dict[str, Any]) -> dict[str, Any]:
        return groups.ambari_variables(host)
