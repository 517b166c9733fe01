# -*- coding: utf-8 -*-
"""What this project made below the directory of environments, by marks, receipts and names that nobody else uses. Python 2.7 and 3.

The directory comes from the inventory, and may have entries of other owners under the same names: /opt/hadoop, /data/spark.
"""

from __future__ import absolute_import, division, print_function

import os
import re

from . import environment_tree, room

PROBE = ".new-probe"  # a file by which a switch asks whether it can be written; only a killed run leaves it
MARKER = ".deeplearning.json"  # of a directory that placed_tree made
DRAFT = r"(\.(old|building|old-removing|new-\d+(-removing)?))"
SPARK = re.compile(r"^(\.removing-)?pyspark-[\w.]+?(?P<draft>%s)?$" % DRAFT)
JAR = re.compile(r"^\.?tensorflow-hadoop-[\w.-]+$")
DOWNLOAD = re.compile(r"^\.?(pyspark-|cuda-|NVIDIA-Linux-|selfgz|makeself|wheels$)")
DIRECTORIES = ("spark", "jars", "hadoop", "downloads", room.RESERVE)
CLIENT_SETTINGS = ("hadoop-env.sh", "spark-defaults.conf", "tfos-submit.json")
RECEIPTS = (
    "environment",
    "deeplearning_command",
    "hadoop_client",
    "tensorflowonspark",
    "additional_environments",
    "tensorboard",
    "verify",
)


def read_json(path):
    """The mapping in a file; an empty one if there is none."""
    return environment_tree.read_json(path) or {}


def names(directory):
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def below(root, name):
    """What is ours of the directory with this name: the whole of hadoop, entries of the others."""
    place = os.path.join(root, name)
    if name == "hadoop":
        return [place] if has_links_alone(place) else []
    recorded = read_json(os.path.join(root, "state", "tensorflowonspark.json")).get("files") or {}
    is_own = {
        "spark": is_spark,
        "jars": lambda path, entry: JAR.match(entry) or path in recorded,
        "downloads": lambda path, entry: DOWNLOAD.match(entry),
        room.RESERVE: lambda path, entry: entry.isdigit(),
    }[name]
    paths = [(os.path.join(place, entry), entry) for entry in names(place)] if not os.path.islink(place) else []
    return [path for path, entry in paths if is_own(path, entry)]


def is_spark(path, entry):
    match = SPARK.match(entry)
    return bool(match) and (bool(match.group("draft") or match.group(1)) or os.path.isfile(os.path.join(path, MARKER)))


def has_links_alone(place):
    """Whether it is a Hadoop home that hadoop_client made: lib, and links; Hadoop itself has files."""
    if os.path.islink(place) or not os.path.isdir(os.path.join(place, "lib")):
        return False
    files = [os.path.join(parent, name) for parent, _, file_names in os.walk(place) for name in file_names]
    return all(os.path.islink(path) for path in files)


def settings(root):
    """Settings of the active environment: links to it. An older release wrote files, with their purpose in the second line."""
    paths = [os.path.join(root, "etc", prefix + name) for name in CLIENT_SETTINGS for prefix in ("", ".new-")]
    return [path for path in paths if is_setting(path)]


def is_setting(path):
    if os.path.islink(path):
        return os.readlink(path).startswith("../current/")
    if path.endswith("tfos-submit.json"):
        return os.path.isfile(path)
    try:
        with open(path, "rb") as handle:
            handle.readline()
            purpose = handle.readline()
    except (IOError, OSError):
        return False
    return purpose.startswith((b"# What TensorFlow needs to read hdfs://", b"# Read by tfos-submit"))


def probes(root):
    """What killed switches left. Those in an environment go with it."""
    paths = [os.path.join(root, name, PROBE) for name in ("", "etc", "envs")]
    return [path for path in paths if os.path.lexists(path)]


def receipts(root):
    paths = [(os.path.join(root, "state", name + ".json"), name) for name in RECEIPTS]
    return [path for path, name in paths if read_json(path).get("component") == name]


def others(root):
    """Directories with our names that have entries of other owners."""
    places = [(os.path.join(root, name), below(root, name)) for name in DIRECTORIES]
    return [place for place, own_paths in places if place not in own_paths and len(names(place)) > len(own_paths)]
