#!/usr/bin/python
# -*- coding: utf-8 -*-
"""Make a SPARK_HOME out of the pyspark source distribution, which carries all of Spark in another layout."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: spark_home
short_description: Make a SPARK_HOME from the pyspark source distribution
description:
  - Downloads the file, checks its sha256, unpacks it beside the target, checks the result and renames it.
    A target that is whole is left alone; one that is not is replaced in the same way.
options:
  path: {description: The SPARK_HOME to make, type: path, required: true}
  url: {description: Address of the pyspark source distribution (a .tar.gz), type: str, required: true}
  sha256: {description: Its sha256, type: str, required: true}
  downloads: {description: Directory of root for the download, type: path, default: /opt/deeplearning/downloads}
  size: {description: Its size in bytes; 0 if it is not known, type: int, default: 0}
  timeout: {description: Seconds for the whole download, type: int, default: 3600}
  wait: {description: Seconds for another run to end, type: int, default: 600}
  root: {description: Directory of the host's lock, type: path, default: /opt/deeplearning}
  mirror_ca: {description: CA bundle for a mirror with https, type: path}
"""

RETURN = r"""
marker: {description: Path of the file that names what the home was made from, type: str, returned: always}
"""

import json
import os
import shutil
import tarfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.hadoop_dl_host import downloads, exchange, room, whole_files
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked

MARKER = ".deeplearning.json"
OLD = ".old"
# The source distribution's directories, and where Spark wants them.
LAYOUT = (
    ("deps/bin/", "bin/"),
    ("deps/sbin/", "sbin/"),
    ("deps/jars/", "jars/"),
    ("deps/licenses/", "licenses/"),
    ("pyspark/", "python/pyspark/"),
    ("lib/", "python/lib/"),
)
NEEDED = ("bin/spark-submit", "jars", "python/lib/pyspark.zip")


class Failure(Exception):
    """Why there is no home now; the text has three parts."""


def place(member):
    """Where a member of the archive goes, relative to the home; None if it is not needed."""
    inner = member.partition("/")[2]  # the archive's own top directory
    for source, target in LAYOUT:
        if inner.startswith(source) and len(inner) > len(source):
            path = os.path.normpath(target + inner[len(source) :])
            return None if path.startswith((".", "/")) or ".." in path.split("/") else path
    return None


def summary(home):
    """How many files there are and how many bytes; the marker itself does not count."""
    files = size = 0
    for directory, _, names in os.walk(home):
        for name in names:
            if name != MARKER and not name.endswith(".pyc"):
                files += 1
                size += os.lstat(os.path.join(directory, name)).st_size
    return {"files": files, "bytes": size}


def is_whole(home, sha256):
    """Say whether the home was made from this file and nothing has gone or grown since."""
    try:
        with open(os.path.join(home, MARKER)) as handle:
            marker = json.load(handle)
    except (IOError, OSError, ValueError):
        return False
    return marker == dict(summary(home), sha256=sha256)


def unpack(archive, home):
    """Unpack what Spark needs, in Spark's layout, owned by whoever runs this."""
    with tarfile.open(archive, "r:gz") as bundle:
        for member in bundle:
            target = place(member.name)
            if target is None or not member.isfile():
                continue
            path = os.path.join(home, target)
            whole_files.make_directory(os.path.dirname(path))
            source = bundle.extractfile(member)
            with open(path, "wb") as handle:
                shutil.copyfileobj(source, handle, 1024 * 1024)
            os.chmod(path, 0o755 if member.mode & 0o100 or target.startswith(("bin/", "sbin/")) else 0o644)
    missing_files = [name for name in NEEDED if not os.path.exists(os.path.join(home, name))]
    if missing_files:
        raise Failure(
            "The file is not a source distribution of pyspark, because it has no %s. Correct files of the stack."
            % ", ".join(missing_files)
        )


def needs(archive):
    """Bytes and inodes that the home takes."""
    size, paths = 0, set()
    with tarfile.open(archive, "r:gz") as bundle:
        for member in bundle:
            path = place(member.name)
            size += member.size if path else 0
            while path and path not in paths:
                paths.add(path)
                path = os.path.dirname(path)
    return size, len(paths) + 1


def build(archive, home, sha256):
    """Build beside the home, then put it in place; what was there goes away last."""
    old = home + OLD
    building = exchange.draft(old)
    exchange.recover(home, old)
    shutil.rmtree(home + ".building", ignore_errors=True)  # of a killed run of an older version
    room.require(os.path.dirname(home), *needs(archive))
    try:
        os.makedirs(building, 0o755)
        unpack(archive, building)
        whole_files.sync_tree(building)
        marker = json.dumps(dict(summary(building), sha256=sha256), sort_keys=True)
        whole_files.write_whole(os.path.join(building, MARKER), marker.encode("utf-8"))
        exchange.put(building, home, old)
    except Exception:
        exchange.discard(building)
        raise


def main():
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "url": {"type": "str", "required": True},
            "sha256": {"type": "str", "required": True},
            "downloads": {"type": "path", "default": "/opt/deeplearning/downloads"},
            "size": {"type": "int", "default": 0},
            "timeout": {"type": "int", "default": 3600},
            "wait": {"type": "int", "default": 600},
            "root": {"type": "path", "default": "/opt/deeplearning"},
            "mirror_ca": {"type": "path"},
        },
        supports_check_mode=True,
    )
    params = module.params
    home, marker = params["path"], os.path.join(params["path"], MARKER)
    has_leftovers = exchange.is_left(home + OLD)
    if is_whole(home, params["sha256"]) and not has_leftovers:
        module.exit_json(changed=False, marker=marker)
    if module.check_mode:
        module.exit_json(changed=True, marker=marker)
    os.umask(0o022)
    try:
        if has_leftovers:
            with HostLock("Spark in %s" % home, params["wait"], params["root"]):
                exchange.recover(home, home + OLD)
            if is_whole(home, params["sha256"]):
                module.exit_json(changed=True, marker=marker)
        whole_files.make_directory(params["downloads"], 0o700)
        whole_files.make_directory(os.path.dirname(home))
        archive = whole_files.own_name(os.path.join(params["downloads"], os.path.basename(params["url"])))
        try:
            room.require(params["downloads"], params["size"], 1)
            downloads.fetch(
                params["url"], archive, params["sha256"], params["size"], params["timeout"], params["mirror_ca"]
            )
            with HostLock("Spark in %s" % home, params["wait"], params["root"]):
                if not is_whole(home, params["sha256"]):  # another run may have made it meanwhile
                    build(archive, home, params["sha256"])
        finally:
            if os.path.exists(archive):
                os.unlink(archive)
    except (Failure, HostLocked, downloads.DownloadError) as failure:
        module.fail_json(msg=str(failure))
    except (IOError, OSError, tarfile.TarError) as error:
        module.fail_json(
            msg="Spark must be unpacked into %s, but that failed: %s. The old one, if any, is untouched. "
            "Free some space or repair the file system, then run this again."
            % (home, room.explained(error, os.path.dirname(home)))
        )
    module.exit_json(changed=True, marker=marker)


if __name__ == "__main__":
    main()
