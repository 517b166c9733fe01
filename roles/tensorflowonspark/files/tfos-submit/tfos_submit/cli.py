"""Run a TensorFlowOnSpark script on YARN, or here, in an environment of this host: tfos-submit --help."""

from __future__ import absolute_import, division, print_function

import copy
import os
import shutil
import signal
import sys
import tempfile
import uuid

from ansible.module_utils.hadoop_dl_host import own_packages, user_environment
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from ansible.module_utils.hadoop_dl_host.yarn_cluster import hadoop_configuration, resource_manager_addresses

from tfos_submit import applications, archive, gpus, grid, installation, labels, spark
from tfos_submit.job import Job
from tfos_submit.login import Login, yarn_user
from tfos_submit.options import COMMANDS, arguments_parser, command_parser
from tfos_submit.outcome import FAILED, INTERRUPTED, NOT_READY, OK, say
from tfos_submit.shortage import each
from tfos_submit.yarn import ResourceManager, YarnCommand


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
    if options.result and not any(options.result in (text, text.partition("=")[2]) for text in options.arguments):
        raise NotReady(
            "--result %s must be one of the script's own arguments, but is none: the script writes it." % options.result
        )


def configuration_of(hadoop):
    problems = []
    configuration = hadoop_configuration(hadoop["HADOOP_CONF_DIR"], problems)
    if problems:
        raise NotReady("%s. Ask the cluster's administrators to correct it." % problems[0])
    return configuration


def run_here(options, environment, hadoop, own):
    """In place of this process."""
    variables = spark.driver_environment(os.environ, "", environment, hadoop, own)
    gpus.hide(variables, options.gpus)
    python = variables["PYSPARK_PYTHON"]
    os.execve(python, [python, options.script] + options.arguments, variables)  # noqa: S606 (no shell is wanted)


def run(options):
    """Run the script, in a job again if that was lost (--attempts); returns the exit status of the last attempt."""
    for attempt in range(1, options.attempts + 1):
        again = copy.copy(options)
        again.attempt = attempt
        status, loss = run_once(again)
        if not loss:
            break
        say("attempt %d of %d was lost, so the job is submitted again: %s" % (attempt, options.attempts, loss[:300]))
    return status


def run_once(options):
    """The exit status, and what was lost if another attempt may succeed."""
    root = options.root
    check_files(options)
    own = own_packages.opened(root, options.venv) if options.venv else None
    environment = own.environment if own else user_environment.environment_path(root, options.environment)
    environment_file = user_environment.client_file(root, environment, "hadoop-env.sh")
    hadoop = user_environment.hadoop_environment(environment_file)
    if options.local:
        run_here(options, environment, hadoop, own)
    client_file = user_environment.client_file(root, environment, "tfos-submit.json")
    client = installation.client_settings(client_file)
    spark_home = client["spark_home"]
    jars = installation.present_jars(client, client_file)
    spark_conf = os.environ.get("SPARK_CONF_DIR") or os.path.join(spark_home, "conf")
    files = (os.path.join(spark_conf, "spark-defaults.conf"), client.get("spark_defaults", ""))
    defaults = [installation.text_of(path) for path in files]
    spark.complete(options, defaults)
    configuration = configuration_of(hadoop)
    tag = "tfos-submit-" + uuid.uuid4().hex[:12]
    user, version = spark.hdfs_user(os.environ, configuration), installation.spark_version(spark_home)
    gpus.check_spark(options.gpus, version, spark_home)
    directory = tempfile.mkdtemp(prefix="tfos-submit-")
    try:
        if options.params:
            grid.prepare(options, environment, version, directory)
        login = Login(options, configuration, directory)
        manager = ResourceManager(resource_manager_addresses(configuration))
        if options.per_node or not options.dry_run:
            login.begin()
            manager.partition = labels.partition(options, manager)
        if options.per_node:
            options.memory = gpus.memory_for(options, manager.nodes())
        settings = spark.properties(options, environment, hadoop, tag, user, version)
        settings = spark.secured(settings, defaults, version)
        text = spark.properties_text(defaults, spark.with_jars(settings, defaults, jars))
        if options.dry_run:
            archives = [("PACKAGES", spark.PACKAGES)] if own else []
            archives += [("ARCHIVE", spark.ENVIRONMENT)] if options.archive else []
            command = spark.submit_command(spark_home, "SETTINGS", options, archives=archives)
            print(text + "\n" + " ".join(command))
            return OK, ""
        if options.gpus:
            gpus.check_cluster(options, manager.partition, manager.nodes())
        place = " from " + options.archive if options.archive else ""
        say(
            "%d executors with %s each%s, environment %s%s"
            % (options.executors, each(options), labels.words(options), os.path.basename(environment), place)
        )
        path = os.path.join(directory, "spark.conf")
        with open(path, "w") as output:
            output.write(text)
        programs = gpus.write_programs(
            directory, options.gpus, environment, spark.ENVIRONMENT if options.archive else environment
        )
        packages = own_packages.pack(own, os.path.join(directory, "packages.zip")) if own else None
        archives = [(packages, spark.PACKAGES)] if packages else []
        if options.archive:
            archive_file = archive.kept(options.archive, environment, environment_file, login.names(user))
            archives.append((archive_file, spark.ENVIRONMENT))
        command = spark.submit_command(spark_home, path, options, programs, archives)
        pythons = spark.pythons(options, environment)
        variables = spark.driver_environment(os.environ, spark_home, environment, hadoop, own, pythons)
        gpus.hide(variables, options.gpus)
        job = Job(options, command, variables, tag, manager, hadoop, login)
        status = job.run()
        loss = job.loss() if status == FAILED and options.attempt < options.attempts else ""
        return grid.report(options, status) if options.params else status, loss
    finally:
        shutil.rmtree(directory)


def manage(command, options):
    """Run one of COMMANDS with the active environment's Hadoop; returns the exit status."""
    environment = user_environment.environment_path(options.root, os.environ.get(user_environment.DEFAULT))
    path = user_environment.client_file(options.root, environment, "hadoop-env.sh")
    hadoop = user_environment.hadoop_environment(path)
    configuration = configuration_of(hadoop)
    user = yarn_user(configuration)
    yarn = YarnCommand(hadoop.get("HADOOP_HOME", ""), spark.driver_environment(os.environ, "", environment, hadoop))
    manager = ResourceManager(resource_manager_addresses(configuration))
    return getattr(applications, command)(options, manager, yarn, user)


def main(arguments=None):
    """The exit status of the command line. arguments: without the program's name."""
    arguments = sys.argv[1:] if arguments is None else arguments
    command = arguments[0] if arguments and arguments[0] in COMMANDS else None
    of_grid = arguments[:1] == [grid.OPTION]
    parser = command_parser(command) if command else grid.parser() if of_grid else arguments_parser()
    options = parser.parse_args(arguments[1:] if command or of_grid else arguments)
    if of_grid and (options.local or options.result):
        parser.error("--local and --result are for one run of a script, not for a grid")
    if not command and bool(options.principal) != bool(options.keytab):
        parser.error("--principal and --keytab are required together, and one is missing")
    if not command and options.local and options.attempts > 1:
        parser.error("--attempts is for a job on YARN, and --local runs the script here")
    signal.signal(signal.SIGTERM, interrupt)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # of nohup
        signal.signal(signal.SIGHUP, interrupt)
    try:
        return manage(command, options) if command else run(options)
    except NotReady as error:
        say(str(error))
        return NOT_READY
    except KeyboardInterrupt:  # a job handles it itself
        return INTERRUPTED
