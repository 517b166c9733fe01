"""Every byte of an environment: lists of files with their sha256, and what makes them last. Python 2.7 and 3."""

import ctypes
import hashlib
import os
from multiprocessing.pool import ThreadPool  # novermin (2.7 has it)

from . import atomic_files
from . import environment_tree as tree

THREADS = 2  # hashing releases the interpreter's lock
LARGE = 64  # files that are hashed one by one


def content(full):
    """sha256 of a file, or of a link's target; empty if it cannot be read (a bad sector, a missing file)."""
    try:
        if os.path.islink(full):
            return hashlib.sha256(b"link to " + os.readlink(full)).hexdigest()
        return atomic_files.sha256_of(full)
    except (IOError, OSError):
        return ""


def contents(path, relatives):
    """sha256 of many files below path, by relative path (bytes). The largest begin first: nobody waits for one at the end."""
    root = path.encode("utf-8")
    ordered = sorted(relatives, key=lambda relative: -_size(os.path.join(root, relative)))
    pool = ThreadPool(THREADS)
    try:
        large = pool.map_async(lambda relative: content(os.path.join(root, relative)), ordered[:LARGE], chunksize=1)
        small = pool.map(lambda relative: content(os.path.join(root, relative)), ordered[LARGE:], chunksize=64)
        return dict(zip(ordered, large.get() + small))
    finally:
        pool.close()


def _size(path):
    try:
        return os.lstat(path).st_size
    except (IOError, OSError):
        return 0


def manifest(rows):
    """The text of a list of files. rows: path (bytes) -> (sha256, size)."""
    return b"".join(
        ("%s %d " % (sha256, size)).encode("ascii") + relative + b"\n"
        for relative, (sha256, size) in sorted(rows.items())
    )


def read_manifest(path, sha256=None):
    """The rows of a list of files; ValueError if it is not the one that was written (sha256)."""
    with open(path, "rb") as handle:
        text = handle.read()
    if sha256 and hashlib.sha256(text).hexdigest() != sha256:
        raise ValueError("%s was changed" % os.path.basename(path))
    rows = {}
    for line in text.split(b"\n"):
        if line:
            digest_, size, relative = line.split(b" ", 2)
            rows[relative] = (digest_.decode("ascii"), int(size))
    return rows


def deep_problem(path):
    """Compare every byte with what was sealed: None, or a few words."""
    seal = tree.seal_of(path)
    if not seal or "files_sha256" not in seal:
        return "not sealed with a list of all files"
    try:
        expected = read_manifest(os.path.join(path, tree.STATE, "files.txt"), seal["files_sha256"])
        present = set(relative for relative, _ in tree.entries(path.encode("utf-8")))
        digests = contents(path, sorted(present & set(expected)))
    except (IOError, OSError, ValueError) as error:
        return "cannot be checked: %s" % error
    missing_paths = sorted(set(expected) - present)
    changed = sorted(relative for relative, sha256 in digests.items() if sha256 != expected[relative][0])
    foreign_paths = sorted(relative for relative in present - set(expected) if tree.is_bytecode(relative))
    groups = (
        (missing_paths, "gone"),
        (changed, "with other bytes"),
        (foreign_paths, "bytecode that was not compiled at the installation"),
    )
    parts = [tree.counted(names, word) for names, word in groups if names]
    return ", ".join(parts) or None


def sync(path):
    """Write everything of the path's file system to disk; a marker that follows then tells the truth after a power loss."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path)
    finally:
        os.close(descriptor)
