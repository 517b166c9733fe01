#!/usr/bin/python
"""Remove every environment of a host, with Spark, its settings and their receipts."""

DOCUMENTATION = r"""{
"module": "remove_environments",
"short_description": "Remove every environment with the settings of Spark and Hadoop",
"description": [
  "Removes the link C(current) first, so that nothing starts in half an environment, then the environments, then what only this project has in C(root).",
  "Refuses while a process uses something in C(root), or an application of YARN names an environment, running or in a queue, unless C(force). What this project did not make stays, by its marks and receipts, and with it its directory.",
  "A run that was killed continues."],
"options": {
  "root": {"description": "Directory that contains C(envs) and C(current)", "type": "path", "default": "/opt/deeplearning"},
  "force": {"description": "Remove also what processes or applications use", "type": "bool", "default": false},
  "principal": {"description": "Whose login to a cluster with Kerberos; none without one", "type": "str", "default": ""},
  "keytab": {"description": "File of this host with its keys", "type": "str", "default": "", "no_log": false}
}}"""

RETURN = r"""
removed: {description: "Paths that were removed (in check mode, would be)", type: list, returned: success}
"""

import glob
import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import documented, environment_imports, own_entries, removal_reader
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock

LINKS = ("current", ".new-current", "CURRENT.txt", ".new-CURRENT.txt")


def listed(root):
    """Every path that goes, in its order: the links by which an environment is found, the environments, the rest."""
    paths = [os.path.join(root, name) for name in LINKS] + own_entries.settings(root)
    paths += [os.path.join(root, "etc", "hdfs.json")] + own_entries.probes(root)
    paths += sorted(
        glob.glob(os.path.join(root, "etc", ".draft-*")) + glob.glob(os.path.join(root, "state", ".draft-*"))
    )
    envs = os.path.join(root, "envs")
    entries = [name for name in own_entries.names(envs) if removal_reader.ENVIRONMENT.match(name)]
    entries.sort(key=lambda name: (not os.path.islink(os.path.join(envs, name)), name))
    paths += [os.path.join(envs, name) for name in entries]
    paths += own_entries.below(root) + own_entries.receipts(root)
    return own_entries.present(paths)


def remove(path):
    """A directory loses its name first, so that half of one is never used."""
    if os.path.islink(path) or not os.path.isdir(path):
        os.unlink(path)
    elif os.path.basename(path).startswith(names.REMOVED):
        shutil.rmtree(path)
    else:
        names.remove(path)


def check_unused(root, force, login):
    """login: principal and keytab, with which YARN is asked."""
    if force:
        return
    envs = os.path.join(root, "envs")
    for name in own_entries.names(envs):
        if names.TREE.match(name):
            environment_imports.clear(os.path.join(envs, name))  # an import that was killed is no user
    host = removal_reader.Removal(root, login=login)
    users, applications = host.users(), host.applications()
    if applications:
        raise Refused(
            "The environments in %s must not be needed by YARN, but %s. Nothing was removed here. Let the applications end, or repair the login "
            "to YARN, and run again." % (root, "; ".join("%s: %s" % item for item in sorted(applications.items())))
        )
    if users:
        raise Refused(
            "The environments in %s must not be in use, but these processes use them: %s. Nothing was removed here. Let them end, and run "
            "again." % (root, ", ".join("%(pid)d (%(user)s, %(command)s)" % user for user in users))
        )


def work(module):
    root = module.params["root"].rstrip("/")
    paths = listed(root)
    if module.check_mode or not paths:
        return {"changed": bool(paths), "removed": paths}
    with HostLock("removing the environments", root=root):
        check_unused(root, module.params["force"], (module.params["principal"], module.params["keytab"]))
        paths = listed(root)  # another run may have removed some meanwhile
        for path in paths:
            remove(path)
    return {"changed": bool(paths), "removed": paths}


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["root"])


if __name__ == "__main__":
    main()
