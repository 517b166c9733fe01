# -*- coding: utf-8 -*-
"""Is a sealed environment still the tree that was sealed? Python 2.7 and 3, standard library only, reads and never writes.

Seal and check compare size and modification time of every file and link, not their bytes: 20,000 files take a fraction
of a second, so every run can afford it. Byte code is left out, because Python writes it when it likes.
"""

from __future__ import absolute_import, division, print_function

import hashlib
import json
import os
import stat

STATE = ".deeplearning"  # inside the environment: markers, the seal; not part of the tree


def lines(path):
    """One line per file and link of the tree: size, modification time in seconds, path. Sorted, as bytes."""
    root = path if isinstance(path, bytes) else path.encode("utf-8")
    found = []
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        for name in os.listdir(os.path.join(root, directory)):
            if (
                name == b"__pycache__"
                or name.endswith((b".pyc", b".pyo"))
                or (not directory and name == STATE.encode())
            ):
                continue
            relative = os.path.join(directory, name) if directory else name
            status = os.lstat(os.path.join(root, relative))
            if stat.S_ISDIR(status.st_mode):
                waiting.append(relative)
            else:
                # Index 8 is the time in whole seconds: exact, where st_mtime is a rounded float.
                numbers = "%d %d " % (status.st_size, status[8])
                found.append(numbers.encode("ascii") + relative)
    return sorted(found, key=lambda line: line.split(b" ", 2)[2])


def digest(tree):
    return hashlib.sha256(b"\n".join(tree)).hexdigest()


def seal_of(path):
    """What sealed.json says, or None where the environment was never completed."""
    try:
        with open(os.path.join(path, STATE, "sealed.json"), "rb") as handle:
            seal = json.loads(handle.read().decode("utf-8"))
        return seal if isinstance(seal, dict) else {}
    except (IOError, OSError):
        return None
    except ValueError:
        return {}


def changes(path):
    """Three sorted lists of paths: those that the sealed tree had and are gone, those that changed, those that are new."""
    with open(os.path.join(path, STATE, "tree.txt"), "rb") as handle:
        before = dict(reversed(line.rsplit(b"\0", 1)) for line in _keyed(handle.read().split(b"\n")))
    now = dict(reversed(line.rsplit(b"\0", 1)) for line in _keyed(lines(path)))
    gone = sorted(name for name in before if name not in now)
    changed = sorted(name for name in before if name in now and now[name] != before[name])
    new = sorted(name for name in now if name not in before)
    return gone, changed, new


def _keyed(tree):
    """size time path -> (size time)\\0path, so that paths may hold spaces."""
    for line in tree:
        if line:
            size, moment, name = line.split(b" ", 2)
            yield size + b" " + moment + b"\0" + name


def problem(path):
    """None for a sealed environment that is whole; else a few words for the plan."""
    seal = seal_of(path)
    if seal is None:
        return "not completed"
    try:
        if digest(lines(path)) == seal.get("tree_sha256"):
            return None
        gone, changed, new = changes(path)
    except (IOError, OSError, ValueError) as error:
        return "cannot be checked: %s" % error
    parts = [
        "%d %s (%s)" % (len(names), word, names[0].decode("utf-8", "replace"))
        for names, word in ((gone, "gone"), (changed, "changed"), (new, "added"))
        if names
    ]
    return "files changed since it was sealed: " + ", ".join(parts) if parts else "the seal is damaged"
