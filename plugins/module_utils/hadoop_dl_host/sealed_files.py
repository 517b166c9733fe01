# -*- coding: utf-8 -*-
"""Files of a locked wheel that a sealed tree of this host already has, for another tree. Python 2.7 and 3.

When a verified wheel is unpacked, the sha256 of each of its files is kept in `<component>.wheels`, by the sha256 of the
wheel; the marker of the component has the sha256 of that list. A file of a sealed tree is taken only with the sha256 of
the list, which is computed from the very bytes that are written. What the tree itself is by now does not count.

Bytecode is in no wheel. It is taken only if all of this holds: the same build of Python made it, the list of the seal
has the source with this sha256 and the bytecode, the bytecode has the sha256 of that list, and its header is one that
this Python would load for that source. So it is what was compiled from these bytes and sealed. The path of another tree
that is in it does not matter: Python replaces that when it loads bytecode.

Copies share nothing with their source. A hard link would make damage of one tree damage of both, and so would a shared
extent (reflink, which copy_file_range may make): one bad sector would be in both trees, and trees are repaired because
they are damaged. The bytes must be read for their sha256 anyway.
"""

from __future__ import absolute_import, division, print_function

import hashlib
import json
import os
import stat
import struct

from . import environment_bytes, environment_names, environment_tree, wheel_files
from .wheel_files import CHUNK

KIND = ".wheels"
HEADER = 16  # bytes of bytecode before the code; 8 in 2.7, 12 up to 3.6
UNCHECKED = b"\x01\x00\x00\x00"  # PEP 552: by hash of the source, which is not compared
# One build of Python, as it describes itself: its version with the time of the build and the compiler, and its name in bytecode.
BUILD = (
    "import ssl, sys, zlib; print(' '.join(sys.version.split())); "
    "print(getattr(getattr(sys, 'implementation', None), 'cache_tag', ''))"
)


class Unreadable(Exception):
    """The disk does not give a file that is there."""


class Source(object):
    """A file of a sealed tree while it is copied: its errors are not those of the disk that is written to."""

    def __init__(self, handle):
        self.handle = handle

    def read(self, size):
        try:
            return self.handle.read(size)
        except (IOError, OSError) as error:
            raise Unreadable(str(error))


class SealedWheel(object):
    """A wheel as one sealed tree has it. files: path -> (sha256, size, mode); bytecode: source -> (path, sha256, size)."""

    def __init__(self, tree, information, files, bytecode):
        self.tree, self.information, self.files, self.bytecode = tree, information, files, bytecode

    def is_there(self):
        """Whether each of its files is there, with its size. Bytes are compared when they are copied."""
        try:
            statuses = [(os.lstat(_full(self.tree, path)), row[1]) for path, row in self.files.items()]
        except OSError:
            return False
        return all(stat.S_ISREG(status.st_mode) and status.st_size == size for status, size in statuses)

    def copy(self, path, root):
        """Whether the file is below root now, with the bytes that the wheel has."""
        return _copy(self.tree, path, self.files[path], root) is not None

    def copy_bytecode(self, path, root):
        """Whether the bytecode of a source that was just copied is below root now, and Python will load it."""
        row = self.bytecode.get(path)
        header = _copy(self.tree, row[0], (row[1], row[2], 0o644), root) if row else None
        if header is None:
            return False
        if header[4:8] == UNCHECKED:
            return True
        if header[4:8] == struct.pack(str("<I"), wheel_files.TIME):
            return True
        os.unlink(_full(root, row[0]))
        return False


def _full(root, path):
    return os.path.join(root.encode("utf-8"), path.encode("utf-8"))


def _copy(tree, path, row, root):
    """The first bytes of the copied file; None, and nothing below root, if it is not the one of the row."""
    sha256, size, mode = row
    try:
        # Not through a link, and not waiting for a pipe that somebody put there.
        descriptor = os.open(_full(tree, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (IOError, OSError):
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb") as handle:
        source, new_row, first = Source(handle), None, b""
        try:
            first = source.read(min(CHUNK, size))
            new_row = wheel_files.write(root, path, first, source if size > CHUNK else None, mode)
        except Unreadable:
            new_row = None
    if new_row != (sha256, size):
        if os.path.lexists(_full(root, path)):
            os.unlink(_full(root, path))
        return None
    return first[:HEADER]


# --- the lists -----------------------------------------------------------------------------------------------------


def text_of(site, wheels):
    """The list of a component's wheels. wheels: sha256 of a wheel -> (its dist-info directory, path -> (sha256, size, mode))."""
    content = {
        "site": site,
        "wheels": dict(
            (sha256, {"information": information, "files": files}) for sha256, (information, files) in wheels.items()
        ),
    }
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode("utf-8")


def known_wheels(environment, site, build):
    """sha256 of a wheel -> its SealedWheels in trees beside the environment, the environment's own tree first."""
    parent = os.path.dirname(environment)
    names = [name for name in os.listdir(parent) if environment_names.TREE.match(name) and not name.startswith(".")]
    trees = [os.path.join(parent, name) for name in names]
    live = environment_names.live_tree(environment)
    wheels = {}
    for tree in sorted(trees, key=lambda path: (path != live, path)):
        for sha256, wheel in _wheels(tree, site, build).items():
            wheels.setdefault(sha256, []).append(wheel)
    return wheels


def _wheels(tree, site, build):
    """Of one tree; nothing if it is not sealed, or a list is not the one that was written."""
    seal = environment_tree.seal_of(tree)
    state = os.path.join(tree, environment_tree.STATE)
    if not seal:
        return {}
    wheels = {}
    try:
        sealed = environment_bytes.read_manifest(os.path.join(state, "files.txt"), seal.get("files_sha256", "none"))
        tree_build = (environment_tree.read_json(os.path.join(state, "made.json")) or {}).get("build")
        tag = build["tag"] if build and tree_build == build else None
        for name in sorted(os.listdir(state)):
            if name.endswith(KIND):
                mark = environment_tree.read_json(os.path.join(state, name[: -len(KIND)] + ".json")) or {}
                wheels.update(_listed(tree, os.path.join(state, name), mark.get("wheels_sha256"), site, sealed, tag))
    except (IOError, OSError, ValueError, KeyError):
        return {}
    return wheels


def _listed(tree, path, expected, site, sealed, tag):
    with open(path, "rb") as handle:
        text = handle.read()
    if hashlib.sha256(text).hexdigest() != expected:
        raise ValueError("%s was changed" % path)
    content = json.loads(text.decode("utf-8"))
    if content["site"] != site:
        return {}
    wheels = {}
    for sha256, wheel in content["wheels"].items():
        files = dict((name, tuple(row)) for name, row in wheel["files"].items())
        wheels[sha256] = SealedWheel(
            tree, wheel["information"], files, _bytecode(files, sealed, tag) if tag is not None else {}
        )
    return wheels


def _bytecode(files, sealed, tag):
    """source -> (path, sha256, size) of its bytecode, if the seal has both."""
    bytecode_rows = {}
    for name, row in files.items():
        if name.endswith(".py") and sealed.get(name.encode("utf-8"), ("",))[0] == row[0]:
            path = bytecode_path(name, tag)
            if path.encode("utf-8") in sealed:
                bytecode_rows[name] = (path,) + sealed[path.encode("utf-8")]
    return bytecode_rows


def bytecode_path(source, tag):
    """Where Python keeps the bytecode of a source; tag: Python 3's name for its version, empty for 2.7."""
    if not tag:
        return source + "c"
    directory, base = os.path.split(source)
    return os.path.join(directory, "__pycache__", "%s.%s.pyc" % (base[: -len(".py")], tag))


def build_of_python(output):
    """What BUILD printed, for the marker of a tree."""
    version, tag = (output.splitlines() + ["", ""])[:2]
    return {"version": version.strip(), "tag": tag.strip()}
