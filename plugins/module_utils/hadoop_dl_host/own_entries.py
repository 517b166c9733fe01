"""What belongs to the environments in the directory of this project, beside envs. Python 2.7 and 3."""

import glob
import os

from . import disk_space, environment_tree

PROBE = ".new-probe"  # a file by which a switch asks whether it can be written; only a killed run leaves it
DIRECTORIES = ("downloads", disk_space.RESERVE)
CLIENT_SETTINGS = ("hadoop-env.sh", "spark-defaults.conf", "tfos-submit.json")
RECEIPTS = ("environment", "additional_environments", "verify")
REMOVING = ".removing-*"  # by a removal that was killed


def read_json(path):
    """The mapping in a file; an empty one if there is none."""
    return environment_tree.read_json(path) or {}


def names(directory):
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def present(paths):
    return [path for path in paths if os.path.lexists(path)]


def below(root):
    """Downloads, and what a killed removal left."""
    places = [os.path.join(root, name) for name in DIRECTORIES]
    entries = [os.path.join(place, name) for place in places for name in names(place)]
    return entries + sorted(glob.glob(os.path.join(root, REMOVING)))


def settings(root):
    """Settings of the active environment: links to it. An older release wrote files."""
    return present(os.path.join(root, "etc", prefix + name) for name in CLIENT_SETTINGS for prefix in ("", ".new-"))


def probes(root):
    """What killed switches left. Those in an environment go with it."""
    return present(os.path.join(root, name, PROBE) for name in ("", "etc", "envs"))


def receipts(root):
    return present(os.path.join(root, "state", name + ".json") for name in RECEIPTS)
