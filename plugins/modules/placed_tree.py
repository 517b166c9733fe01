#!/usr/bin/python
"""Unpack an archive beside its path, mark it, then rename it: what has the name is whole."""

DOCUMENTATION = r"""{
"module": "placed_tree",
"short_description": "Have the content of an archive as a directory, completely or not at all",
"description": [
  "Unpacks beside the path, gives libraries in C(lib) the older name C(lib64), writes the mark C(.deeplearning.json), and renames.",
  "A directory of that name that has another mark, or lost or changed files since, is replaced at the end; when anything fails, it stays as it was."],
"options": {
  "path": {"description": "The directory that its content becomes, without the archive's first directory", "type": "path", "required": true},
  "sha256": {"description": "The archive's sha256. A download is compared with it", "type": "str", "required": true},
  "archive": {"description": "The archive on the host, already compared; tar tells its compression", "type": "path"},
  "url": {"description": "Where the archive is downloaded from, if it is not on the host", "type": "str"},
  "downloads": {"description": "Directory of root for the download", "type": "path", "default": "/opt/deeplearning/downloads"},
  "size": {"description": "Bytes of the download; 0 if they are not known", "type": "int", "default": 0},
  "ca": {"description": "CA bundle for a download by https", "type": "path"},
  "parts": {"description": "Directory of the archive -> directory below the path. Nothing else stays. Without them all stays in its place", "type": "dict", "default": {}},
  "must_contain": {"description": "What must be in it, as patterns below the path", "type": "list", "elements": "str", "default": []},
  "only_check": {"description": "Report whether the directory is complete; only what a killed run, or an older version, left is removed", "type": "bool", "default": false},
  "root": {"description": "Directory of the host's lock", "type": "path", "default": "/opt/deeplearning"}
}}"""

RETURN = r"""
complete: {description: Whether the directory is complete now, type: bool, returned: success}
"""

import contextlib
import glob
import os
import re

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import (
    atomic_files,
    disk_space,
    documented,
    downloads,
    earlier_records,
    processes,
    replaced_directory,
)
from ansible.module_utils.hadoop_dl_host.environment_tree import read_json
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked

FEWEST = 100  # files and directories that an archive has about; its bytes are never fewer unpacked
MARK, OLD, UNPACKED = ".deeplearning.json", ".old", ".unpacked"


def is_whole(path, sha256):
    """Whether the directory came from this archive, and has as many files and bytes as then."""
    mark = read_json(os.path.join(path, MARK)) or earlier_records.archive_mark(path)
    return bool(mark) and mark == dict(summary(path), sha256=sha256)


def summary(path):
    """How many files and links there are, and their bytes. Marks do not count, nor bytecode, which Python writes when it likes."""
    marks = [os.path.join(path, name) for name in (MARK,) + earlier_records.ARCHIVE_MARK]
    files = size = 0
    for directory, directories, names in os.walk(path):
        places = [os.path.join(directory, name) for name in directories + names]
        for place in places:
            if (os.path.islink(place) or not os.path.isdir(place)) and place not in marks and place[-4:] != ".pyc":
                files += 1
                size += os.lstat(place).st_size
    return {"files": files, "bytes": size}


def tidy(path):
    """Finish or undo what a killed run, or an older version, left. The caller must hold the lock."""
    replaced_directory.recover(path, path + OLD)
    mark = earlier_records.archive_mark(path)
    if mark and not os.path.exists(os.path.join(path, MARK)):
        atomic_files.write_json(os.path.join(path, MARK), mark)
    earlier_records.remove_archive_mark(path)


def check_content(directory, must_contain):
    """Raise OSError if the directory lacks something; the names without version show what it contains instead."""
    for pattern in must_contain:
        if not glob.glob(os.path.join(directory, pattern)):
            similar_paths = glob.glob(os.path.join(directory, re.sub(r"[.]so[.].*", ".so.*[.]*", pattern)))
            names = ", ".join(sorted(os.path.relpath(path, directory) for path in similar_paths))
            raise OSError("the archive must contain %s, but contains %s" % (pattern, names or "nothing of that name"))


def arrange(new, parts):
    """Move the parts to their places, and remove the rest."""
    for source, target in parts.items():
        if os.path.isdir(os.path.join(new, UNPACKED, source)):
            atomic_files.make_directory(os.path.dirname(os.path.join(new, target)))
            os.rename(os.path.join(new, UNPACKED, source), os.path.join(new, target))
    replaced_directory.discard(os.path.join(new, UNPACKED))


def unpack(archive, path, sha256, run, must_contain=(), parts=None):
    """Put the content at its path. run(argv) answers status, output and error. Raises OSError or IOError."""

    def fill(new):
        directory = os.path.join(new, UNPACKED) if parts else new
        atomic_files.make_directory(directory)
        argv = ["tar", "--extract", "--file", archive, "--directory", directory, "--strip-components=1"]
        status, output, error = run(argv + ["--no-same-owner", "--no-same-permissions"])
        program = re.search(r"(\S+): Cannot exec", error)
        if program:
            raise OSError("tar requires %s for this archive, but the host lacks it: install it" % program.group(1))
        if status != 0:
            raise OSError("tar ended with status %d: %s" % (status, (error or output).strip()[-600:]))
        if parts:
            arrange(new, parts)
        check_content(new, must_contain)
        if os.path.isdir(os.path.join(new, "lib")) and not os.path.lexists(os.path.join(new, "lib64")):
            os.symlink("lib", os.path.join(new, "lib64"))
        atomic_files.sync_tree(new)
        atomic_files.write_json(os.path.join(new, MARK), dict(summary(new), sha256=sha256))

    parent = os.path.dirname(path)
    is_new_parent = not os.path.isdir(parent)
    if os.path.exists(archive):
        disk_space.require(parent, os.path.getsize(archive), FEWEST)
    try:
        replaced_directory.build(path, path + OLD, fill)
    except Exception:
        if is_new_parent and os.path.isdir(parent) and not os.listdir(parent):
            os.rmdir(parent)
        raise


def run(argv):
    """tar's status, output and error; an archive of 3 GB takes minutes."""
    answer = processes.run(argv, 3600, dict(os.environ, LC_ALL="C"))
    return (1, "", answer.problem) if answer.late else (answer.status, answer.output, answer.error)


@contextlib.contextmanager
def available(params):
    """The archive's path; a download is removed at the end."""
    if not params["url"]:
        yield params["archive"]
        return
    atomic_files.make_directory(params["downloads"], 0o700)
    archive = atomic_files.own_name(os.path.join(params["downloads"], os.path.basename(params["url"])))
    try:
        disk_space.require(params["downloads"], params["size"], 1)
        downloads.fetch(params["url"], archive, params["sha256"], params["size"], ca=params["ca"])
        yield archive
    finally:
        if os.path.exists(archive):
            os.unlink(archive)


def work(params):
    """Whether the directory is complete now."""
    path, sha256 = params["path"], params["sha256"]
    with HostLock("unpacking %s" % path, root=params["root"]):
        tidy(path)
        complete = is_whole(path, sha256)
    if complete or params["only_check"]:
        return complete
    with available(params) as archive, HostLock("unpacking %s" % path, root=params["root"]):
        if not is_whole(path, sha256):  # another run may have unpacked it meanwhile
            unpack(archive, path, sha256, run, params["must_contain"], params["parts"])
    return True


def main():
    module = AnsibleModule(
        argument_spec=documented.options(DOCUMENTATION), required_one_of=[("archive", "url")], supports_check_mode=True
    )
    params = module.params
    os.umask(0o022)  # users load these libraries, whatever root's umask is
    path, complete = params["path"], is_whole(params["path"], params["sha256"])
    is_tidy = not replaced_directory.is_left(path + OLD) and not earlier_records.archive_mark(path)
    is_done = is_tidy and (complete or params["only_check"])
    if module.check_mode or is_done:
        module.exit_json(changed=not is_done, complete=complete)
    try:
        complete = work(params)
    except (HostLocked, downloads.DownloadError) as problem:
        module.fail_json(msg=str(problem))
    except (IOError, OSError) as error:
        module.fail_json(
            msg="%s must be unpacked, but that failed: %s. The host has what it had. Look at the free space (df %s) and at "
            "the archive, and run this again."
            % (path, disk_space.explained(error, os.path.dirname(path)), os.path.dirname(path))
        )
    module.exit_json(changed=True, complete=complete)


if __name__ == "__main__":
    main()
