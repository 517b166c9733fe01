#!/usr/bin/python
"""Read which of Hadoop's masters and DataNodes run on a host, and ask HDFS whether it can do without one of them."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: hadoop_daemons_info
short_description: Read which of Hadoop's daemons run on a host, and the state of HDFS
description:
  - On a cluster with Kerberos the login is the NodeManager's own, if yarn-site.xml names it here.
options:
  conf_dir: {description: Directory of Hadoop's configuration, type: path, required: true}
  hdfs: {description: "Ask the NameNodes, also if no DataNode runs at this moment", type: bool, default: false}
"""

RETURN = r"""
daemons: {description: "Of DataNode, JournalNode, NameNode, ResourceManager, ZooKeeper", type: list, elements: str, returned: always}
hdfs: {description: "Numbers of DataNodes (live, stale) and blocks (missing, corrupt, under_replicated); safe_mode, stale_after", type: dict, returned: always}
silent: {description: Why HDFS did not answer; empty if it was not asked, type: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import name_nodes, yarn_admin
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin


def main():
    module = AnsibleModule(
        argument_spec={
            "conf_dir": {"type": "path", "required": True},
            "hdfs": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    daemons, health, silent = name_nodes.daemons(), {}, ""
    if module.params["hdfs"] or "DataNode" in daemons:
        try:
            with yarn_admin.Admin(module.params["conf_dir"], None, None, "nodemanager") as admin:
                health = name_nodes.health(admin.configuration)
        except (NoLogin, name_nodes.Silent) as problem:
            silent = "%s" % problem
    module.exit_json(changed=False, daemons=daemons, hdfs=health, silent=silent)


if __name__ == "__main__":
    main()
