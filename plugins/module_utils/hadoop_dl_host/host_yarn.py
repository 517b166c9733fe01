# -*- coding: utf-8 -*-
"""What a host has of YARN's configuration for GPUs, and which nodes left YARN. Python 2.7 and 3, standard library only; a part of host_reader.

Of Hadoop's files only SETTINGS are read: they may hold secrets.
"""

from __future__ import absolute_import, division, print_function

import json

from . import hadoop_files

RECORD = "/opt/deeplearning/etc/yarn_gpu.json"  # of hadoop_settings
DRAINED = "/opt/deeplearning/etc/node_maintenance.json"  # of yarn_exclude
FILES = ("yarn-site.xml", "resource-types.xml", "capacity-scheduler.xml")
SETTINGS = (
    "yarn.resource-types",
    "yarn.nodemanager.container-executor.class",
    "yarn.nodemanager.resource-plugins",
    "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices",
    "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables",
    "yarn.resourcemanager.scheduler.class",
    "yarn.scheduler.capacity.resource-calculator",
)
# Their agents write Hadoop's files.
MANAGERS = (
    ("cloudera_manager", "/etc/cloudera-scm-agent/config.ini"),
    ("ambari", "/etc/ambari-agent/conf/ambari-agent.ini"),
)


def read(system, directories):
    """The files of these directories that are there, and who owns them."""
    record = recorded(system.text(RECORD))
    files = {}
    for path in ["%s/%s" % (directory, name) for directory in sorted(directories) for name in FILES]:
        if system.exists(path):
            files[path] = read_file(system.at(path), record.get(path) or {})
    manager = next((name for name, path in MANAGERS if system.exists(path)), None)
    return {"manager": manager, "files": files, "drained": drained(system.text(DRAINED))}


def read_file(path, entry):
    """The values of SETTINGS, and those that this project set."""
    values, problem = {}, None
    try:
        with open(path, "rb") as handle:
            values = hadoop_files.xml_values(handle.read(hadoop_files.LARGEST + 1))
    except (IOError, OSError, UnicodeDecodeError) as error:
        problem = "be readable, but: %s" % error
    except hadoop_files.Unusable as error:
        problem = str(error)
    kept = dict((name, values[name]) for name in SETTINGS if values.get(name))
    ours = dict((name, one) for name, one in entry.items() if name in SETTINGS)
    return {"settings": kept, "ours": ours, "problem": problem}


def recorded(text):
    """Path -> setting -> the value that this project set; a torn record is none."""
    try:
        files = json.loads(text or "{}").get("files") or {}
        return dict(
            (path, dict((name, "%s" % one["ours"]) for name, one in entry["settings"].items()))
            for path, entry in files.items()
        )
    except (ValueError, AttributeError, TypeError, KeyError):
        return {}


def drained(text):
    """Name in YARN -> since when this project has it out; a torn record is none."""
    try:
        nodes = json.loads(text or "{}").get("nodes") or {}
        return dict((name, "%s" % one["since"]) for name, one in nodes.items())
    except (ValueError, AttributeError, TypeError, KeyError):
        return {}
