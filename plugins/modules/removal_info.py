#!/usr/bin/python
"""Tell what of this project is on a host, by its records there, and which processes use it."""

DOCUMENTATION = r"""{
"module": "removal_info",
"short_description": "Read what this project installed on a host",
"description": [
  "Reads what the roles recorded on the host (receipts, records, marks), so the answer does not depend on the inventory, which may have changed since.",
  "C(users) are processes that run from the project's directory, have a file of it mapped, or work in it.",
  "C(applications) are environments that an application of YARN names, running or in a queue, each with the reason. If the ResourceManager that the host's settings name does not answer, all environments are."],
"options": {
  "root": {"description": "Directory of this project", "type": "path", "default": "/opt/deeplearning"},
  "bazel_root": {"description": "Directory of the versions of bazel", "type": "path", "default": "/opt/bazel"},
  "principal": {"description": "Whose login to a cluster with Kerberos; none without one", "type": "str", "default": ""},
  "keytab": {"description": "File of this host with its keys", "type": "str", "default": "", "no_log": false}
}}"""

RETURN = r"""
removal:
  description: environments (lines), hdfs (files and directories and user), yarn_gpu, cdsw, container_runtime, gpu (role -> what it installed), build (paths), bazel, mirror, stays (paths), users, applications; parts names those that are there
  type: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented
from ansible.module_utils.hadoop_dl_host.removal_reader import Removal


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    login = (module.params["principal"], module.params["keytab"])
    host = Removal(module.params["root"].rstrip("/"), module.params["bazel_root"], login=login)
    module.exit_json(changed=False, removal=host.answer())


if __name__ == "__main__":
    main()
