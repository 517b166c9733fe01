"""Files as they were when a role had ended, and what differs since then. Python 2.7 and 3, standard library only."""

import json
import os

from . import atomic_files

LARGEST_HASHED = 16 * 1024 * 1024  # bytes; of larger files the size is compared, because every run reads the receipt
LISTED = ".deeplearning-runfile.json"  # a record of its own: a receipt that names it stands for what it lists


def members(path, is_left_out=lambda path: False):
    """The path itself, or every file and link below it when it is a directory."""
    if os.path.islink(path) or not os.path.isdir(path):
        return [path]
    paths = []
    for directory, directories, files in os.walk(path):
        directories[:] = [name for name in directories if not is_left_out(os.path.join(directory, name))]
        paths += [os.path.join(directory, name) for name in files]
        paths += [
            os.path.join(directory, name) for name in directories if os.path.islink(os.path.join(directory, name))
        ]
    return sorted(path for path in paths if not is_left_out(path))


def describe(paths, is_hashed=lambda path: True):
    """sha256, size or target of each path, and the paths that are missing."""
    record = {"files": {}, "links": {}, "sizes": {}}
    missing_paths = []
    for path in paths:
        if os.path.islink(path):
            record["links"][path] = os.readlink(path)
        elif not os.path.isfile(path):
            missing_paths.append(path)
        elif os.path.getsize(path) > LARGEST_HASHED or not is_hashed(path):
            record["sizes"][path] = os.path.getsize(path)
        else:
            record["files"][path] = atomic_files.sha256_of(path)
    return record, missing_paths


def differences(record, at=lambda path: path):
    """(path, sentence) of each difference between a record and the host. at: where a path of the host is read."""
    for path, target in sorted(record.get("links", {}).items()):
        if not os.path.islink(at(path)) or os.readlink(at(path)) != target:
            yield path, "%s does not point to %s" % (path, target)
    for path, size in sorted(record.get("sizes", {}).items()):
        if not os.path.isfile(at(path)) or os.path.getsize(at(path)) != size:
            yield path, "%s is missing or not %d bytes long" % (path, size)
    for path, digest in sorted(record.get("files", {}).items()):
        try:
            changed = atomic_files.sha256_of(at(path)) != digest
        except (IOError, OSError):
            yield path, "%s is missing" % path
            continue
        if changed:
            yield path, "%s was changed" % path
        elif os.path.basename(path) == LISTED:
            for difference in differences(read(at(path)), at):
                yield difference


def read(path):
    """A record. Raises IOError, OSError or ValueError."""
    with open(path, "rb") as handle:
        return json.loads(handle.read().decode("utf-8"))
