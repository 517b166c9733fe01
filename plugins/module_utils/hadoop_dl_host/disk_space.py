"""Whether a directory's file system takes what is about to be written: bytes and inodes. Python 2.7 and 3."""

import errno
import hashlib
import os

MB = 10**6


def existing(path):
    """The path, or the nearest directory above it that exists."""
    while path != "/" and not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def free(directory):
    """Bytes that root may still write, and inodes; None for inodes if the file system does not count them (btrfs)."""
    status = os.statvfs(existing(directory))
    return status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None


def shortage(directory, size, files):
    """Why the directory cannot take so many bytes and files, as a sentence; None if it can."""
    space, inodes = free(directory)
    if size > space:
        return "%s needs about %d MB but has %d MB free." % (directory, size // MB, space // MB)
    if inodes is not None and files > inodes:
        return "%s needs %d inodes but has %d free (df -i)." % (directory, files, inodes)
    return None


def require(directory, size, files):
    """Raise OSError before anything is written."""
    problem = shortage(directory, size, files)
    if problem:
        raise OSError(problem)


def explained(error, directory):
    """The error's text; with what is free if it says "no space": inodes end before bytes do, and then df shows room."""
    text = str(error)
    if os.strerror(errno.ENOSPC) not in text:
        return text
    space, inodes = free(directory)
    return "%s (%s has %d MB and %s inodes free)" % (
        text,
        directory,
        space // MB,
        "enough" if inodes is None else inodes,
    )


# --- what a full disk leaves for the way back ------------------------------------------------------------------------

RESERVE = ".reserve"  # beside the environments
PARTS, PART = 8, 8192  # files and bytes of each: what a switch and the record of a run write, in bytes and in inodes
FULL = (errno.ENOSPC, errno.EDQUOT)


def has_reserve(root):
    """Whether all of the reserve is there."""
    paths = [os.path.join(root, RESERVE, str(number)) for number in range(PARTS)]
    return all(os.path.isfile(path) and os.path.getsize(path) == PART for path in paths)


def incompressible(number):
    """The same bytes on every host; zeros would be no room on a file system that compresses."""
    rows = [hashlib.sha256(("%d %d" % (number, row)).encode("ascii")).digest() for row in range(PART // 32)]
    return b"".join(rows)


def keep_reserve(root):
    """Have the reserve on the disk, if it fits; whether it exists."""
    if has_reserve(root):
        return True
    directory = os.path.join(root, RESERVE)
    try:
        if not os.path.isdir(directory):
            os.mkdir(directory, 0o700)
        for number in range(PARTS):
            with open(os.path.join(directory, str(number)), "wb") as handle:
                handle.write(incompressible(number))
                handle.flush()
                os.fsync(handle.fileno())
    except (IOError, OSError) as error:
        release_reserve(root)  # half of one would only take what is left
        if error.errno not in FULL + (errno.ENOENT,):  # ENOENT: the renewal of a run's record has just made room of it
            raise
        return False
    return True


def release_reserve(root):
    """Make room of the reserve; whether there was any."""
    directory = os.path.join(root, RESERVE)
    names = os.listdir(directory) if os.path.isdir(directory) else []
    for name in names:
        unless_changed(os.unlink, os.path.join(directory, name))
    if os.path.isdir(directory):
        unless_changed(os.rmdir, directory)
    return bool(names)


def unless_changed(remove, path):
    """Remove it, unless another process did, or put something there, meanwhile: a run's record is renewed beside every step."""
    try:
        remove(path)
    except (IOError, OSError) as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


def with_reserve(root, write):
    """What write() answers, again without the reserve if the file system is full. write() may be called twice."""
    try:
        return write()
    except (IOError, OSError) as error:
        if error.errno not in FULL or not release_reserve(root):
            raise
        return write()
