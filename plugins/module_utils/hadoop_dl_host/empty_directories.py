"""Remove directories that are empty. Python 2.7 and 3, standard library only."""

import errno
import os

from . import host_lock

STAYS = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.EBUSY)


def removable(path, removed_paths):
    """Whether nothing is in it but what goes as well. The host's lock goes with its directory."""
    if os.path.islink(path) or not os.path.isdir(path):
        return False
    return all(os.path.join(path, name) in removed_paths for name in os.listdir(path) if name != host_lock.NAME)


def remove_one(path):
    if not os.path.lexists(os.path.join(path, host_lock.NAME)):
        os.rmdir(path)
        return
    with host_lock.HostLock("removing %s" % path, 0, path) as lock:  # who has it still needs the directory
        lock.remove_if_alone()


def remove(paths, dry):
    """Remove what is empty; answers with the paths."""
    removed_paths = []
    for path in [os.path.abspath(path) for path in paths]:
        if removable(path, removed_paths):
            try:
                if not dry:
                    remove_one(path)
            except host_lock.HostLocked:
                continue
            except OSError as error:
                if error.errno not in STAYS:
                    raise
            else:
                removed_paths += [path] if dry or not os.path.isdir(path) else []
    return removed_paths
