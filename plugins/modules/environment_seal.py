#!/usr/bin/python
"""Verify that an environment is what its lock says and works, and seal it."""

DOCUMENTATION = r"""{
"module": "environment_seal",
"short_description": "Verify and seal an environment",
"description": [
  "Verified is that every component of the lock is complete, that every file is one that the verified wheels promised and has its sha256, that there is no other file (bytecode of a promised source excepted), and that the imports work, each in a process of its own, as a user number that no account has and without a network (hadoop_dl_host/sandbox_cell.py), because nobody here knows who built the wheels.",
  "Then the sha256 of all files is written down, everything is synced to disk, C(.deeplearning/sealed.json) is written, and the environment's path points to the tree. Nothing becomes active; that is C(environment_activate).",
  "A tree that fails is not used; the next run builds another one."],
"options": {
  "path": {"description": "The environment's path; a link to its tree", "type": "path", "required": true},
  "stack": {"description": "Name of the stack", "type": "str", "required": true},
  "digest": {"description": "The environment's digest", "type": "str", "required": true},
  "lock": {"description": "The whole lock", "type": "str", "required": true},
  "imports": {"description": "Python modules that must be importable", "type": "list", "elements": "str", "required": true},
  "timeout": {"description": "Seconds for one import and for another run on this host to end", "type": "int", "default": 600}
}}"""

RETURN = r"""
sealed: {description: Whether a tree was sealed now, type: bool, returned: always}
tree: {description: Directory of the sealed tree, type: str, returned: not in check mode}
added: {description: Files that were added to the sealed tree since; they are left alone, type: list, returned: always}
removed: {description: Names of damaged trees that were removed, type: list, returned: always}
spared: {description: Damaged trees that stay because processes still run from them, type: dict, returned: always}
"""

import hashlib
import os
import re
import signal

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    atomic_files,
    documented,
    environment_bytes,
    environment_imports,
    environment_tree,
    sandbox_cell,
)
from ansible.module_utils.hadoop_dl_host import environment_build as build
from ansible.module_utils.hadoop_dl_host import environment_names as names
from ansible.module_utils.hadoop_dl_host import environment_packages as packages
from ansible.module_utils.hadoop_dl_host.environment_history import ACTIVATED
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock

LISTED = 10  # problems that a message names
ERROR = re.compile(r"\w+(\.\w+)*(Error|Exception): .")


def lock_problems(tree, lock):
    """Components that are not complete, or from another lock."""
    problems = []
    for component, section in sorted(packages.sections(lock).items()):
        mark = build.marker(tree, component)
        if not mark:
            problems.append("The component %s is not completely installed." % component)
        elif mark.get("lock_sha256") != packages.lock_digest(section):
            problems.append("The component %s was installed from another lock." % component)
    return problems


def file_problems(tree):
    """Compare every file with what the verified wheels promised; the problems, and path -> (sha256, size) of all files."""
    try:
        promised = build.promises(tree)
    except (IOError, OSError, ValueError) as error:
        return ["The list of installed files cannot be used: %s." % error], {}
    statuses = dict(environment_tree.entries(tree.encode("utf-8")))
    digests = environment_bytes.contents(tree, sorted(statuses))
    problems = []
    for path in sorted(set(promised) | set(statuses)):
        name = path.decode("utf-8", "replace")
        if path not in statuses:
            problems.append("%s is missing (%s)." % (name, ", ".join(sorted(promised[path]))))
        elif path in promised:
            if digests[path] not in [row[0] for row in promised[path].values()]:
                problems.append("%s differs from the verified wheel (%s)." % (name, ", ".join(sorted(promised[path]))))
        elif not is_bytecode_of(path, promised):
            problems.append("%s is in no verified wheel." % name)
    return problems, dict((path, (digests[path], status.st_size)) for path, status in statuses.items())


def is_bytecode_of(path, promised):
    """Whether the path is the bytecode of a source that was installed."""
    directory, base = os.path.split(path)
    if not environment_tree.is_bytecode(base):
        return False
    if os.path.basename(directory) == b"__pycache__":
        return os.path.join(os.path.dirname(directory), base.split(b".")[0] + b".py") in promised
    return path[:-1] in promised


def import_problem(run, environment, name, timeout):
    """None when the module can be imported by the environment's Python."""
    python = os.path.join(environment, "bin", "python")
    variables = packages.clean_variables(TF_CPP_MIN_LOG_LEVEL="2", HOME="/", PYTHONDONTWRITEBYTECODE="1")
    answer = run([python, "-c", "__import__(%r)" % str(name)], timeout, variables)
    if answer.status == 0:
        return None
    lines = [line for line in (answer.output + "\n" + answer.error).splitlines() if line.strip()]
    errors = [line for line in lines if ERROR.match(line)]  # TensorFlow 1 says more behind it
    last = (errors or lines or ["no output"])[-1].strip()
    if answer.status is None:
        return "import %s did not end within %d s (last: %s)." % (name, timeout, last)
    if answer.status == -signal.SIGILL:
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


def import_problems(environment, modules, timeout):
    """The problems of all modules, in their order."""
    try:
        with environment_imports.runner(environment) as run:
            problems = [import_problem(run, environment, name, timeout) for name in modules]
    except sandbox_cell.NotConfined as problem:
        return [str(problem)]
    return [problem for problem in problems if problem]


def seal(tree, stack, digest, files):
    """Write down all files and, when everything is on the disk, that the tree is sealed."""
    manifest = environment_bytes.manifest(files)
    lines = environment_tree.lines(tree)
    atomic_files.write_whole(packages.state_file(tree, "files.txt"), manifest)
    atomic_files.write_whole(packages.state_file(tree, "tree.txt"), b"\n".join(lines))
    client = packages.state_file(tree, "client")  # Spark's and Hadoop's settings, which are not part of the tree
    if not os.path.islink(client):
        os.symlink(os.path.join("..", "..", "%s-%s%s" % (stack, digest, names.CLIENT)), client)
    environment_bytes.sync(tree)
    seal = {"stack": stack, "digest": digest, "files": len(lines), "tree_sha256": environment_tree.digest(lines)}
    seal["files_sha256"] = hashlib.sha256(manifest).hexdigest()
    bare = environment_bytes.manifest(
        dict((path, row) for path, row in files.items() if not environment_tree.is_bytecode(path))
    )
    seal["contents_sha256"] = hashlib.sha256(bare).hexdigest()
    seal["lock_sha256"] = (build.marker(tree, "tensorflow") or {}).get("lock_sha256")
    seal["python"] = (build.marker(tree, "made") or {}).get("build", {}).get("version")
    atomic_files.write_json(packages.state_file(tree, "sealed.json"), seal)


def shortened(problems):
    suffix = ["%d more." % (len(problems) - LISTED)] if len(problems) > LISTED else []
    return " ".join(problems[:LISTED] + suffix)


def verify(path, tree, parameters):
    """The list of all files of a tree that is what its lock and its wheels say; Refused for any other."""
    problems = lock_problems(tree, parameters["lock"])
    advice = "Run the playbook again: it continues."
    files = {}
    if not problems:
        problems, files = file_problems(tree)
        if problems:  # never continued, or the same refusal would come for ever
            atomic_files.write_whole(packages.state_file(tree, build.FAILED), b"")
            advice = "Run the playbook again: it builds the environment again."
        else:
            problems = import_problems(tree, parameters["imports"], parameters["timeout"])
            advice = "Correct that, then run the playbook again."
    if problems:
        raise Refused(
            "%s failed its checks and was not activated: %s The active environment is unchanged. %s"
            % (path, shortened(problems), advice)
        )
    return files


def replaced_trees(path, tree):
    return [other_tree for other_tree in names.trees(path) if other_tree != tree]


def keep_activation(path, tree):
    """A repaired environment stays the way back that it was: a run that ends before the switch leaves nothing to switch for the next one."""
    activations = [environment_tree.read_json(packages.state_file(old, ACTIVATED)) for old in names.trees(path)]
    records = [record for record in activations if record]
    if records:
        last = max(records, key=lambda record: record.get("number", 0))
        atomic_files.write_json(packages.state_file(tree, ACTIVATED), last)


def work(module):
    path, stack, digest = module.params["path"].rstrip("/"), module.params["stack"], module.params["digest"]
    if os.path.basename(path) != "%s-%s" % (stack, digest):
        raise Refused(
            "The environment of %s must be named %s-%s but its path is %s. Correct environment_path."
            % (stack, stack, digest, path)
        )
    result = {"changed": False, "sealed": False, "removed": [], "spared": {}, "added": []}
    tree, live_problem = names.look(path)
    if module.check_mode:
        result["sealed"] = tree is None
        result["changed"] = result["sealed"] or names.live_tree(path) != tree or bool(replaced_trees(path, tree))
        result["diff"] = difference(live_problem)
        return result
    os.umask(0o022)
    root = os.path.dirname(os.path.dirname(path))
    with HostLock("sealing %s" % os.path.basename(path), module.params["timeout"], root):
        tree, live_problem = names.look(path)
        if tree is None:
            tree = names.unsealed_tree(path)
            if tree is None:
                raise Refused("%s must be installed before it is sealed. Run site.yml, which does both." % path)
            seal(tree, stack, digest, verify(path, tree, module.params))
            result["sealed"] = True
        moved = names.live_tree(path) != tree
        if moved:
            keep_activation(path, tree)
            names.point(path, tree)
        names.remove_leftovers(os.path.dirname(path))
        for other_tree in replaced_trees(path, tree):
            environment_imports.clear(other_tree)
            users = packages.in_use([other_tree])
            if users:
                result["spared"][os.path.basename(other_tree)] = users
            else:
                names.remove(other_tree)
                result["removed"].append(os.path.basename(other_tree))
    result["tree"] = tree
    result["added"] = environment_tree.state(tree)[1]
    result["changed"] = result["sealed"] or moved or bool(result["removed"])
    result["diff"] = difference(live_problem)
    return result


def difference(problem):
    return {"before": "seal: %s\n" % (problem or "intact"), "after": "seal: intact\n"}


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    packages.end_with_result(module, work, module.params["path"], ". The active environment is unchanged")


if __name__ == "__main__":
    main()
