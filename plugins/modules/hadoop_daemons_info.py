#!/usr/bin/python
"""Read which of Hadoop's masters and DataNodes run on a host, and ask HDFS whether it can do without one of them."""

DOCUMENTATION = r"""{
"module": "hadoop_daemons_info",
"short_description": "Read which of Hadoop's daemons run on a host, and the state of HDFS",
"description": ["On a cluster with Kerberos the login is the NodeManager's own, if yarn-site.xml names it here and it works."],
"options": {
  "conf_dir": {"description": "Directory of Hadoop's configuration", "type": "path", "required": true},
  "hdfs": {"description": "Ask the NameNodes: never, if a DataNode runs, or always", "type": "str", "choices": ["never", "datanode", "always"], "default": "datanode"}
}}"""

RETURN = r"""
daemons: {description: "Of DataNode, JournalNode, NameNode, ResourceManager, ZooKeeper", type: list, elements: str, returned: always}
hdfs: {description: "Numbers of DataNodes (live, silent) and blocks (missing, corrupt, under_replicated); safe_mode, stale_after, own_reports", type: dict, returned: always}
silent: {description: Why HDFS did not answer; empty if it was not asked, type: str, returned: always}
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, name_nodes, yarn_admin, yarn_cluster
from ansible.module_utils.hadoop_dl_host.kerberos_login import NoLogin


def ask(conf_dir):
    """With the ticket, or without one: JMX asks for none if only HDFS and YARN have Kerberos."""
    try:
        with yarn_admin.Admin(conf_dir, None, None, "nodemanager") as admin:
            return name_nodes.health(admin.configuration)
    except NoLogin as failure:
        try:
            return name_nodes.health(yarn_cluster.hadoop_configuration(conf_dir))
        except name_nodes.Silent as problem:
            raise name_nodes.Silent("%s; %s" % (problem.args[0], failure.args[0]))


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    daemons, health, silent = name_nodes.daemons(), {}, ""
    wanted = module.params["hdfs"]
    if wanted == "always" or wanted == "datanode" and "DataNode" in daemons:
        try:
            health = ask(module.params["conf_dir"])
        except name_nodes.Silent as problem:
            silent = problem.args[0]
    module.exit_json(changed=False, daemons=daemons, hdfs=health, silent=silent)


if __name__ == "__main__":
    main()
