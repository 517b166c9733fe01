#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Make a sealed environment the current one, and remove old ones."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: environment_activate
short_description: Switch to a sealed environment, or only check that it is ready
description:
  - C(current) is switched with one rename. Switching it back is the rollback, because the client's settings (Spark, Java, Hadoop) of each environment
    are in C(envs/<environment>.client), and C(etc/) only has links that go through C(current).
  - C(CURRENT.txt) tells everybody on the host what is active, since when, what was before, and how to go on with that; it changes with the same rename.
  - Then environments beyond C(keep) are removed, the longest inactive ones first; never one that a process
    runs from or an application in YARN names, and none where YARN does not tell.
options:
  root: {description: Directory that contains C(envs) and C(current), type: path, default: /opt/deeplearning}
  path: {description: The environment's path, type: path, required: true}
  state: {description: C(ready) only checks that the environment is sealed and its files are unchanged, type: str, choices: [ready, active], default: active}
  keep: {description: How many environments besides the current one stay, type: int, default: 1}
  timeout: {description: Seconds for another run on this host to end, type: int, default: 600}
"""

EXAMPLES = r"""
- name: Switch to the environment
  environment_activate:
    path: /opt/deeplearning/envs/tf1.15-py27-el7-0123456789ab
"""

RETURN = r"""
activated: {description: Whether C(current) was switched now, type: bool, returned: always}
removed: {description: Names of the environments that were removed, type: list, returned: always}
spared: {description: Old environments that stay because processes still run from them (their numbers) or YARN may need them (why), type: dict, returned: always}
"""

import os
import shutil

from ansible.module_utils import environment_names as names
from ansible.module_utils import environment_notice as notice
from ansible.module_utils import environment_packages as packages
from ansible.module_utils import environment_tree, source_builds, whole_files, yarn_cluster
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.environment_history import ACTIVATED, activations, current_of
from ansible.module_utils.environment_packages import Refused
from ansible.module_utils.host_lock import HostLock


def replace_link(path, target):
    """Point a link to its target by one rename; a killed run may have left the draft."""
    draft = os.path.join(os.path.dirname(path), ".new-" + os.path.basename(path))
    if os.path.lexists(draft):
        os.unlink(draft)
    os.symlink(target, draft)
    os.rename(draft, path)
    whole_files.sync_path(os.path.dirname(path))


def old_environments(root, keep, active, previous):
    """Names of the environments that may go: all but the active one and the `keep` that were active last."""
    numbers = activations(root)
    sealed, others = [], []
    for name in sorted(numbers):
        if name != active:
            path = os.path.join(root, "envs", name)
            ready = names.live_tree(path) and environment_tree.seal_of(path) is not None
            (sealed if ready else others).append(name)
    sealed.sort(key=lambda name: (name == previous, numbers[name], name), reverse=True)
    return others + sealed[keep:]


def users_of(path):
    """Processes that use an environment; a build that was killed there is none."""
    for tree in names.trees(path):
        source_builds.clear(tree)
    return packages.in_use([path] + names.trees(path))


def remove(path):
    """Remove an environment: its name first, then its trees and its client's settings."""
    if os.path.islink(path):
        os.unlink(path)
    for tree in names.trees(path):
        names.remove(tree)
    if os.path.isdir(path + names.CLIENT):
        shutil.rmtree(path + names.CLIENT)


def connect_client(root, path):
    """Point CURRENT.txt and etc/ at what is written beside the current environment."""
    client = path + names.CLIENT
    link, changed = os.path.join(root, notice.NAME), False
    if not os.path.islink(link) or os.readlink(link) != notice.TARGET:
        replace_link(link, notice.TARGET)
        changed = True
    settings = sorted(set(os.listdir(client)) - set([notice.NAME]))
    if settings and not os.path.isdir(os.path.join(root, "etc")):
        os.makedirs(os.path.join(root, "etc"), 0o755)
    for name in settings:
        link = os.path.join(root, "etc", name)
        target = os.path.join("..", "current", environment_tree.STATE, "client", name)
        if not os.path.islink(link) or os.readlink(link) != target:
            replace_link(link, target)
            changed = True
    return changed


def check(path):
    problem = names.problem(path)
    if problem:
        raise Refused("%s is not ready: %s. Run the playbook again: it builds what is missing." % (path, problem))


def work(module):
    root, path = module.params["root"].rstrip("/"), module.params["path"].rstrip("/")
    name = os.path.basename(path)
    target = os.path.join("envs", name)
    if path != os.path.join(root, target):
        raise Refused(
            "The environment must be below %s/envs but its path is %s. Correct environment_path." % (root, path)
        )
    result = {"changed": False, "activated": False, "removed": [], "spared": {}}
    before = current_of(root)
    previous = os.path.basename(before or "")
    if module.params["state"] == "ready":
        if not module.check_mode:  # where nothing was built
            check(path)
        return result
    result["activated"] = before != target
    result["diff"] = {"before": "current: %s\n" % before, "after": "current: %s\n" % target}
    if module.check_mode:
        result["removed"] = old_environments(root, module.params["keep"], name, previous)
        outdated = os.path.isdir(path) and notice.differs(root, path, result["activated"])
        result["changed"] = result["activated"] or outdated or bool(result["removed"])
        return result
    os.umask(0o022)
    with HostLock("activating %s" % name, module.params["timeout"], root):
        check(path)
        unknown = environment_tree.read_json(packages.state_file(path, ACTIVATED)) is None
        numbers = activations(root)
        number = 1 + max([numbers[other] for other in numbers if other != name] or [0])
        if unknown or (before != target and numbers[name] < number):  # else a killed run has written it
            packages.write_json(packages.state_file(path, ACTIVATED), {"number": max(number, numbers[name])})
        told = notice.write(root, path, before != target)
        if before != target:
            replace_link(os.path.join(root, "current"), target)
        connected = connect_client(root, path)
        names.remove_leftovers(os.path.join(root, "envs"))
        leaving = old_environments(root, module.params["keep"], name, previous)
        needed = yarn_cluster.reasons(leaving, os.path.join(root, "etc", "hadoop-env.sh")) if leaving else {}
        for old in leaving:
            users = needed.get(old) or users_of(os.path.join(root, "envs", old))
            if users:
                result["spared"][old] = users
            else:
                remove(os.path.join(root, "envs", old))
                result["removed"].append(old)
        told = notice.write(root, path, False) or told  # one that was removed is no way back
    result["changed"] = result["activated"] or unknown or told or connected or bool(result["removed"])
    return result


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/opt/deeplearning"},
            "path": {"type": "path", "required": True},
            "state": {"type": "str", "choices": ["ready", "active"], "default": "active"},
            "keep": {"type": "int", "default": 1},
            "timeout": {"type": "int", "default": 600},
        },
        supports_check_mode=True,
    )
    packages.end_with_result(module, work, module.params["root"])


if __name__ == "__main__":
    main()
