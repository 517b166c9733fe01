# -*- coding: utf-8 -*-
"""What this host has: the environment, Java and Hadoop, Spark, and the jars of every job."""

from __future__ import absolute_import, division, print_function

import glob
import json
import os
import re

from ansible.module_utils.hadoop_dl_host import processes

from tfos_submit.outcome import NotReady

TIMEOUT = 60  # seconds for the shell that reads Hadoop's variables
HADOOP_NAMES = ("JAVA_HOME", "HADOOP_HDFS_HOME", "HADOOP_CONF_DIR", "LD_LIBRARY_PATH", "CLASSPATH")


def environment_path(root, name):
    """The path of the active (or the named) environment: a job keeps it when `current` is switched meanwhile.

    It is a link to one of the environment's trees (NAME.1, NAME.2): the name is the same on all hosts, the tree is not.
    """
    link = os.path.join(root, "envs", name) if name else os.path.join(root, "current")
    if not name and os.path.islink(link):
        name = os.path.basename(os.readlink(link))
    path = os.path.join(root, "envs", environment_of(name)) if name else link
    installed = installed_environments(root)
    if not os.path.isdir(path):
        raise NotReady(
            "an installed environment is required at %s, but there is none (installed: %s). Install one with "
            "ansible-playbook site.yml, or name another with --environment." % (link, installed)
        )
    if not os.path.exists(os.path.join(path, ".deeplearning", "sealed.json")):
        raise NotReady(
            "the environment %s was never finished: it has no seal. Run ansible-playbook site.yml again, or name "
            "another with --environment (installed: %s)." % (path, installed)
        )
    if not os.access(os.path.join(path, "bin", "python"), os.X_OK):
        raise NotReady("%s/bin/python is required, but it does not start. Run ansible-playbook site.yml again." % path)
    return path


def installed_environments(root):
    """Their names, as a sentence has them."""
    trees = [os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(root, "envs", "*", "bin"))]
    return ", ".join(sorted(set(environment_of(tree) for tree in trees))) or "none"


def environment_of(name):
    """The environment that a tree belongs to: NAME of NAME.2."""
    return re.sub(r"(-[0-9a-f]{12})\.\d+$", r"\1", name)


def client_file(root, environment, name):
    """A setting of Spark or Hadoop that belongs to the environment; where nothing is beside it, the host's only one."""
    path = os.path.join(environment, ".deeplearning", "client", name)
    return path if os.path.exists(path) else os.path.join(root, "etc", name)


def hadoop_environment(path):
    """The variables that the role hadoop_client wrote down, as the shell reads them."""
    if not os.path.exists(path):
        raise NotReady(
            "%s is required (it has the paths of Hadoop and Java), but is missing. Write it with "
            "ansible-playbook site.yml --tags always,hadoop_client." % path
        )
    command = ["/bin/sh", "-c", '. "$1" && exec /usr/bin/env', "sh", path]
    output = processes.run(command, TIMEOUT, {"PATH": "/usr/bin:/bin"}).output
    variables = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
    missing = [name for name in HADOOP_NAMES if not variables.get(name)]
    if missing:
        raise NotReady(
            "%s must set %s, but does not. Write it again with ansible-playbook site.yml -e apply=all."
            % (path, ", ".join(missing))
        )
    if not os.path.exists(os.path.join(variables["JAVA_HOME"], "bin", "java")):
        raise NotReady(
            "Java is required at %s (JAVA_HOME in %s), but is missing. Install it, or run ansible-playbook site.yml "
            "after setting hadoop_client_java_home." % (variables["JAVA_HOME"], path)
        )
    return variables


def client_settings(path):
    """Where the role tensorflowonspark put Spark."""
    try:
        with open(path) as handle:
            settings = json.load(handle)
    except (IOError, OSError, ValueError):
        raise NotReady(
            "%s is required (it has the path of Spark), but cannot be read. Write it with ansible-playbook site.yml "
            "--tags always,tensorflowonspark." % path
        )
    submit = os.path.join(settings["spark_home"], "bin", "spark-submit")
    if not os.access(submit, os.X_OK):
        raise NotReady(
            "Spark is required at %s, but there is no bin/spark-submit. Run ansible-playbook site.yml again, or correct spark_home."
            % settings["spark_home"]
        )
    return settings


def spark_version(spark_home):
    """Spark's version as (major, minor), by the name of its jar; None: not known."""
    for path in glob.glob(os.path.join(spark_home, "jars", "spark-core_*.jar")):
        match = re.match(r"spark-core_[\d.]+-(\d+)\.(\d+)\.", os.path.basename(path))
        if match:
            return int(match.group(1)), int(match.group(2))
    return None


def present_jars(settings, path):
    """The jars that every job gets, such as the one that reads TFRecords."""
    jars = settings.get("jars", [])
    missing = [jar for jar in jars if not os.path.exists(jar)]
    if missing:
        raise NotReady(
            "%s is required (%s) but is missing. Run ansible-playbook site.yml -e apply=all."
            % (", ".join(missing), path)
        )
    return jars


def text_of(path):
    try:
        with open(path) as handle:
            return handle.read()
    except (IOError, OSError):
        return ""
