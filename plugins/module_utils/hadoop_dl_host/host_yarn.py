"""What a host has of YARN's configuration for GPUs, and which nodes left YARN. Python 2.7 and 3, standard library only; a part of host_reader.

Of Hadoop's files only SETTINGS and QUEUES are read: they may hold secrets.
"""

import json
import os
import re

from . import gpu_health, hadoop_files, key_formats, ledger

DRAINED = "/opt/deeplearning/etc/node_maintenance.json"  # of yarn_exclude
SITE = "yarn-site.xml"
FILES = (SITE, "resource-types.xml", "capacity-scheduler.xml")
LINUX = "yarn.nodemanager.linux-container-executor."
SETTINGS = (
    "yarn.resource-types",
    "yarn.node-labels.enabled",
    "yarn.node-labels.fs-store.root-dir",
    "yarn.nodemanager.container-executor.class",
    "yarn.nodemanager.health-checker.interval-ms",
    "yarn.nodemanager.health-checker.script.opts",
    "yarn.nodemanager.health-checker.script.path",
    "yarn.nodemanager.health-checker.scripts",
    "yarn.nodemanager.resource-plugins",
    "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices",
    "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables",
    "yarn.resourcemanager.scheduler.class",
    "yarn.scheduler.capacity.resource-calculator",
    LINUX + "cgroups.hierarchy",
    LINUX + "cgroups.mount",
    LINUX + "cgroups.mount-path",
    # of container-executor.cfg
    "[cgroups] root",
    "[cgroups] yarn-hierarchy",
    "[gpu] gpu.allowed-device-minor-numbers",
    "[gpu] gpu.major-device-number",
    "[gpu] module.enabled",
)
# Of each queue its share, its queues, its limit and its labels.
QUEUES = re.compile(
    r"yarn[.]scheduler[.]capacity[.]root(|[.][A-Za-z0-9_.-]+)[.]"
    r"(queues|capacity|maximum-applications|accessible-node-labels|accessible-node-labels[.][A-Za-z0-9_-]+[.]capacity)$"
)
PROGRAM = LINUX + "path"
PROGRAMS = ("/bin/container-executor", "-yarn/bin/container-executor")  # of Hadoop's home: Apache; packages and parcels
# The place of its configuration is compiled into the program: HADOOP_CONF_DIR "/container-executor.cfg" (configuration.c).
COMPILED = re.compile(b"[A-Za-z0-9_.+/-]+/container-executor[.]cfg")
# Hadoop looks for ROOT/devices; the path becomes part of a unit.
DEVICES = re.compile(r"^(/[A-Za-z0-9_.-]+)+/devices$")
# Their agents write Hadoop's files.
MANAGERS = (
    ("cloudera_manager", "/etc/cloudera-scm-agent/config.ini"),
    ("ambari", "/etc/ambari-agent/conf/ambari-agent.ini"),
)


def read(system, directories, home):
    """The files of these directories and container-executor.cfg, as far as they are there, and who owns them. home: Hadoop's; None if there is none."""
    rows = ledger.rows("yarn_gpu", system.at(ledger.ROOT))
    config = executor_config(system, directories, home)
    paths = ["%s/%s" % (directory, name) for directory in sorted(directories) for name in FILES]
    files = dict(
        (path, read_file(system.at(path), [row for row in rows if row["path"] == path]))
        for path in paths + [config]
        if path and system.exists(path)
    )
    return {
        "manager": next((name for name, path in MANAGERS if system.exists(path)), None),
        "files": files,
        "executor_config": config,
        "devices": devices_mount(system.text("/proc/mounts")),
        "devices_unused": devices_unused(system.text("/proc/cgroups")),
        "drained": drained(system.text(DRAINED)),
        "gpu_health": gpu_health.last(system),
    }


def executor_config(system, directories, home):
    """Where the setuid program reads container-executor.cfg, absolute or from the program's directory; None if no program says so."""
    programs = [parsed(system.at("%s/%s" % (directory, SITE)))[0].get(PROGRAM) for directory in sorted(directories)]
    for program in programs + [home + path for path in PROGRAMS if home]:
        place = os.path.realpath(system.at(program)) if program and program.startswith("/") else ""
        if not os.path.isfile(place):
            continue
        with open(place, "rb") as handle:
            match = COMPILED.search(handle.read(hadoop_files.LARGEST))
        if match:
            directory = os.path.dirname(place[len(system.root) :])
            return os.path.normpath(os.path.join(directory, match.group(0).decode("ascii")))
    return None


def devices_mount(mounts):
    """Where the devices controller of cgroup v1 is mounted and can be written; None if it is not."""
    for line in (mounts or "").splitlines():
        fields = line.split(" ")
        options = fields[3].split(",") if len(fields) > 3 else []
        if fields[2:3] == ["cgroup"] and "devices" in options and "rw" in options and DEVICES.match(fields[1]):
            return fields[1]
    return None


def devices_unused(controllers):
    """Whether the kernel has the devices controller of cgroup v1 in no hierarchy, so that it can be mounted: cgroups(7), /proc/cgroups."""
    rows = [line.split() for line in (controllers or "").splitlines()]
    return any(row[:1] == ["devices"] and row[1:2] == ["0"] and row[3:] == ["1"] for row in rows)


def parsed(path):
    """The values of a file, and why it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return key_formats.of(path).values(handle.read(hadoop_files.LARGEST + 1)), None
    except (IOError, OSError, UnicodeDecodeError) as error:
        return {}, "be readable, but: %s" % error
    except hadoop_files.Unusable as error:
        return {}, str(error)


def matters(name):
    return name in SETTINGS or QUEUES.match(name)


def read_file(path, rows):
    """The values that matter, and those that this project set."""
    values, problem = parsed(path)
    settings = dict((name, value) for name, value in values.items() if value and matters(name))
    own_values = dict((row["key"], "%s" % row["now"]) for row in rows if matters(row["key"]))
    return {"settings": settings, "ours": own_values, "problem": problem}


def drained(text):
    """Name in YARN -> since when this project has it out; a torn record is none."""
    try:
        nodes = json.loads(text or "{}").get("nodes") or {}
        return dict((name, "%s" % node["since"]) for name, node in nodes.items())
    except (ValueError, AttributeError, TypeError, KeyError):
        return {}
