#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Unpack an archive beside its place, mark it, then rename it: what has the name is whole."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: unpacked_archive
short_description: Have an archive's content as a directory, whole or not at all
description:
  - Unpacks beside the place, gives libraries in C(lib) the older name C(lib64), writes the mark C(.sha256), and renames.
  - A directory of that name that holds something else is replaced at the end; when anything fails, it stays as it was.
options:
  archive: {description: The archive on the host; tar tells its compression, type: path, required: true}
  place: {description: The directory that its content becomes, without the archive's first directory, type: path, required: true}
  holds: {description: What has to be in it, as a pattern below the place; any content when empty, type: str, default: ""}
  sha256: {description: The archive's sha256, already compared, type: str, required: true}
"""

RETURN = r""" # """  # nothing but changed

import glob
import os
import re
import shutil

from ansible.module_utils.basic import AnsibleModule

MARK = ".sha256"


def is_whole(place, sha256):
    try:
        with open(os.path.join(place, MARK)) as handle:
            return handle.read().strip() == sha256
    except (IOError, OSError):
        return False


def remove(path):
    if os.path.lexists(path):
        shutil.rmtree(path)


def look_into(directory, holds):
    """Raise OSError where nothing in the directory is what it has to hold; the names without version say what it holds instead."""
    if not holds or glob.glob(os.path.join(directory, holds)):
        return
    others = glob.glob(os.path.join(directory, re.sub(r"[.]so[.].*", ".so.*[.]*", holds)))
    found = ", ".join(sorted(os.path.relpath(path, directory) for path in others))
    raise OSError("the archive has to hold %s, and holds %s" % (holds, found or "nothing of that name"))


def unpack(archive, place, sha256, run, holds=""):
    """Put the content at its place. run(argv) answers status, output and error. Raises OSError or IOError."""
    new, old = place + ".new", place + ".old"
    parent = os.path.dirname(place)
    made = not os.path.isdir(parent)
    remove(new)
    try:
        os.makedirs(new)
        argv = ["tar", "--extract", "--file", archive, "--directory", new, "--strip-components=1", "--no-same-owner"]
        status, output, error = run(argv)
        lacking = re.search(r"(\S+): Cannot exec", error)
        if lacking:
            raise OSError("tar needs %s for this archive, and the host does not have it: install it" % lacking.group(1))
        if status != 0:
            raise OSError("tar ended with status %d: %s" % (status, (error or output).strip()[-600:]))
        look_into(new, holds)
        if os.path.isdir(os.path.join(new, "lib")) and not os.path.lexists(os.path.join(new, "lib64")):
            os.symlink("lib", os.path.join(new, "lib64"))
        with open(os.path.join(new, MARK), "w") as handle:
            handle.write(sha256 + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        remove(old)
        if os.path.lexists(place):
            os.rename(place, old)
        os.rename(new, place)
    except Exception:
        if os.path.isdir(old) and not os.path.lexists(place):
            os.rename(old, place)
        remove(new)
        if made and os.path.isdir(parent) and not os.listdir(parent):
            os.rmdir(parent)
        raise
    remove(old)


def main():
    module = AnsibleModule(
        argument_spec={
            "archive": {"type": "path", "required": True},
            "place": {"type": "path", "required": True},
            "sha256": {"type": "str", "required": True},
            "holds": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    os.umask(0o022)  # users load these libraries, whatever root's umask is
    archive, place, sha256 = (module.params[name] for name in ("archive", "place", "sha256"))
    if is_whole(place, sha256):
        module.exit_json(changed=False)
    if not module.check_mode:
        try:
            unpack(
                archive,
                place,
                sha256,
                lambda argv: module.run_command(argv, environ_update={"LC_ALL": "C"}),
                module.params["holds"],
            )
        except (IOError, OSError) as error:
            module.fail_json(msg=str(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
