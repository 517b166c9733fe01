#!/usr/bin/python
"""What NVIDIA's installer left in a toolkit's directory: recorded with the mark of a complete toolkit, and compared."""

DOCUMENTATION = r"""{
"module": "toolkit_files",
"short_description": "Record and compare the files of a CUDA toolkit from a .run file",
"description": [
  "C(compared) reports whether the mark is the installer's sha256 and every recorded file is as it was installed; it changes nothing.",
  "C(begun) marks the toolkit as incomplete, and removes recorded files that differ, so that the installer writes them.",
  "C(complete) refuses empty libraries, waits until every file is on the disk, and writes the record and the mark."],
"options": {
  "path": {"description": "Directory of the toolkit", "type": "path", "required": true},
  "sha256": {"description": "The installer's sha256", "type": "str", "required": true},
  "state": {"description": "What to do", "type": "str", "choices": ["compared", "begun", "complete"], "required": true},
  "root": {"description": "Directory of the host's lock", "type": "path", "default": "/opt/deeplearning"}
}}"""

RETURN = r"""
problem: {description: The first difference; empty for a complete toolkit, type: str, returned: state is compared}
"""

import fnmatch
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import atomic_files, disk_space, documented, recorded_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked

MARK = ".deeplearning-runfile"
LEFT_OUT = ("cudnn-*", "nccl-*", MARK + "*", ".draft-*")  # of the roles cudnn and nccl, and what is written here
LIBRARY = re.compile(r"[.](so|a)([.]\d+)*$")


def listed(home):
    """Every file and link of the toolkit that the installer left."""
    top = [os.path.join(home, name) for name in os.listdir(home)]
    left_out = [path for path in top if any(fnmatch.fnmatch(os.path.basename(path), name) for name in LEFT_OUT)]
    return recorded_files.members(home, lambda path: path in left_out)


def is_code(path):
    """Programs and libraries have a sha256; of headers and documents, thousands of files, the size is compared."""
    return bool(LIBRARY.search(path)) or os.access(path, os.X_OK)


def recorded(home):
    """The record; an empty one if it is missing or torn."""
    try:
        return recorded_files.read(os.path.join(home, recorded_files.LISTED))
    except (IOError, OSError, ValueError):
        return {}


def problem(home, sha256):
    """Why the toolkit is not complete; empty if it is."""
    try:
        with open(os.path.join(home, MARK), "rb") as handle:
            if handle.read().strip() != sha256.encode("ascii"):
                return "%s is not marked as complete with the installer's sha256" % home
    except (IOError, OSError):
        return "%s has no mark of this project" % home
    record = recorded(home)
    if not record:
        return "%s has no record of its files" % home
    return next((sentence for _, sentence in recorded_files.differences(record)), "")


def begin(home):
    """The mark goes first: a run that stops after this is followed by an installation."""
    atomic_files.write_whole(os.path.join(home, MARK), b"begun\n")
    for path, _ in recorded_files.differences(recorded(home)):
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)


def complete(home, sha256):
    """Record, then mark. Raises OSError or IOError."""
    paths = listed(home)
    empty = [
        path
        for path in paths
        if (LIBRARY.search(path) or path == os.path.join(home, "bin", "nvcc"))
        and not os.path.islink(path)
        and not os.path.getsize(path)
    ]
    if empty:
        raise OSError("the installer left %d libraries or programs empty: %s" % (len(empty), ", ".join(empty[:3])))
    atomic_files.sync_tree(home)
    record, _ = recorded_files.describe(paths, is_code)
    atomic_files.write_json(os.path.join(home, recorded_files.LISTED), record)
    atomic_files.write_whole(os.path.join(home, MARK), (sha256 + "\n").encode("ascii"))


def main():
    module = AnsibleModule(argument_spec=documented.options(DOCUMENTATION), supports_check_mode=True)
    home, sha256, state = (module.params[name] for name in ("path", "sha256", "state"))
    if state == "compared":
        module.exit_json(changed=False, problem=problem(home, sha256))
    if module.check_mode:
        module.exit_json(changed=True)
    try:
        with HostLock("the files of %s" % home, root=module.params["root"]):
            if state == "begun":
                begin(home)
            else:
                complete(home, sha256)
    except HostLocked as locked:
        module.fail_json(msg=str(locked))
    except (IOError, OSError) as error:
        module.fail_json(msg=disk_space.explained(error, home))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
