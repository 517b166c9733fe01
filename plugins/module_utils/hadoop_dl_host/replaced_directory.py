"""Put a complete directory in the place of another one; after a kill at any step, the next run ends clean. Python 2.7 and 3.

The place is missing for a moment, between two renames: kernels of RHEL 7 cannot exchange names at once. `old` is where
the older directory is meanwhile, on the same file system. One run at a time works on a place.
"""

import glob
import os
import shutil

from . import atomic_files

REMOVED = "-removing"


def is_left(old):
    """Whether a killed run left something beside the place. Drafts that another run writes now do not count."""
    return any(not atomic_files.is_being_written(path) for path in _left(old))


def recover(place, old):
    """Restore the older directory if nothing has its place, and remove everything else. The caller must hold the lock."""
    if os.path.isdir(old) and not os.path.lexists(place):
        os.rename(old, place)
        atomic_files.sync_path(os.path.dirname(place))
    for path in _left(old):
        discard(path)


def draft(old):
    """The name for a new directory, with the number of this process."""
    return "%s.new-%d" % (_stem(old), os.getpid())


def put(new, place, old):
    """Rename the new directory to its place. On OSError or IOError the older one is back in its place."""
    try:
        if os.path.lexists(place):
            os.rename(place, old)
        os.rename(new, place)
        atomic_files.sync_path(os.path.dirname(place))
    except Exception:
        if os.path.isdir(old) and not os.path.lexists(place):
            os.rename(old, place)
        raise
    remove(old)


def build(place, old, fill):
    """Let fill(directory) fill a new directory, and put that in the place. What was there stays if either fails."""
    new = draft(old)
    recover(place, old)
    try:
        os.makedirs(new, 0o755)
        fill(new)
        put(new, place, old)
    except Exception:
        discard(new)
        raise


def remove(path):
    """Rename it first, so that half of a directory is never restored."""
    if os.path.isdir(path) and not os.path.islink(path):
        os.rename(path, path + REMOVED)
        path += REMOVED
    discard(path)


def _left(old):
    """Older directories, whole or half removed, and drafts."""
    return [path for path in (old + REMOVED, old) if os.path.lexists(path)] + sorted(glob.glob(_stem(old) + ".new*"))


def _stem(old):
    return old[: -len(".old")]


def discard(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
