"""A job for Spark: its settings, the command, and the variables of the driver."""

import os
import pwd
import re

from ansible.module_utils.hadoop_dl_host.user_environment import HADOOP_NAMES, program_variables
from ansible.module_utils.hadoop_dl_host.yarn_cluster import mark

from tfos_submit import gpus, labels

LOG_DIRECTORY = "<LOG_DIR>"  # YARN puts in the directory of the container's logs, which are collected
DRIVER_MB = 2048  # in cluster mode, beside the heap: the script's Python, TensorFlow included, is in the container
# In the containers' working directory: the user's own packages, and with --archive the environment.
PACKAGES, ENVIRONMENT = "deeplearning-packages", "deeplearning-environment"
QUEUE = "spark.yarn.queue"
HEAP_MB = 1024  # of an executor's memory; TensorFlow lives in a Python process beside the JVM and takes the rest


def hdfs_user(inherited, configuration):
    """The user who owns what the executors write. If YARN starts containers as its own user, libhdfs would take that name.

    With Kerberos the name does not count, and none is given.
    """
    if configuration.get("hadoop.security.authentication", "simple") != "simple":
        return None
    return inherited.get("HADOOP_USER_NAME") or pwd.getpwuid(os.geteuid()).pw_name


def overhead_names(version, role="executor"):
    """The names of the memory beside the heap: Spark reads another one before 2.3, and warns of that one since."""
    old_names, new_names = ["spark.yarn.%s.memoryOverhead" % role], ["spark.%s.memoryOverhead" % role]
    if version is None:
        return old_names + new_names
    return new_names if version >= (2, 3) else old_names


def pythons(options, environment):
    """The Python of the executors and that of the driver."""
    installed = os.path.join(environment, "bin", "python")
    executors = "./%s/bin/python" % ENVIRONMENT if options.archive else installed
    if gpus.answers(options.gpus, environment):
        executors = gpus.PYTHON
    return executors, executors if options.deploy_mode == "cluster" else installed


def properties(options, environment, hadoop, tag, user=None, version=None):
    """The settings of the job, in the order in which they are written. version: of Spark, (major, minor)."""
    executor_python, driver_python = pythons(options, environment)
    heap = min(HEAP_MB, options.memory // 2)
    settings = [
        ("spark.master", "yarn"),
        ("spark.submit.deployMode", options.deploy_mode),
        ("spark.app.name", options.name or os.path.basename(options.script)),
        # By the second one, hosts keep an environment while an application waits for it in a queue. By the third, jobs knows the mode.
        ("spark.yarn.tags", "%s,%s,%s-mode" % (tag, mark(environment), options.deploy_mode)),
        ("spark.yarn.maxAppAttempts", "1"),
        ("spark.deeplearning.job", options.job),  # of all attempts: by it a script knows its own last checkpoint
        ("spark.dynamicAllocation.enabled", "false"),
        ("spark.speculation", "false"),
        # One executor, one task, one TensorFlow node; and all of them before the first task, so that none takes two.
        ("spark.executor.instances", str(options.executors)),
        ("spark.executor.cores", str(options.cores)),
        ("spark.task.cpus", str(options.cores)),
        ("spark.scheduler.minRegisteredResourcesRatio", "1.0"),
        # An executor that finds no GPU of its own ends, and one that unpacks the environment is late: with fewer the job never starts.
        (
            "spark.scheduler.maxRegisteredResourcesWaitingTime",
            "%ds" % (options.timeout if options.gpus or options.archive else options.wait + 60),
        ),
        # A second try finds the first one's TensorFlow node in its way, and hides what went wrong.
        ("spark.task.maxFailures", "1"),
        ("spark.executor.memory", "%dm" % heap),
        ("spark.driver.memory", options.driver_memory),
        ("spark.pyspark.python", executor_python),
        ("spark.pyspark.driver.python", driver_python),
        ("spark.ui.showConsoleProgress", "false"),
    ]
    settings += [(name, "%dm" % (options.memory - heap)) for name in overhead_names(version)]
    if options.deploy_mode == "cluster":
        settings += [(name, "%dm" % DRIVER_MB) for name in overhead_names(version, "driver")]
    if options.queue:
        settings.append((QUEUE, options.queue))
    if options.node_label:
        settings.append((labels.SETTING, options.node_label))
    for prefix in ("spark.yarn.appMasterEnv.", "spark.executorEnv."):
        settings.append((prefix + "PYSPARK_PYTHON", executor_python))
        settings += [(prefix + name, hadoop[name]) for name in HADOOP_NAMES]
        settings += [(prefix + "HADOOP_USER_NAME", user)] if user else []
        # YARN puts the container's directory in; Spark adds its own part behind.
        settings += [(prefix + "PYTHONPATH", "{{PWD}}/" + PACKAGES)] if options.venv else []
    return settings + gpus.settings(options.gpus) + list(options.conf)


def values_of(name, defaults, settings):
    """What the site's defaults and then the settings have for a name; the last one counts."""
    pattern = r"(?m)^[ \t]*%s(?:[ \t]*[=:][ \t]*|[ \t]+)(\S.*?)[ \t]*$" % re.escape(name)
    default_values = [value for text in defaults for value in re.findall(pattern, text)]
    return default_values + [value for key, value in settings if key == name]


def complete(options, defaults):
    """A queue and a label that --conf or the site's defaults name count as if they were options."""
    for name, attribute in ((QUEUE, "queue"), (labels.SETTING, "node_label")):
        option_value = getattr(options, attribute)
        values = values_of(name, defaults, ([(name, option_value)] if option_value else []) + options.conf)
        setattr(options, attribute, values[-1] if values else None)


def secured(settings, defaults, version):
    """The settings with Spark's authentication and encryption, if neither site nor job decides: YARN brings executors a secret of this job.

    Without it, who reaches the driver's or an executor's port runs code as the job's user. The site's shuffle service does not know the secret.
    https://spark.apache.org/docs/2.1.0/security.html and 3.5: before 2.2 there is SASL's encryption alone.
    """
    if values_of("spark.authenticate", defaults, settings):
        return settings
    encryption = "authenticate.enableSaslEncryption" if version and version < (2, 2) else "network.crypto.enabled"
    names = (
        ("spark.authenticate", "true"),
        ("spark." + encryption, "true"),
        ("spark.shuffle.service.enabled", "false"),
    )
    return list(names) + settings


def with_jars(settings, defaults, jars):
    """The settings with the jars of every job, before those that the job or the site's defaults name."""
    values = values_of("spark.jars", defaults, settings)
    return settings + ([("spark.jars", ",".join(jars + values[-1:]))] if jars else [])


def properties_text(defaults, settings):
    """A properties file: the defaults first, because the last line of a name counts."""
    lines = ["%s %s" % (name, value.replace("\\", "\\\\")) for name, value in settings]
    return "\n".join([text.rstrip("\n") for text in defaults if text] + lines) + "\n"


def result_arguments(options):
    """The script's arguments; in cluster mode the result goes to the logs, with which YARN collects it."""
    if options.deploy_mode != "cluster" or not options.result:
        return options.arguments
    path = LOG_DIRECTORY + "/" + os.path.basename(options.result)
    return [re.sub("(^|=)%s$" % re.escape(options.result), r"\1" + path, text) for text in options.arguments]


def submit_command(spark_home, properties_file, options, programs=(), archives=()):
    """programs: of this one, which executors start. archives: pairs of a path, and the directory that executors have for it."""
    command = [os.path.join(spark_home, "bin", "spark-submit"), "--properties-file", properties_file]
    files = ",".join(path for path in [options.files] + list(programs) if path)
    unpacked = ",".join("%s#%s" % pair for pair in archives)
    for name, value in (("--py-files", options.py_files), ("--files", files), ("--archives", unpacked)):
        command += [name, value] if value else []
    command += ["--principal", options.principal, "--keytab", options.keytab] if options.keytab else []
    return command + [options.script] + result_arguments(options)


def driver_environment(inherited, spark_home, environment, hadoop, own=None, pythons=None):
    """The driver runs here and needs the same variables as the executors. own: the user's own packages. pythons: if they differ."""
    variables = program_variables(inherited, environment, hadoop)
    if spark_home:
        variables["SPARK_HOME"] = spark_home
    if own:
        # Before 2.4 Spark writes this over what the containers' settings have (SPARK-22151): the first part is theirs.
        variables["PYTHONPATH"] = "{{PWD}}/%s:%s" % (PACKAGES, own.site) if spark_home else own.site
    python = os.path.join(environment, "bin", "python")
    variables["PYSPARK_PYTHON"], variables["PYSPARK_DRIVER_PYTHON"] = pythons or (python, python)
    return variables
