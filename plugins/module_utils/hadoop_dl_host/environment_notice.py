# -*- coding: utf-8 -*-
"""CURRENT.txt: the active environment of this host, since when, the one before it, and how to use that. Python 2.7 and 3.

/opt/deeplearning/CURRENT.txt is a link that goes through `current`, and each environment's text is written before the switch:
so the switch changes both at once, and no kill leaves a text about another environment.
"""

from __future__ import absolute_import, division, print_function

import os
import re
import time

from . import environment_names as names
from . import environment_packages as packages
from . import environment_tree, whole_files
from .environment_history import activations

NAME = "CURRENT.txt"
TARGET = os.path.join("current", environment_tree.STATE, "client", NAME)
# Beside the tree, which a repair replaces; the way through the tree is the link that the seal makes.
PARTS = ("tensorflow", "keras", "tensorflowonspark", "tensorflow-io")
TIME = "%Y-%m-%d %H:%M:%S UTC"
TEXT = """\
Deep learning on this host. Written with every switch of the environment; running jobs keep the one they started with.

active:  %(active)s
since:   %(since)s
has:     %(has)s
path:    %(path)s
before:  %(before)s
"""
WAY_BACK = """\
         To go on with it: tfos-submit --environment %(before)s, or %(python)s
"""


def parts(tree):
    """What people know of the environment: its Python, TensorFlow, Keras and TensorFlowOnSpark."""
    versions = dict(entry.split(" ", 1) for entry in packages.installed(tree))
    part_names = [name for name in sorted(versions) if re.match(r"^tensorflow(-cpu|-gpu)?$", name)]
    part_names += [name for name in PARTS[1:] if name in versions]
    place = packages.site_packages(tree)
    python = re.sub(r"^python", "Python ", os.path.basename(os.path.dirname(place))) if place else "no Python"
    return ", ".join([python] + ["%s %s" % (name, versions[name]) for name in part_names])


def before(root, name):
    """The environment that was active before this one and is still there; None without one."""
    numbers = activations(root)
    candidates = [candidate for candidate in numbers if candidate != name and numbers[candidate]]
    return max(candidates, key=lambda other: (numbers[other], other)) if candidates else None


def text(root, path, since):
    """What the file says of the environment at `path`."""
    name = os.path.basename(path)
    former = before(root, name)
    notice = TEXT % {
        "active": name,
        "since": since,
        "has": parts(names.live_tree(path) or path),
        "path": path,
        "before": former or "none that is still installed",
    }
    if former:
        python = os.path.join(root, "envs", former, "bin", "python")
        notice += WAY_BACK % {"before": former, "python": python}
    return notice


def file_of(path):
    return os.path.join(path + names.CLIENT, NAME)


def since_of(path):
    """The time that an earlier activation wrote; None without one."""
    try:
        with open(file_of(path), "rb") as handle:
            match = re.search(r"^since:\s+(\S.*)$", handle.read().decode("utf-8", "replace"), re.M)
    except (IOError, OSError):
        return None
    return match.group(1) if match else None


def switched_at(root):
    """When `current` was switched last."""
    return time.strftime(TIME, time.gmtime(os.lstat(os.path.join(root, "current")).st_mtime))


def wanted(root, path, switches):
    """The text for an environment that becomes active now, or that is."""
    if switches:
        return text(root, path, time.strftime(TIME, time.gmtime()))
    return text(root, path, since_of(path) or switched_at(root))


def differs(root, path, switches):
    """Whether the text or the link to it must be written."""
    link = os.path.join(root, NAME)
    try:
        with open(file_of(path), "rb") as handle:
            content = handle.read().decode("utf-8", "replace")
    except (IOError, OSError):
        return True
    return switches or not os.path.islink(link) or os.readlink(link) != TARGET or content != wanted(root, path, False)


def write(root, path, switches):
    """Write the text beside the environment; whether it was another one."""
    if not differs(root, path, switches):
        return False
    whole_files.make_directory(path + names.CLIENT)
    whole_files.write_whole(file_of(path), wanted(root, path, switches).encode("utf-8"))
    return True
