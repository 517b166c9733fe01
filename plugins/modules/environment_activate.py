#!/usr/bin/python
"""Make a sealed environment the current one, and remove old ones."""

DOCUMENTATION = r"""{
"module": "environment_activate",
"short_description": "Switch to a sealed environment, go back, or only check that it is ready",
"description": [
  "C(current) is switched with one rename. Switching it back is the rollback, because the client's settings (Spark, Java, Hadoop) of each environment are in C(envs/<environment>.client), and C(etc/) only has links that go through C(current).",
  "Then environments beyond C(keep) are removed, and those that were never active and are not in C(keep_names); never one that a process runs from or an application in YARN names, and none if YARN does not tell.",
  "A switch that fails after C(current) changed goes back itself. C(reverted) goes back if another host failed. Then what was active before is active again, or nothing if nothing was, and the order of activations is as before.",
  "A full disk does not prevent a switch that needs little, because a reserve beside the environments makes room."],
"options": {
  "root": {"description": "Directory that contains C(envs) and C(current)", "type": "path", "default": "/opt/deeplearning"},
  "path": {"description": "The environment's path", "type": "path", "required": true},
  "state": {"description": ["C(ready) only checks that the environment is sealed, that its files are unchanged, and that the switch can be written.", "C(cleaned) switches nothing and only removes old ones. C(path) stays, too, whether or not it is active yet."], "type": "str", "choices": ["ready", "active", "reverted", "cleaned"], "default": "active"},
  "previous": {"description": "What C(reverted) goes back to, as the switch answered it. Empty if nothing was active.", "type": "str", "default": ""},
  "keep": {"description": "How many environments stay besides the current one, of those that were active. Without it, all that are sealed stay.", "type": "int"},
  "keep_names": {"description": "Environments that stay all the same", "type": "list", "elements": "str", "default": []},
  "timeout": {"description": "Seconds for another run on this host to end", "type": "int", "default": 600},
  "principal": {"description": "Whose login to a cluster with Kerberos; none without one", "type": "str", "default": ""},
  "keytab": {"description": "File of this host with its keys", "type": "str", "default": "", "no_log": false}
}}"""

RETURN = r"""
activated: {description: Whether C(current) was switched now, type: bool, returned: always}
previous: {description: Name of the environment that was active before; empty without one, type: str, returned: always}
removed: {description: Names of the environments that were removed, type: list, returned: always}
spared: {description: Old environments that stay because processes still run from them (their numbers) or YARN may need them (why), type: dict, returned: always}
"""

import glob
import os
import shutil

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    atomic_files,
    disk_space,
    documented,
    environment_imports,
    environment_tree,
    own_entries,
    yarn_cluster,
)
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.environment_history import ACTIVATED, activations, current_of
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock

PROBE = 8192  # bytes: what a switch writes at once is less


def old_environments(root, keep, active, previous, spared=()):
    """Names of the environments that may go: all but the active one, the `keep` that were active last, and those of these names.

    One that was never active is no way back. Without `keep`, all that are sealed stay.
    """
    numbers = activations(root)
    usable, unusable_names = [], []
    for name in sorted(numbers):
        if name != active:
            path = os.path.join(root, "envs", name)
            ready = names.live_tree(path) and environment_tree.seal_of(path) is not None
            was_active = numbers[name] != 0 or name == previous or keep is None
            (usable if ready and was_active else unusable_names).append(name)
    usable.sort(key=lambda name: (name == previous, numbers[name], name), reverse=True)
    return [name for name in unusable_names + usable[len(usable) if keep is None else keep :] if name not in spared]


def users_of(path):
    """Processes that use an environment; imports that were killed there are none."""
    for tree in names.trees(path):
        environment_imports.clear(tree)
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
    """Point etc/ at what is written beside the current environment. What release 0.2 told there about it goes."""
    client, changed = path + names.CLIENT, False
    for pattern in ("CURRENT.txt", os.path.join("envs", "*" + names.CLIENT, "CURRENT.txt")):
        for notice in glob.glob(os.path.join(root, pattern)):
            os.unlink(notice)
            changed = True
    settings = sorted(set(os.listdir(client)) - set([own_entries.PROBE])) if os.path.isdir(client) else []
    if settings and not os.path.isdir(os.path.join(root, "etc")):
        os.makedirs(os.path.join(root, "etc"), 0o755)
    for name in settings:
        link = os.path.join(root, "etc", name)
        target = os.path.join("..", "current", environment_tree.STATE, "client", name)
        if not os.path.islink(link) or os.readlink(link) != target:
            atomic_files.replace_link(link, target)
            changed = True
    return changed


def check(path):
    problem = names.problem(path)
    if problem:
        raise Refused("%s is not ready: %s. Run the playbook again: it builds what is missing." % (path, problem))


def check_writable(root, path):
    """Write and remove a file in each directory of the switch. On a full disk the switch has the reserve."""
    reserved = disk_space.keep_reserve(root)
    client, etc = path + names.CLIENT, os.path.join(root, "etc")
    for directory in (root, os.path.dirname(path), os.path.dirname(packages.state_file(path, ACTIVATED)), client, etc):
        probe = os.path.join(directory, own_entries.PROBE)
        try:
            if os.path.isdir(directory):  # others are made by the switch, below one that is asked
                if os.path.lexists(probe):
                    os.unlink(probe)  # of a run that was killed
                atomic_files.write_whole(probe, os.urandom(PROBE), draft=probe)
                os.unlink(probe)
        except (IOError, OSError) as error:
            if error.errno not in disk_space.FULL or not reserved:
                raise


def switch(root, path, before):
    """Make `current` name the environment; what was before stays if that fails. Whether something changed."""
    name = os.path.basename(path)
    target = os.path.join("envs", name)
    activation = environment_tree.read_json(packages.state_file(path, ACTIVATED))
    numbers = activations(root)
    number = 1 + max([numbers[other_name] for other_name in numbers if other_name != name] or [0])
    try:
        if activation is None or (before != target and numbers[name] < number):  # else a killed run has written it
            record = {"number": max(number, numbers[name]), "before": numbers[name]}
            atomic_files.write_json(packages.state_file(path, ACTIVATED), record)
        if current_of(root) != target:
            atomic_files.replace_link(os.path.join(root, "current"), target)
        return connect_client(root, path) or activation is None
    except Exception:
        if before != target:
            revert(root, path, before)
        raise


def revert(root, path, before):
    """`current` names what it named before the switch to `path`; so does the order of activations."""
    current = os.path.join(root, "current")
    if before and current_of(root) != before:
        atomic_files.replace_link(current, before)
    elif not before and os.path.islink(current):
        os.unlink(current)
        for link in glob.glob(os.path.join(root, "etc", "*")):
            if os.path.islink(link) and "current" in os.readlink(link).split(os.sep):
                os.unlink(link)
        atomic_files.sync_path(root)
    state = packages.state_file(path, ACTIVATED)
    record = environment_tree.read_json(state) or {}
    if "before" in record:
        atomic_files.write_json(state, {"number": record["before"]})


def go_back(module, root, path):
    """Undo a switch of this run."""
    old_target = os.path.join("envs", module.params["previous"]) if module.params["previous"] else None
    answer = {"changed": False, "activated": False, "removed": [], "spared": {}, "previous": os.path.basename(path)}
    if current_of(root) != os.path.join("envs", os.path.basename(path)):
        return answer
    if not module.check_mode:
        with HostLock("going back from %s" % os.path.basename(path), module.params["timeout"], root):
            if old_target:
                check(os.path.join(root, old_target))
            disk_space.with_reserve(root, lambda: revert(root, path, old_target))
    return dict(answer, changed=True)


def remove_old(root, path, previous, params):
    """Remove what may go: names of what was removed, and why others stay."""
    removed, spared = [], {}
    leaving = old_environments(root, params["keep"], os.path.basename(path), previous, params["keep_names"])
    file, login = os.path.join(root, "etc", "hadoop-env.sh"), (params["principal"], params["keytab"])
    needs = yarn_cluster.reasons(leaving, file, *login) if leaving else {}
    for old in leaving:
        users = needs.get(old) or users_of(os.path.join(root, "envs", old))
        if users:
            spared[old] = users
        else:
            remove(os.path.join(root, "envs", old))
            removed.append(old)
    return removed, spared


def work(module):
    root, path = module.params["root"].rstrip("/"), module.params["path"].rstrip("/")
    name = os.path.basename(path)
    target = os.path.join("envs", name)
    if path != os.path.join(root, target):
        raise Refused(
            "The environment must be below %s/envs but its path is %s. Correct environment_path." % (root, path)
        )
    if module.params["state"] == "reverted":
        return go_back(module, root, path)
    old_target = current_of(root)
    previous = os.path.basename(old_target or "")
    result = {"changed": False, "activated": False, "removed": [], "spared": {}, "previous": previous}
    if module.params["state"] == "ready":
        if not module.check_mode:  # if nothing was built
            check(path)
            with HostLock("asking whether %s can be activated" % name, module.params["timeout"], root):
                check_writable(root, path)
        return result
    if module.params["state"] == "cleaned":
        if old_target is None:
            return result
        module.params["keep_names"] = module.params["keep_names"] + [name]
        path, name, target = os.path.join(root, old_target), previous, old_target
    result["activated"] = old_target != target
    result["diff"] = {"before": "current: %s\n" % old_target, "after": "current: %s\n" % target}
    if module.check_mode:
        keep, spared = module.params["keep"], module.params["keep_names"]
        result["removed"] = old_environments(root, keep, name, previous, spared)
        result["changed"] = result["activated"] or bool(result["removed"])
        return result
    os.umask(0o022)
    with HostLock("activating %s" % name, module.params["timeout"], root):
        check(path)
        names.remove_leftovers(os.path.join(root, "envs"))
        changed = disk_space.with_reserve(root, lambda: switch(root, path, old_target))
        result["removed"], result["spared"] = remove_old(root, path, previous, module.params)
        disk_space.keep_reserve(root)
    result["changed"] = result["activated"] or changed or bool(result["removed"])
    return result


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["root"])


if __name__ == "__main__":
    main()
