"""--gpus: Spark's settings for GPUs, and what must be true before a job requests GPUs."""

import glob
import os
import pkgutil
import re

from ansible.module_utils.hadoop_dl_host.user_environment import HIDDEN, NotReady

from tfos_submit import labels

RESOURCE = "yarn.io/gpu"
SCRIPT = "tfos-gpus"  # in the executors' working directory
PROGRAMS = "deeplearning-programs"  # there, too: nvidia-smi, and the Python that finds it first
# Not PATH in the settings: YARN starts the container itself with it, and knows neither $PWD nor the old PATH there.
PYTHON = "./%s/python" % PROGRAMS
HEREDOC = "exec \"%s\" -E -s -%s <<'TFOS-GPUS'\n%sTFOS-GPUS\n"
PREFIXES = ("spark.yarn.appMasterEnv.", "spark.executorEnv.")


def settings(gpus):
    """Of Spark; gpus: of each executor, 0 hides all, None leaves everything as it is."""
    if gpus is None:
        return []
    hidden = [(prefix + name, value) for prefix in PREFIXES for name, value in HIDDEN]
    hidden += [(prefix + "TFOS_GPUS", "0") for prefix in PREFIXES]
    if not gpus:
        return hidden
    # The application's master has no GPU of its own: it sees none. An executor's task sees those that Spark gives it.
    return [(name, value) for name, value in hidden if name != "spark.executorEnv.CUDA_VISIBLE_DEVICES"] + [
        ("spark.executorEnv.TFOS_GPUS", str(gpus)),
        ("spark.executor.resource.gpu.amount", str(gpus)),
        ("spark.executor.resource.gpu.discoveryScript", "./" + SCRIPT),
        ("spark.task.resource.gpu.amount", str(gpus)),
    ]


def hide(variables, gpus):
    """A process on this host, too, sees no GPU with --gpus 0."""
    variables.update(HIDDEN if gpus == 0 else [])


def of_version_1(environment):
    """Whether the environment has a TensorFlowOnSpark that asks nvidia-smi alone."""
    return bool(glob.glob(os.path.join(environment, "lib", "python*", "site-packages", "tensorflowonspark-1.*")))


def answers(gpus, environment):
    """Whether this program answers TensorFlowOnSpark in place of nvidia-smi. Version 2 with GPUs of Spark does not ask."""
    return gpus == 0 or of_version_1(environment)


def write_programs(directory, gpus, environment, of_executors):
    """What executors start beside the job, as --files names it. of_executors: the environment's path there."""
    python = os.path.join(of_executors, "bin", "python")
    names = []
    if gpus:
        names.append(SCRIPT)
        write_program(directory, SCRIPT, HEREDOC % (python, "", source("discovery.py")))
    if answers(gpus, environment):
        names += [name + "#%s/%s" % (PROGRAMS, name) for name in ("python", "nvidia-smi")]
        write_program(directory, "python", 'PATH="$PWD/%s:$PATH"\nexport PATH\nexec "%s" "$@"\n' % (PROGRAMS, python))
        version = "1" if of_version_1(environment) else "2"
        write_program(directory, "nvidia-smi", HEREDOC % (python, ' "$0" %s "$@"' % version, source("nvidia_smi.py")))
    return [os.path.join(directory, name) for name in names]


def source(name):
    return pkgutil.get_data("tfos_submit", name).decode("utf-8")


def write_program(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as output:
        output.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o700)


def hadoop_client(spark_home):
    """The version of the Hadoop client in Spark, as a list of numbers; empty: not known."""
    for path in glob.glob(os.path.join(spark_home, "jars", "hadoop-*.jar")):
        match = re.match(r"hadoop-(?:client-api|yarn-api)-(\d+)\.(\d+)", os.path.basename(path))
        if match:
            return [int(part) for part in match.groups()]
    return []


def check_spark(gpus, version, spark_home):
    """If Spark or its Hadoop client is too old, it ignores the request and starts without GPUs."""
    if not gpus:
        return
    remedy = "Name a queue of hosts with GPUs (--queue) without --gpus, or take a stack with a later Spark."
    if version and version < (3, 0):
        raise NotReady(
            "--gpus %d requires Spark 3, but %s is Spark %d.%d. %s" % ((gpus, spark_home) + version + (remedy,))
        )
    client = hadoop_client(spark_home)
    if client and client != [2, 10] and client < [3, 1]:
        raise NotReady(
            "--gpus %d requires a Spark with Hadoop's client 2.10, or 3.1 or later, but that in %s is %d.%d, which "
            "cannot ask YARN for %s. %s" % (gpus, spark_home, client[0], client[1], RESOURCE, remedy)
        )


def memory_for(options, nodes):
    """MB of each executor: --memory, or more, so that the largest node has no room for more than --per-node of them."""
    totals = [node["total_mb"] for node in nodes if node["state"] == "RUNNING"]
    if not totals:
        raise NotReady(
            "--per-node %d requires the memory of YARN's nodes, but the ResourceManager names no running one. Leave it out, or "
            "try: yarn node -list" % options.per_node
        )
    return max(options.memory, max(totals) // (options.per_node + 1) + 1)


def check_cluster(options, partition, nodes):
    """What YARN can never give is refused before anything is submitted. partition: None if YARN does not answer. nodes: of it."""
    if not partition or not nodes and not partition.others():
        return
    usable = [node for node in nodes if node["state"] == "RUNNING"]
    fits = sum(node["total_gpus"] // options.gpus for node in usable)
    if fits >= options.executors:
        return
    raise NotReady(
        "%d executors with %d GPU%s each (%s%s, in queue %s) require more than YARN has: %d of them fit. "
        "Nodes: %s.%s Ask for fewer (--executors, --gpus); if GPUs are missing there, run gpu-check on the node and "
        "see its NodeManager's log."
        % (
            options.executors,
            options.gpus,
            "" if options.gpus == 1 else "s",
            RESOURCE,
            labels.words(options),
            options.queue or "default",
            fits,
            "; ".join(
                "%s (%s) has %d" % (node["name"], node["state"], node["total_gpus"])
                for node in sorted(nodes, key=lambda node: str(node["name"]))
            )
            or "none",
            partition.others(),
        )
    )
