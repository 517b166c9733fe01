"""What this host has for jobs: Spark, and the jars of every job."""

import glob
import json
import os
import re

from ansible.module_utils.hadoop_dl_host.user_environment import NotReady


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
