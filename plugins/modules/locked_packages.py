#!/usr/bin/python
"""Install one component of a lock into an environment, from the mirror and by hash."""

DOCUMENTATION = r"""{
"module": "locked_packages",
"short_description": "Install a lock's component into an environment, from a mirror, every file checked by sha256",
"description": [
  "Each wheel is fetched into a directory of root's, compared with the lock (sha256 and size), and unpacked into a tree beside the active one. The sha256 of every file that the verified wheels contain is kept in C(.deeplearning/<component>.files).",
  "The component is complete when C(.deeplearning/<component>.json) is there. If a run ends between the first file and that, the component pip builds the tree again.",
  "A sealed tree is never changed. If files of it are gone or changed, the next tree is built beside it, and role environment switches to that."],
"options": {
  "environment": {"description": "The environment's path; it becomes a link to its tree C(<path>.<n>)", "type": "path", "required": true},
  "component": {"description": "Name of the component; C(pip) also makes the environment", "type": "str", "required": true},
  "lock": {"description": "The component's section of the lock", "type": "str", "required": true},
  "mirror_url": {"description": "Address of the mirror; wheels are under C(wheels/). One that ends with C(/simple) is a package index (PEP 503) of the site's.", "type": "str", "required": true},
  "mirror_login": {"description": "C(user) and C(password) for it; they are shown nowhere", "type": "dict", "no_log": true},
  "mirror_ca": {"description": "CA bundle for a mirror with https", "type": "path"},
  "python": {"description": "Interpreter that the environment is made with; needed for the component C(pip)", "type": "path"},
  "timeout": {"description": "Seconds for all downloads, for each program, and for another run on this host to end", "type": "int", "default": 3600}
}}"""

RETURN = r"""
packages: {description: "What was installed, as project and version", type: list, returned: always}
tree: {description: Directory that the component is in, type: str, returned: not in check mode}
repaired: {description: Why the sealed tree is being replaced, type: str, returned: when it is}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, documented, environment_tree
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.environment_build import Component
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock


def difference(component, reason):
    installed_packages = packages.installed(names.live_tree(component.environment) or component.environment)
    required_packages = set(component.packages())
    return {
        "before_header": "%s (%s)" % (component.environment, reason),
        "after_header": "%s, %s" % (component.environment, component.name),
        "before": "".join(line + "\n" for line in sorted(installed_packages)),
        "after": "".join(line + "\n" for line in sorted(installed_packages | required_packages)),
    }


def work(module):
    component = Component(module.params)
    result = {"changed": False, "packages": component.packages()}
    reason = component.needs()
    if reason is None:
        result["tree"] = component.tree
        return result
    result.update(changed=True, diff=difference(component, reason))
    if module.check_mode:
        return result
    os.umask(0o022)
    parent = os.path.dirname(component.environment)
    purpose = "%s into %s" % (component.name, os.path.basename(component.environment))
    with HostLock(purpose, component.timeout, os.path.dirname(parent)) as lock:
        atomic_files.make_directory(parent)
        reason = component.needs()  # another run may have done it meanwhile
        if reason is None:
            return {"changed": False, "packages": component.packages(), "tree": component.tree}
        component.install(lock)
    result["tree"] = component.tree
    live = names.live_tree(component.environment)
    if live != component.tree and environment_tree.seal_of(live) is not None:
        result["repaired"] = reason
    return result


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["environment"], ". The active environment is unchanged")


if __name__ == "__main__":
    main()
