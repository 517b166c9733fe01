#!/usr/bin/python
"""Remove what this project put into HDFS, and the directories that it made there when they are empty."""

DOCUMENTATION = r"""{
"module": "remove_hdfs_files",
"short_description": "Remove the files that this project put into HDFS",
"description": ["Removes each file without the trash (they are copies of locked artifacts), uploads of it that were killed, and then the recorded directories that are empty. The record goes last, so that a run after a killed one continues."],
"options": {
  "files": {"description": "Paths in HDFS", "type": "list", "elements": "str", "required": true},
  "directories": {"description": "Directories that were made for them; the deepest first", "type": "list", "elements": "str", "default": []},
  "user": {"description": "Who writes to HDFS, on a cluster without Kerberos", "type": "str", "default": "hdfs"},
  "environment_file": {"description": "Shell file that sets JAVA_HOME and HADOOP_HOME and HADOOP_CONF_DIR", "type": "path", "required": true},
  "record": {"description": "The record of this host", "type": "path", "default": "/opt/deeplearning/etc/hdfs.json"},
  "principal": {"description": "Whose login to a cluster with Kerberos; none without one", "type": "str", "default": ""},
  "keytab": {"description": "File of this host with its keys", "type": "str", "default": "", "no_log": false}
}}"""

RETURN = r"""
removed: {description: "Files that were removed (in check mode, would be)", type: list, returned: success}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, kerberos_login
from ansible.module_utils.hadoop_dl_host.hdfs_command import ASK, Failure, Hdfs


def remove(hdfs, files, directories):
    killed = [path + end for path in files for end in (".uploading-*", "._COPYING_")]
    hdfs.must(["-rm", "-f", "-skipTrash"] + files + killed)
    for path in directories:
        status, output = hdfs.run(["-rmdir", path], ASK)
        if status and "No such file" not in output and "not empty" not in output:
            raise Failure("`hdfs dfs -rmdir %s` must work, but answered: %s. Check that HDFS is up." % (path, output))


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    params = module.params
    hdfs = Hdfs(params["environment_file"], params["user"])
    try:
        if not os.path.exists(params["environment_file"]):
            raise Failure(
                "%s is required to reach HDFS, but it is missing. Nothing was removed. Remove %s there yourself, and run again with "
                "-e remove_hdfs_files=false." % (params["environment_file"], ", ".join(params["files"]))
            )
        hdfs.check_launcher()
        with kerberos_login.logged_in(params["principal"], params["keytab"]):
            present = sorted(hdfs.listed(params["files"])[1])
            if not module.check_mode:
                remove(hdfs, params["files"], params["directories"])
        if not module.check_mode and os.path.exists(params["record"]):
            os.unlink(params["record"])
    except kerberos_login.NoLogin as failure:
        module.fail_json(msg="To remove files in HDFS, %s. Nothing was removed." % failure)
    except Failure as failure:
        module.fail_json(msg="%s To leave the files in HDFS: -e remove_hdfs_files=false." % str(failure))
    module.exit_json(changed=bool(present), removed=present)


if __name__ == "__main__":
    main()
