"""Is a sealed environment still the tree that was sealed? Python 2.7 and 3, standard library only.

Two lists are made at the seal. tree.txt has size and modification time of every file and link: comparing it takes a
fraction of a second for 20,000 files, so every run can afford it; bytecode is left out, because Python writes it when it
likes. files.txt has the sha256 of every file, bytecode included: environment_bytes compares that.
"""

import hashlib
import json
import os
import stat

STATE = ".deeplearning"  # inside the environment: markers, manifests, the seal; not part of the tree
DAMAGED = "damaged.json"  # written by the comparison of all bytes, so that the next run rebuilds


def lines(path):
    """One line per file and link of the tree: size, modification time in seconds, path. Sorted, as bytes."""
    root = path if isinstance(path, bytes) else path.encode("utf-8")
    tree_lines = []
    for relative, status in entries(root, bytecode=False):
        # Index 8 is the time in whole seconds: exact, where st_mtime is a rounded float.
        numbers = "%d %d " % (status.st_size, status[8])
        tree_lines.append(numbers.encode("ascii") + relative)
    return sorted(tree_lines, key=lambda line: line.split(b" ", 2)[2])


def entries(root, bytecode=True):
    """Path (bytes, relative) and lstat of every file and link below root, without the state. bytecode: Python's, too."""
    queue = [b""]
    while queue:
        directory = queue.pop()
        for name in os.listdir(os.path.join(root, directory)):
            if (not directory and name == STATE.encode()) or (not bytecode and is_bytecode(name)):
                continue
            relative = os.path.join(directory, name) if directory else name
            status = os.lstat(os.path.join(root, relative))
            if stat.S_ISDIR(status.st_mode):
                queue.append(relative)
            else:
                yield relative, status


def is_bytecode(relative):
    return relative.endswith((b".pyc", b".pyo"))


def digest(tree):
    return hashlib.sha256(b"\n".join(tree)).hexdigest()


def read_json(path):
    """The mapping in a file; None without the file, empty if it is damaged."""
    try:
        with open(path, "rb") as handle:
            content = json.loads(handle.read().decode("utf-8"))
        return content if isinstance(content, dict) else {}
    except (IOError, OSError):
        return None
    except ValueError:
        return {}


def seal_of(path):
    """The content of sealed.json, or None if the environment was never completed."""
    return read_json(os.path.join(path, STATE, "sealed.json"))


def changes(path, present=None):
    """Three sorted lists of paths: those that the sealed tree had and are gone, those that changed, those that are new."""
    with open(os.path.join(path, STATE, "tree.txt"), "rb") as handle:
        sealed_rows = dict(_keyed(handle.read().split(b"\n")))
    tree_rows = dict(_keyed(lines(path) if present is None else present))
    missing_paths = sorted(name for name in sealed_rows if name not in tree_rows)
    changed = sorted(name for name in sealed_rows if name in tree_rows and tree_rows[name] != sealed_rows[name])
    new = sorted(name for name in tree_rows if name not in sealed_rows)
    return missing_paths, changed, new


def _keyed(tree):
    """Pairs of path and "size time" (paths may contain spaces)."""
    for line in tree:
        if line:
            size, moment, name = line.split(b" ", 2)
            yield name, size + b" " + moment


def problem(path):
    """None for a sealed environment with all its files unchanged; else a few words. What was added is not damage."""
    return state(path)[0]


def state(path):
    """The problem of a sealed tree (None if there is none), and the files that were added since."""
    seal = seal_of(path)
    if seal is None:
        return "not completed", []
    damaged = read_json(os.path.join(path, STATE, DAMAGED))
    if damaged is not None:
        return "damaged: %s" % damaged.get("problem", "see verify.yml"), []
    try:
        present = lines(path)
        if digest(present) == seal.get("tree_sha256"):
            return None, []
        missing_paths, changed, new = changes(path, present)
    except (IOError, OSError, ValueError) as error:
        return "cannot be checked: %s" % error, []
    parts = [counted(names, word) for names, word in ((missing_paths, "gone"), (changed, "changed")) if names]
    if parts:
        return "files changed since it was sealed: " + ", ".join(parts), []
    return (None, [name.decode("utf-8", "replace") for name in new]) if new else ("the seal is damaged", [])


def counted(names, word):
    return "%d %s (%s)" % (len(names), word, names[0].decode("utf-8", "replace"))
