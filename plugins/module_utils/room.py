# -*- coding: utf-8 -*-
"""Whether a directory's file system takes what is about to be written: bytes and inodes. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import errno
import os

MB = 10**6


def existing(path):
    """The path, or the nearest directory above it that exists."""
    while path != "/" and not os.path.isdir(path):
        path = os.path.dirname(path)
    return path


def free(directory):
    """Bytes that root may still write, and inodes; None for inodes where the file system counts none (btrfs)."""
    status = os.statvfs(existing(directory))
    return status.f_bavail * status.f_frsize, status.f_favail if status.f_files else None


def shortage(directory, size, files):
    """Why the directory cannot take so many bytes and files, as a sentence; None where it can."""
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
    """The error's text; with what is free where it says "no space": inodes end before bytes do, and then df shows room."""
    text = str(error)
    if os.strerror(errno.ENOSPC) not in text or "needs" in text:
        return text
    space, inodes = free(directory)
    return "%s (%s has %d MB and %s inodes free)" % (
        text,
        directory,
        space // MB,
        "enough" if inodes is None else inodes,
    )
