#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Prove that an environment is what its lock says and works, seal it, make it current, and remove old ones."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: environment_seal
short_description: Prove, seal and activate an environment
description:
  - The proof - every component is marked complete, every package of the lock is there at its version and none besides, every file has the hash of its
    package's RECORD, and the imports work in a process of their own.
  - Then C(.deeplearning/sealed.json) is written, and C(current) is switched with one rename. A failed proof leaves C(current) as it was.
options:
  root: {description: Directory that holds C(envs) and C(current), type: path, default: /opt/deeplearning}
  path: {description: Directory of the environment, type: path, required: true}
  stack: {description: Name of the stack, type: str, required: true}
  digest: {description: The environment's digest, type: str, required: true}
  lock: {description: The whole lock, type: str, required: true}
  imports: {description: Python modules that have to be importable, type: list, elements: str, required: true}
  timeout: {description: Seconds for one import, and for another run that works on the environments, type: int, default: 600}
  keep: {description: How many environments besides the current one stay, type: int, default: 1}
"""

EXAMPLES = r"""
- name: Prove the environment and make it current
  environment_seal:
    path: /opt/deeplearning/envs/tf1.15-py27-el7-0123456789ab
    stack: tf1.15-py27-el7
    digest: 0123456789ab
    lock: "{{ environment_lock }}"
    imports:
      - tensorflow
      - keras
"""

RETURN = r"""
sealed: {description: Whether it was sealed now, type: bool, returned: always}
activated: {description: Whether C(current) was switched now, type: bool, returned: always}
removed: {description: Names of the environments that were removed, type: list, returned: always}
spared: {description: Old environments that stay because processes still run from them, type: dict, returned: always}
"""

import errno
import os
import shutil
import signal

from ansible.module_utils import environment_packages as packages
from ansible.module_utils import environment_tree
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.environment_packages import Refused

REMOVED = ".removing-"


def proof_problems(environment, lock, imports, timeout):
    """Say in sentences why the environment is not what it has to be; an empty list is the proof."""
    found, entries = [], []
    for component, section in sorted(packages.sections(lock).items()):
        marker = packages.read_json(packages.state_file(environment, component + ".json"))
        if not marker:
            found.append("The component %s is not completely installed." % component)
        elif marker.get("lock_sha256") != packages.lock_digest(section):
            found.append("The component %s was installed from another lock." % component)
        entries += packages.parse_section(section)
    if found:
        return found
    found += [sentence + "." for sentence in packages.missing_packages(environment, entries)]
    known = set(entry["project"] for entry in entries)
    found += ["%s is not in the lock." % name for name in sorted(packages.installed(environment)) if name not in known]
    changed = packages.record_problems(environment)
    found += [sentence + "." for sentence in changed[:10]]
    if len(changed) > 10:
        found.append("%d more files differ." % (len(changed) - 10))
    if not found:
        found += [problem for problem in (import_problem(environment, name, timeout) for name in imports) if problem]
    return found


def import_problem(environment, name, timeout):
    """None when the module can be imported by the environment's Python."""
    python = os.path.join(environment, "bin", "python")
    variables = packages.clean_variables(TF_CPP_MIN_LOG_LEVEL="2", HOME="/")
    status, output = packages.run([python, "-c", "__import__(%r)" % str(name)], timeout, variables)
    if status == 0:
        return None
    said = [line for line in output.splitlines() if line.strip()]
    last = said[-1].strip() if said else "no output"
    if status is None:
        return "import %s did not end within %d s (last: %s)." % (name, timeout, last)
    if status == -signal.SIGILL:
        return (
            "import %s ends with an illegal instruction: this CPU lacks a feature that the wheel was built for (AVX)."
            % name
        )
    if "libcu" in last or "libnv" in last:
        return (
            "import %s fails: %s. The GPU wheels of TensorFlow up to 1.14 need CUDA's libraries on the host: install CUDA "
            "first, or choose a stack with the CPU wheel." % (name, last)
        )
    return "import %s fails: %s." % (name, last)


def seal(environment, stack, digest):
    """Write down the tree, then, last of all, that it is sealed."""
    tree = environment_tree.lines(environment)
    packages.write_whole(packages.state_file(environment, "tree.txt"), b"\n".join(tree))
    packages.write_json(
        packages.state_file(environment, "sealed.json"),
        {"stack": stack, "digest": digest, "files": len(tree), "tree_sha256": environment_tree.digest(tree)},
    )


def current_of(root):
    link = os.path.join(root, "current")
    if os.path.islink(link):
        return os.readlink(link)
    if os.path.lexists(link):
        raise Refused(
            "%s has to be a link to the active environment, and it is something else. Move it away, then run the playbook "
            "again." % link
        )
    return None


def switch(root, target):
    draft = os.path.join(root, ".current-%d" % os.getpid())
    os.symlink(target, draft)
    os.rename(draft, os.path.join(root, "current"))


def old_environments(root, keep, active):
    """Names of environments that may go: all but the active one and the `keep` last sealed ones."""
    directory = os.path.join(root, "envs")
    sealed, others = [], []
    for name in sorted(os.listdir(directory) if os.path.isdir(directory) else []):
        path = os.path.join(directory, name)
        if name == active or name.startswith(".") or not os.path.isdir(os.path.join(path, environment_tree.STATE)):
            continue
        try:
            sealed.append((os.path.getmtime(packages.state_file(path, "sealed.json")), name))
        except (IOError, OSError):
            others.append(name)
    return others + [name for _, name in sorted(sealed, reverse=True)[keep:]]


def remove(root, name):
    """Take the name away first, so that a half-removed tree is never an environment."""
    directory = os.path.join(root, "envs")
    os.rename(os.path.join(directory, name), os.path.join(directory, REMOVED + name))
    shutil.rmtree(os.path.join(directory, REMOVED + name))


def work(module):
    root, path = module.params["root"].rstrip("/"), module.params["path"].rstrip("/")
    stack, digest = module.params["stack"], module.params["digest"]
    name = os.path.basename(path)
    target = os.path.join("envs", name)
    if path != os.path.join(root, target) or name != "%s-%s" % (stack, digest):
        raise Refused(
            "The environment of %s has to be %s/envs/%s-%s, and its path is %s. Correct environment_path."
            % (stack, root, stack, digest, path)
        )
    result = {"changed": False, "sealed": False, "activated": False, "removed": [], "spared": {}}
    before = current_of(root)
    problem = environment_tree.problem(path) if os.path.isdir(path) else "not there"
    result["sealed"], result["activated"] = problem is not None, before != target
    if module.check_mode:
        result["removed"] = old_environments(root, module.params["keep"], name)
        result["changed"] = result["sealed"] or result["activated"] or bool(result["removed"])
        result["diff"] = difference(before, target, problem)
        return result
    if not os.path.isdir(path):
        raise Refused(
            "The environment %s is needed, and it is not there. Run the roles pip, tensorflow and keras first." % path
        )
    os.umask(0o022)
    with packages.Turn(os.path.join(root, "envs"), module.params["timeout"]):
        if problem is not None:
            if environment_tree.seal_of(path) is not None:
                raise Refused(
                    "%s has to be the tree that was sealed, and it is not: %s. Run the roles pip, tensorflow and keras: they "
                    "repair it." % (path, problem)
                )
            found = proof_problems(path, module.params["lock"], module.params["imports"], module.params["timeout"])
            if found:
                raise Refused(
                    "The environment %s has to be proved before it becomes active, and this was found: %s The active "
                    "environment (%s) is as it was. Run the playbook again once that is corrected."
                    % (path, " ".join(found), before or "none")
                )
            seal(path, stack, digest)
        if before != target:
            switch(root, target)
        for old in os.listdir(os.path.join(root, "envs")):
            if old.startswith(REMOVED):
                shutil.rmtree(os.path.join(root, "envs", old))
        for old in old_environments(root, module.params["keep"], name):
            users = packages.in_use(os.path.join(root, "envs", old))
            if users:
                result["spared"][old] = users
            else:
                remove(root, old)
                result["removed"].append(old)
    result["changed"] = result["sealed"] or result["activated"] or bool(result["removed"])
    result["diff"] = difference(before, target, problem)
    return result


def difference(before, target, problem):
    return {
        "before": "current: %s\nseal: %s\n" % (before, problem or "whole"),
        "after": "current: %s\nseal: whole\n" % target,
    }


def main():
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "default": "/opt/deeplearning"},
            "path": {"type": "path", "required": True},
            "stack": {"type": "str", "required": True},
            "digest": {"type": "str", "required": True},
            "lock": {"type": "str", "required": True},
            "imports": {"type": "list", "elements": "str", "required": True},
            "timeout": {"type": "int", "default": 600},
            "keep": {"type": "int", "default": 1},
        },
        supports_check_mode=True,
    )
    try:
        result = work(module)
    except Refused as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        module.fail_json(
            msg="%s has to be writable and have room, and the system says: %s. Correct that, then run the playbook again."
            % (module.params["root"], error)
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
