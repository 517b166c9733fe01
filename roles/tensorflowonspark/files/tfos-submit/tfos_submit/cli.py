# -*- coding: utf-8 -*-
"""Run a TensorFlowOnSpark script on YARN, or here, in an environment of this host: tfos-submit --help."""

from __future__ import absolute_import, division, print_function

import os
import signal
import tempfile
import uuid

from ansible.module_utils.hadoop_dl_host.yarn_cluster import hadoop_configuration, resource_manager_addresses

from tfos_submit import installation, spark
from tfos_submit.job import Job
from tfos_submit.options import arguments_parser
from tfos_submit.outcome import NOT_READY, OK, NotReady, say
from tfos_submit.yarn import ResourceManager


def interrupt(number, frame):
    raise KeyboardInterrupt


def check_files(options):
    """The files that the command line names must exist."""
    if not os.path.isfile(options.script):
        raise NotReady("the script %s is required, but does not exist. Name an existing file." % options.script)
    for path in ((options.py_files or "") + "," + (options.files or "")).split(","):
        if path and "://" not in path and not os.path.exists(path.split("#")[0]):
            raise NotReady(
                "the file %s is required (--py-files, --files), but does not exist. Name an existing file." % path
            )


def run_here(options, environment, hadoop):
    """In place of this process."""
    variables = spark.driver_environment(os.environ, "", environment, hadoop)
    python = variables["PYSPARK_PYTHON"]
    os.execve(python, [python, options.script] + options.arguments, variables)  # noqa: S606 (no shell is wanted)


def run(options):
    root = options.root
    check_files(options)
    environment = installation.environment_path(root, options.environment)
    hadoop = installation.hadoop_environment(installation.client_file(root, environment, "hadoop-env.sh"))
    if options.local:
        run_here(options, environment, hadoop)
    client = installation.client_settings(installation.client_file(root, environment, "tfos-submit.json"))
    spark_home = client["spark_home"]
    jars = installation.present_jars(client, os.path.join(root, "etc", "tfos-submit.json"))
    spark_conf = os.environ.get("SPARK_CONF_DIR") or os.path.join(spark_home, "conf")
    files = (os.path.join(spark_conf, "spark-defaults.conf"), client.get("spark_defaults", ""))
    defaults = [installation.text_of(path) for path in files]
    configuration = hadoop_configuration(hadoop["HADOOP_CONF_DIR"])
    tag = "tfos-submit-" + uuid.uuid4().hex[:12]
    user, version = spark.hdfs_user(os.environ, configuration), installation.spark_version(spark_home)
    settings = spark.properties(options, environment, hadoop, tag, user, version)
    text = spark.properties_text(defaults, spark.with_jars(settings, defaults, jars))
    if options.dry_run:
        print(text + "\n" + " ".join(spark.submit_command(spark_home, "SETTINGS", options)))
        return OK
    say(
        "%d executors with %d MB and %d core%s each, environment %s"
        % (
            options.executors,
            options.memory,
            options.cores,
            "" if options.cores == 1 else "s",
            os.path.basename(environment),
        )
    )
    handle, path = tempfile.mkstemp(prefix="tfos-submit-", suffix=".conf")
    try:
        with os.fdopen(handle, "w") as output:
            output.write(text)
        command = spark.submit_command(spark_home, path, options)
        variables = spark.driver_environment(os.environ, spark_home, environment, hadoop)
        manager = ResourceManager(resource_manager_addresses(configuration))
        return Job(options, command, variables, tag, manager, hadoop).run()
    finally:
        os.unlink(path)


def main(arguments=None):
    options = arguments_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        return run(options)
    except NotReady as error:
        say(str(error))
        return NOT_READY
