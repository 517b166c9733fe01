"""What this project put into HDFS from this host: files, the directories that were made for them, and who wrote them. Python 2.7 and 3."""

import os

from . import atomic_files, environment_tree

PATH = "/opt/deeplearning/etc/hdfs.json"


def read(path):
    """The record; an empty one if there is none that can be read."""
    return dict({"files": [], "directories": [], "user": ""}, **(environment_tree.read_json(path) or {}))


def add(path, names, directories, user):
    """Record files before they are uploaded, with the directories that are made for them; the deepest are first there."""
    record = read(path)
    new_record = {
        "files": sorted(set(record["files"] + names)),
        "directories": sorted(set(record["directories"] + directories), key=lambda name: (-name.count("/"), name)),
        "user": user,
    }
    atomic_files.make_directory(os.path.dirname(path))
    atomic_files.write_json(path, new_record)
