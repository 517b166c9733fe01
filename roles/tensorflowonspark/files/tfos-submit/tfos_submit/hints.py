# -*- coding: utf-8 -*-
"""Sentences for the known ways in which jobs fail."""

from __future__ import absolute_import, division, print_function

import re

from tfos_submit.first_error import first_error
from tfos_submit.outcome import say

# What people get wrong, by what Spark or TensorFlow then says.
HINTS = (
    (
        r"(?m)^\S+\.py: error: (.+)$",
        "The script refused its arguments: {0}",
    ),
    (
        r"Cannot run program \"([^\"]*/envs/[^\"/]+)/bin/python\"",
        "An executor's host has no environment {0}. Bring it there with --archive, or install it: ansible-playbook site.yml --limit data_nodes",
    ),
    (
        r"Cannot run program \"\./deeplearning-environment/bin/python\"",
        "An executor's host lacks the Python of this host, which --archive does not bring. Ask the operator to install it there, at the same path.",
    ),
    (
        r"above the max threshold \((\d+) MB\)",
        "YARN gives one container {0} MB at most (yarn.scheduler.maximum-allocation-mb). Ask for less with --memory.",
    ),
    (
        r"[Tt]imed out (?:while )?waiting for reservations",
        "Not every executor started its TensorFlow node. The logs of the executors say why.",
    ),
    (
        r"Reservation server unable to bind to any ports",
        "The driver's host has no free port among those of TFOS_SERVER_PORT. Give each job of the host one (40001-40010), or leave it out.",
    ),
    (
        r"Timeout while feeding partition",
        "TensorFlow did not read a partition within feed_timeout (600 s). An earlier error of the same container says why; without one, the "
        "script stopped reading before the data ended (feed.terminate() skips the rest), or a step takes too long.",
    ),
    (
        r"Python in worker has different version:? (\(\d+, \d+\)|[\d.]+) than that in driver:? ([\d.]+)",
        "The driver has Python {1}, and an executor {0}. Remove PYSPARK_PYTHON and spark.pyspark.python from the script and from --conf: "
        "tfos-submit sets both to the environment's.",
    ),
    (
        r"File system scheme '?hdfs'? not implemented",
        "This TensorFlow does not know hdfs://. Import tensorflow_io first if the environment has it, or read the data with Spark.",
    ),
    (
        r"(?:libhdfs|libjvm)\.so: cannot open shared object|unable to get root cause for java\.lang\.NoClassDefFoundError",
        "TensorFlow could not load the Hadoop client. Write its environment again: ansible-playbook site.yml --tags always,hadoop_client -e apply=all",
    ),
    (
        r"Container killed by YARN for exceeding (?![^\n]*virtual)|running beyond physical memory limits|running \d+B beyond the 'PHYSICAL'",
        "An executor used more memory than it asked for. Ask for more with --memory.",
    ),
    (
        r"B virtual memory used|running beyond virtual memory limits|beyond the 'VIRTUAL'",
        "YARN counts the addresses that TensorFlow reserves. Ask the operator for yarn.nodemanager.vmem-check-enabled=false.",
    ),
    (
        r"No such file or directory: .*nvidia-smi|nvidia-smi: (?:command )?not found",
        "A program of the job starts nvidia-smi, and an executor's host has none. Train on CPUs (--gpus 0), or install the driver.",
    ),
    (
        r"Unable to (?:allocate|find .*free) GPU",
        "An executor found no free GPU. Ask YARN for it (--gpus) and leave num_gpus out of the script's arguments, or wait for the other jobs on its host.",
    ),
    (
        r"tfos-gpus: (.*[^\s.])",
        "An executor found no GPU of its own: {0}. Look for jobs without --gpus and for other programs on that host.",
    ),
    (
        r"Cannot locate default realm|Can't get Kerberos realm",
        "A host has no /etc/krb5.conf with default_realm, which Kerberos needs also where jobs only have tokens. ansible-playbook playbooks/plan.yml names it.",
    ),
    (
        r"Clock skew too great",
        "The clock of a host is more than five minutes away from the KDC's, which Kerberos refuses. Ask the operator: chronyc tracking shows it.",
    ),
    (
        r"InvalidToken",
        "A token of HDFS or YARN is not valid any more. Those of a job end after dfs.namenode.delegation.token.max-lifetime, of one by --keytab after "
        "its renew-interval: start the job again from its last checkpoint.",
    ),
    (
        r"SIMPLE authentication is not enabled",
        "The cluster requires Kerberos, but the configuration of this client does not. Deploy the cluster's core-site.xml to the host, and run "
        "ansible-playbook site.yml --tags always,hadoop_client -e apply=all.",
    ),
    (
        r"Client cannot authenticate via:\[TOKEN, KERBEROS\]",
        "A program had neither a ticket nor a token for HDFS or YARN. Jobs get tokens for fs.defaultFS; name other file systems in "
        "spark.kerberos.access.hadoopFileSystems (Spark 2: spark.yarn.access.hadoopFileSystems).",
    ),
    (
        r"Unknown error 255",
        "TensorFlow's \"Unknown error 255\" is an exception of libhdfs. The same container's stderr names it; without a ticket or token it is "
        '"Client cannot authenticate".',
    ),
    (
        r"Unsupported class file major version",
        "Spark 2 requires Java 8, but runs on a later one. Ask the operator to set hadoop_client_java_home to the hosts' Java 8 and to run "
        "ansible-playbook site.yml --tags always,hadoop_client -e apply=all.",
    ),
    (
        r"Permission denied: user=([^,]+), access=(\w+), inode=\"([^\"]+)\"",
        "HDFS does not let {0} have {1} access to {2}. Ask for the right, or name another directory.",
    ),
)


def hints(text):
    """Sentences for the known ways in which jobs fail."""
    sentences = []
    for pattern, sentence in HINTS:
        match = re.search(pattern, text)
        if match:
            sentences.append(sentence.format(*match.groups()))
    return sentences


def say_causes(text, logs):
    """Print the hints for what was said and logged, and the containers' first error. text: of Spark. logs: as `yarn logs` prints them."""
    for sentence in hints(text + logs):
        say("hint: " + sentence)
    first = first_error(logs)
    if first:
        say("the first error: " + first)
