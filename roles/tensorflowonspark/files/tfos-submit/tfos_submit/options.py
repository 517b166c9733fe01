"""What the user asks for: the command line."""

import argparse
import os
import re
import uuid

from ansible.module_utils.hadoop_dl_host.user_environment import DEFAULT, ROOT

DESCRIPTION = "Run a TensorFlowOnSpark script on YARN, in the active environment of this host."
EPILOGUE = """other commands (a script with such a name is written with its directory, as ./jobs):
  tfos-submit jobs [--all]      list your applications in YARN; --all: everybody's that hold GPUs
  tfos-submit logs APPLICATION  print the logs of an application
  tfos-submit stop APPLICATION  end an application

exit status:
  0    the script succeeded
  1    the script or the Spark application failed (the executors' logs are printed), or --result was not written
  2    wrong usage
  3    something that the job needs is missing on this host or in YARN; nothing was submitted
  4    the application ran, but YARN did not give all executors in time (--wait); it was ended
  5    the job took longer than --timeout; the application was ended
  130  interrupted; the application was ended

With --attempts it is that of the last attempt.

jobs, logs and stop end with 0, 2 or 3, and with 1 if there are no logs or YARN refuses to end the application.
"""
COMMANDS = ("jobs", "logs", "stop")


def megabytes(text):
    """2g, 2048m or 2048 as megabytes."""
    match = re.match(r"^(\d+)\s*([mg]?)b?$", text.strip().lower())
    if not match or not int(match.group(1)):
        raise argparse.ArgumentTypeError("memory is written like 3g or 3072m, and this is %r" % text)
    return int(match.group(1)) * (1024 if match.group(2) == "g" else 1)


def count(text):
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError("a whole number above 0 is required, but this is %r" % text)
    return int(text)


def gpu_count(text):
    if not text.isdigit():
        raise argparse.ArgumentTypeError("a whole number is required, but this is %r" % text)
    return int(text)


def address(text):
    # Without what hdfs dfs takes for a pattern, or Spark for a separator.
    if not re.match(r"^\w[\w+.-]*://[\w.:-]*(/(?!\.\.?(/|$))[^\s*?{}\[\]\\,#/]+)+/*$", text, re.U):
        raise argparse.ArgumentTypeError("all hosts must reach it, as hdfs:///user/me/DIR, but this is %r" % str(text))
    return text.rstrip("/")


def label(text):
    if not re.match(r"^[0-9A-Za-z][0-9A-Za-z_-]*$", text):  # Hadoop's own form (NodeLabelUtil.java)
        raise argparse.ArgumentTypeError("a node label has letters, digits, - and _, but this is %r" % text)
    return text


def setting(text):
    name, separator, value = text.partition("=")
    if not separator or not name.startswith("spark."):
        raise argparse.ArgumentTypeError("a Spark setting is written like spark.name=value, and this is %r" % text)
    return name, value


def application(text):
    if not re.match(r"^application_\d+_\d+$", text):
        raise argparse.ArgumentTypeError(
            "an application is written like application_1700000000000_0001 (tfos-submit jobs), and this is %r" % text
        )
    return text


def command_parser(command):
    """The parser for what follows one of COMMANDS."""
    parser = argparse.ArgumentParser(prog="tfos-submit " + command)
    if command != "jobs":
        parser.add_argument("application", type=application, help="its identifier, as tfos-submit jobs lists it")
    else:
        parser.add_argument("--all", action="store_true", help="the running applications of all users that hold GPUs")
    parser.add_argument("--root", default=ROOT, help=argparse.SUPPRESS)
    return parser


def arguments_parser():
    parser = argparse.ArgumentParser(
        prog="tfos-submit",
        description=DESCRIPTION,
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--executors", type=count, default=2, help="executors; each takes one TensorFlow node (default: 2)"
    )
    parser.add_argument("--cores", type=count, default=1, help="cores of each executor (default: 1)")
    parser.add_argument(
        "--memory", type=megabytes, default="3g", help="memory of each executor, TensorFlow's included (default: 3g)"
    )
    parser.add_argument(
        "--gpus",
        type=gpu_count,
        help="GPUs of each executor, from YARN (Spark 3); 0 hides the hosts' GPUs from the job (default: as the hosts have it)",
    )
    parser.add_argument(
        "--per-node",
        type=count,
        metavar="N",
        help="at most N executors on a node, where YARN does not know GPUs: --memory is raised until no more fit",
    )
    parser.add_argument("--driver-memory", default="1g", help="heap of the driver's JVM (default: 1g)")
    parser.add_argument(
        "--deploy-mode",
        choices=("client", "cluster"),
        default="client",
        help="where the script runs: on this host, or on a data node; then its output is printed at the end (default: client)",
    )
    parser.add_argument(
        "--result",
        help="a file that the script writes and that its arguments name; after --deploy-mode cluster it is fetched to here",
    )
    parser.add_argument(
        "--timeout",
        type=count,
        default=86400,
        help="seconds after which the job is ended, those in the queue included (default: 86400)",
    )
    parser.add_argument(
        "--wait",
        type=count,
        default=40,
        help="seconds to wait for all executors once the application runs (default: 40)",
    )
    parser.add_argument(
        "--attempts",
        type=count,
        default=1,
        help="how often the job may be submitted: again after a lost executor, a lost host or a preemption, never after an error of the script "
        "(default: 1)",
    )
    parser.add_argument("--queue", help="YARN queue")
    parser.add_argument(
        "--node-label",
        type=label,
        metavar="LABEL",
        help="run executors only on nodes with this YARN label, such as gpu (default: the queue's)",
    )
    parser.add_argument(
        "--principal",
        help="on a cluster with Kerberos: who the job runs as, with --keytab (default: the ticket's user)",
    )
    parser.add_argument(
        "--keytab", type=os.path.abspath, help="file with the keys of --principal; nobody else may read it"
    )
    parser.add_argument("--name", help="name of the application (default: the script's name)")
    parser.add_argument("--py-files", help="Python files that the script imports, separated by commas")
    parser.add_argument("--files", help="other files for the executors' working directory, separated by commas")
    parser.add_argument(
        "--conf", type=setting, action="append", default=[], help="a Spark setting, such as spark.name=value"
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--venv",
        metavar="DIR",
        help="your packages in DIR, too (deeplearning venv); executors get them for this job only",
    )
    choice.add_argument(
        "--stack",
        "--environment",
        dest="environment",
        default=os.environ.get(DEFAULT),
        help="another environment than the active one, such as tf2.15 (deeplearning list; %s)" % DEFAULT,
    )
    parser.add_argument(
        "--archive",
        type=address,
        metavar="DIR",
        help="executors get the environment from this directory of HDFS, so their hosts need none; the first job packs it",
    )
    parser.add_argument(
        "--local", action="store_true", help="run the script here, in the same environment, without YARN"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the settings and the command, submit nothing")
    parser.set_defaults(params=None, attempt=1, job=uuid.uuid4().hex[:12])  # of a grid; of --attempts
    parser.add_argument("--root", default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--poll", type=float, default=2.0, help=argparse.SUPPRESS)  # seconds between looks at YARN
    parser.add_argument("script", help="the Python script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")
    return parser
