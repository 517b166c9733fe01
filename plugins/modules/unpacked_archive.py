#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Unpack an archive beside its path, mark it, then rename it: what has the name is whole."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: unpacked_archive
short_description: Unpack an archive into a directory, completely or not at all
description:
  - Unpacks beside the path, gives libraries in C(lib) the older name C(lib64), writes the mark C(.sha256), and renames.
  - A directory of that name that holds something else is replaced at the end; when anything fails, it stays as it was.
options:
  archive: {description: The archive on the host; tar tells its compression, type: path, required: true}
  path: {description: "The directory that its content becomes, without the archive's first directory", type: path, required: true}
  only_check: {description: Report whether the directory is complete (C(complete)); only what a killed run left beside it is removed, type: bool, default: false}
  must_contain: {description: "What must be in it, as a pattern below the path; any content when empty", type: str, default: ""}
  sha256: {description: "The archive's sha256, already compared", type: str, required: true}
  wait: {description: Seconds for another run to end, type: int, default: 600}
  root: {description: Directory of the host's lock, type: path, default: /opt/deeplearning}
"""

RETURN = r"""
complete: {description: Whether the directory is complete now, type: bool, returned: success}
"""

import glob
import json
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import exchange, processes, room, whole_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked

FEWEST = 100  # files and directories that an archive of NVIDIA's has about; its bytes are never fewer unpacked
OLD = ".old"
MARK, SIZES = ".sha256", ".sizes.json"


def is_whole(path, sha256):
    """Whether the directory came from this archive, and every file still has the size that it had then."""
    try:
        with open(os.path.join(path, MARK)) as handle:
            marked = handle.read().strip()
        with open(os.path.join(path, SIZES)) as handle:
            return marked == sha256 and json.load(handle) == sizes(path)
    except (IOError, OSError, ValueError):
        return False


def sizes(root):
    """Size of every file and target of every link, by path; the marks do not count."""
    file_sizes = {}
    for directory, directories, names in os.walk(root):
        for name in names + [name for name in directories if os.path.islink(os.path.join(directory, name))]:
            path = os.path.join(directory, name)
            if path not in (os.path.join(root, MARK), os.path.join(root, SIZES)):
                file_sizes[os.path.relpath(path, root)] = (
                    os.readlink(path) if os.path.islink(path) else os.path.getsize(path)
                )
    return file_sizes


def look_into(directory, must_contain):
    """Raise OSError if nothing in the directory is what it must contain; the names without version show what it contains instead."""
    if not must_contain or glob.glob(os.path.join(directory, must_contain)):
        return
    similar_paths = glob.glob(os.path.join(directory, re.sub(r"[.]so[.].*", ".so.*[.]*", must_contain)))
    names = ", ".join(sorted(os.path.relpath(path, directory) for path in similar_paths))
    raise OSError("the archive must contain %s, but contains %s" % (must_contain, names or "nothing of that name"))


def unpack(archive, path, sha256, run, must_contain=""):
    """Put the content at its path. run(argv) answers status, output and error. Raises OSError or IOError."""
    old = path + OLD
    new = exchange.draft(old)
    parent = os.path.dirname(path)
    is_new_parent = not os.path.isdir(parent)
    exchange.recover(path, old)
    if os.path.exists(archive):
        room.require(parent, os.path.getsize(archive), FEWEST)
    try:
        os.makedirs(new)
        argv = ["tar", "--extract", "--file", archive, "--directory", new, "--strip-components=1", "--no-same-owner"]
        status, output, error = run(argv)
        program = re.search(r"(\S+): Cannot exec", error)
        if program:
            raise OSError("tar requires %s for this archive, but the host lacks it: install it" % program.group(1))
        if status != 0:
            raise OSError("tar ended with status %d: %s" % (status, (error or output).strip()[-600:]))
        look_into(new, must_contain)
        if os.path.isdir(os.path.join(new, "lib")) and not os.path.lexists(os.path.join(new, "lib64")):
            os.symlink("lib", os.path.join(new, "lib64"))
        whole_files.sync_tree(new)
        whole_files.write_json(os.path.join(new, SIZES), sizes(new))
        whole_files.write_whole(os.path.join(new, MARK), (sha256 + "\n").encode("utf-8"))
        exchange.put(new, path, old)
    except Exception:
        exchange.discard(new)
        if is_new_parent and os.path.isdir(parent) and not os.listdir(parent):
            os.rmdir(parent)
        raise


def run(argv):
    """tar's status, output and error; an archive of 3 GB takes minutes."""
    answer = processes.run(argv, 3600, dict(os.environ, LC_ALL="C"))
    return (1, "", answer.problem) if answer.late else (answer.status, answer.output, answer.error)


def main():
    module = AnsibleModule(
        argument_spec={
            "archive": {"type": "path", "required": True},
            "path": {"type": "path", "required": True},
            "sha256": {"type": "str", "required": True},
            "must_contain": {"type": "str", "default": ""},
            "only_check": {"type": "bool", "default": False},
            "wait": {"type": "int", "default": 600},
            "root": {"type": "path", "default": "/opt/deeplearning"},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)  # users load these libraries, whatever root's umask is
    archive, path, sha256 = (module.params[name] for name in ("archive", "path", "sha256"))
    has_leftovers = exchange.is_left(path + OLD)
    complete = is_whole(path, sha256)
    if module.check_mode or (not has_leftovers and (complete or module.params["only_check"])):
        module.exit_json(changed=has_leftovers or not (complete or module.params["only_check"]), complete=complete)
    try:
        with HostLock("unpacking %s" % path, module.params["wait"], module.params["root"]):
            exchange.recover(path, path + OLD)
            complete = is_whole(path, sha256)  # another run may have unpacked it meanwhile
            if complete or module.params["only_check"]:
                module.exit_json(changed=has_leftovers, complete=complete)
            unpack(archive, path, sha256, run, module.params["must_contain"])
    except HostLocked as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(msg=room.explained(error, os.path.dirname(path)))
    module.exit_json(changed=True, complete=True)


if __name__ == "__main__":
    main()
