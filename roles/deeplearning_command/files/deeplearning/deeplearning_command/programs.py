"""deeplearning run, python and pip: programs of an environment, in place of this one."""

import os
import signal

from ansible.module_utils.hadoop_dl_host import own_packages
from ansible.module_utils.hadoop_dl_host.user_environment import (
    HIDDEN,
    NotReady,
    client_file,
    hadoop_environment,
    program_variables,
)

from deeplearning_command import options
from deeplearning_command.options import Refused, say

READING = ("check", "freeze", "help", "inspect", "list", "show", "--help", "-h", "--version", "-V")


def run(arguments):
    parser = options.parser(
        "run",
        "[--stack NAME | --venv DIR] [--gpus none] SCRIPT [ARGUMENT ...]",
        "Run a Python script in an environment of this host. hdfs:// works in it. Signals and exit status are the script's.",
        ["deeplearning run train.py --epochs 5", "deeplearning run --stack tf2.15 --gpus none train.py"],
    )
    add_options(parser)
    args, command = options.leading(parser, arguments)
    if not command or command[0].startswith("-"):
        parser.error(
            "a script is required%s" % (", and options after it are its own; found: " + command[0] if command else "")
        )
    if not os.path.isfile(command[0]):
        raise NotReady("the script %s is required, but does not exist. Name an existing file." % command[0])
    return replace(args, command)


def python(arguments):
    parser = options.parser(
        "python",
        "[--stack NAME | --venv DIR] [--gpus none] [ARGUMENT ...]",
        "Start the Python of an environment, with its packages and with hdfs://. Without an argument it reads what you type.",
        ["deeplearning python", "deeplearning python -c 'import tensorflow as tf; print(tf.__version__)'"],
    )
    add_options(parser)
    return replace(*options.leading(parser, arguments))


def pip(arguments):
    parser = options.parser(
        "pip",
        "[--stack NAME | --venv DIR] {list,show,freeze,check} ...",
        "Show the packages of an environment. It never changes: packages of your own come into a directory of your own\n"
        "(deeplearning venv --help).",
        ["deeplearning pip list", "deeplearning pip show tensorflow"],
    )
    options.add_environment(parser)
    args, command = options.leading(parser, arguments)
    args.gpus = None
    if not command:
        parser.error("a command of pip is required, such as list")
    if command[0] not in READING:
        own = args.venv or "~/my"
        raise Refused(
            "pip %s is refused: an environment is the same on all hosts and never changes. For packages of your own: %s%s/bin/pip %s"
            % (command[0], "" if args.venv else "deeplearning venv %s, then " % own, own, " ".join(command))
        )
    os.environ["PIP_DISABLE_PIP_VERSION_CHECK"] = os.environ["PIP_NO_PYTHON_VERSION_WARNING"] = "1"
    return replace(args, command, "pip")


def add_options(parser):
    options.add_environment(parser)
    parser.add_argument(
        "--gpus",
        type=options.gpus,
        metavar="none",
        help="none: the program sees no GPU, and TensorFlow computes on the CPU",
    )


def place(args):
    """(environment, its Python): with --venv the one below the user's packages."""
    if args.venv:
        own = own_packages.opened(args.root, args.venv)
        return own.environment, own.python
    environment = options.chosen(args.root, args.stack)
    return environment, os.path.join(environment, "bin", "python")


def hadoop(root, environment):
    """Hadoop's variables; empty on a host without it. A script that needs no HDFS runs where they cannot be used, too."""
    path = client_file(root, environment, "hadoop-env.sh")
    if not os.path.exists(path):
        return {}
    try:
        return hadoop_environment(path)
    except NotReady as error:
        say("hdfs:// does not work here: %s" % error)
        return {}


def replace(args, arguments, program=None, before=None):
    """Become the environment's Python. program: that Python runs, of its bin or a path. before: called with the variables just before."""
    environment, executable = place(args)
    command = [executable] + ([os.path.join(environment, "bin", program)] if program else []) + arguments
    variables = program_variables(os.environ, environment, hadoop(args.root, environment))
    if args.venv:
        variables["PATH"] = os.pathsep.join([os.path.dirname(executable), variables["PATH"]])
    variables.update(HIDDEN if args.gpus == 0 else [])
    if before:
        before(variables)
    for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and a program would inherit that
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    os.execve(executable, command, variables)  # noqa: S606 (no shell is wanted)
