#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Install one component of a lock into an environment, from the mirror and by hash, so that an interrupted run heals."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: locked_packages
short_description: Install a lock's component into an environment, from a mirror, every file checked by sha256
description:
  - Each wheel is fetched into a directory of root's, compared with the lock (sha256 and size), and unpacked into a tree beside the active one. The sha256 of
    every file that the verified wheels contain is kept in C(.deeplearning/<component>.files).
  - The component is complete when C(.deeplearning/<component>.json) is there and all its files have their size; until then the next run installs it again.
  - A sealed tree is never changed. If files of it are gone or changed, the next tree is built beside it, and role environment switches to that.
options:
  environment: {description: The environment's path; it becomes a link to its tree C(<path>.<n>), type: path, required: true}
  component: {description: Name of the component; C(pip) also makes the environment, type: str, required: true}
  lock: {description: The component's section of the lock, type: str, required: true}
  mirror_url:
    description: Address of the mirror; wheels are under C(wheels/). One that ends with C(/simple) is a package index (PEP 503) of the site's.
    type: str
    required: true
  mirror_login: {description: C(user) and C(password) for it; they are shown nowhere, type: dict}
  mirror_ca: {description: CA bundle for a mirror with https, type: path}
  python: {description: Interpreter that the environment is made with; needed for the component C(pip), type: path}
  timeout: {description: "Seconds for all downloads, for each program, and for another run on this host to end", type: int, default: 3600}
"""

EXAMPLES = r"""
- name: Install Keras
  locked_packages:
    environment: /opt/deeplearning/envs/tf1.15-py27-el7-0123456789ab
    component: keras
    lock: "{{ keras_lock }}"
    mirror_url: http://mirror1:8900
"""

RETURN = r"""
packages: {description: "What was installed, as project and version", type: list, returned: always}
tree: {description: Directory that the component is in, type: str, returned: not in check mode}
repaired: {description: Why the sealed tree is being replaced, type: str, returned: when it is}
"""

import os

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import environment_build as build
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host import environment_tree, mirror_source, whole_files
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock


class Installation(object):
    """One component in the environment's newest tree."""

    def __init__(self, parameters):
        self.environment = parameters["environment"].rstrip("/")
        self.component = parameters["component"]
        self.python = parameters["python"]
        self.timeout = parameters["timeout"]
        self.entries = packages.parse_section(parameters["lock"])
        self.digest = packages.lock_digest(parameters["lock"])
        self.source = mirror_source.source(
            parameters["mirror_url"], parameters["mirror_ca"], self.timeout, parameters["mirror_login"]
        )
        self.tree = None
        if not self.entries:
            raise Refused("The lock of the component %s must not be empty. Check the stack's lock." % self.component)

    def packages(self):
        return ["%(project)s %(version)s" % entry for entry in self.entries if entry["project"] not in packages.TOOLS]

    def needs(self):
        """None when there is nothing to do; else why. Finds the tree."""
        self.tree, problem = names.look(self.environment)
        if self.tree:
            if (build.marker(self.tree, self.component) or {}).get("lock_sha256") != self.digest:
                raise Refused(
                    "A sealed environment never changes, but %s was sealed with another lock of %s. Give the new lock an "
                    "environment of its own: its name contains the lock's digest." % (self.tree, self.component)
                )
            return None
        self.tree = build.unfinished_tree(self.environment)
        if self.tree and build.is_complete(self.tree, self.component, self.digest):
            return None
        return problem

    def install(self, lock):
        parent = os.path.dirname(self.environment)
        build.check_mount(parent)
        size = sum(entry["size"] for entry in self.entries)
        if self.tree is None and self.component != "pip":
            raise Refused("%s must have an unfinished tree with Python. Run the role pip first." % self.environment)
        build.check_room(parent, build.UNPACKED * size, 2 * len(self.entries))
        self.source.check(self.entries)
        if self.tree is None:
            self.begin(lock)
        if names.live_tree(self.environment) is None:  # also if a run was killed after it made the tree
            names.point(self.environment, self.tree)
        self.part(lock).install()

    def part(self, lock):
        return build.Component(
            self.environment, self.tree, self.component, self.entries, self.digest, self.source, lock
        )

    def begin(self, lock):
        """Make the next tree; what an earlier run began and cannot be continued goes."""
        if not self.python or not os.path.exists(self.python):
            raise Refused(
                "The component pip needs an interpreter of this host but python is %r. Check pip_python." % self.python
            )
        if os.path.isdir(self.environment) and os.listdir(self.environment) and not names.is_state(self.environment):
            raise Refused(
                "%s is needed for the environment, but it contains something else. Move it away, then run the playbook again."
                % self.environment
            )
        unfinished_tree = names.unsealed_tree(self.environment)
        if unfinished_tree:
            names.remove(unfinished_tree)
        self.tree = names.next_tree(self.environment)
        build.make_tree(self.part(lock), self.python)


def difference(installation, reason):
    installed_packages = packages.installed(names.live_tree(installation.environment) or installation.environment)
    required_packages = set(installation.packages())
    return {
        "before_header": "%s (%s)" % (installation.environment, reason),
        "after_header": "%s, %s" % (installation.environment, installation.component),
        "before": "".join(line + "\n" for line in sorted(installed_packages)),
        "after": "".join(line + "\n" for line in sorted(installed_packages | required_packages)),
    }


def work(module):
    installation = Installation(module.params)
    result = {"changed": False, "packages": installation.packages()}
    reason = installation.needs()
    if reason is None:
        result["tree"] = installation.tree
        return result
    result.update(changed=True, diff=difference(installation, reason))
    if module.check_mode:
        return result
    os.umask(0o022)
    parent = os.path.dirname(installation.environment)
    purpose = "%s into %s" % (installation.component, os.path.basename(installation.environment))
    with HostLock(purpose, installation.timeout, os.path.dirname(parent)) as lock:
        whole_files.make_directory(parent)
        reason = installation.needs()  # another run may have done it meanwhile
        if reason is None:
            return {"changed": False, "packages": installation.packages(), "tree": installation.tree}
        installation.install(lock)
    result["tree"] = installation.tree
    live = names.live_tree(installation.environment)
    if live != installation.tree and environment_tree.seal_of(live) is not None:
        result["repaired"] = reason
    return result


def main():
    module = AnsibleModule(
        argument_spec={
            "environment": {"type": "path", "required": True},
            "component": {"type": "str", "required": True},
            "lock": {"type": "str", "required": True},
            "mirror_url": {"type": "str", "required": True},
            "mirror_ca": {"type": "path"},
            "mirror_login": {"type": "dict", "no_log": True},
            "python": {"type": "path"},
            "timeout": {"type": "int", "default": 3600},
        },
        supports_check_mode=True,
    )
    packages.end_with_result(
        module, work, module.params["environment"], ": it continues. The active environment is unchanged"
    )


if __name__ == "__main__":
    main()
