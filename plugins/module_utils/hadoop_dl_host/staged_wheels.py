# -*- coding: utf-8 -*-
"""Wheels that a run read from HDFS for this host's next environment. Python 2.7 and 3.

Only their names tell what they are: whoever takes one compares it with the lock.
"""

from __future__ import absolute_import, division, print_function

import errno
import os
import shutil

NAME = "wheels"  # below downloads


def place(environment):
    """The directory, which only root can enter; it is gone when the environment is sealed."""
    return os.path.join(os.path.dirname(os.path.dirname(environment)), "downloads", NAME)


def name_of(entry):
    """The wheel's name there and in HDFS."""
    return "%s-%s" % (entry["sha256"], entry["file"])


def has(directory, entry):
    path = os.path.join(directory, name_of(entry))
    return os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) == entry["size"]


def take(directory, entry, path):
    """Move the wheel to path; whether it was there."""
    try:
        shutil.move(os.path.join(directory, name_of(entry)), path)  # environments may have a file system of their own
    except (IOError, OSError) as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise
        return False
    return True


def clear(directory):
    """Remove it. The directory of all downloads stays: Spark's are there, too."""
    shutil.rmtree(directory, ignore_errors=True)
