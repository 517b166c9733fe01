"""What the commands have in common: their options, their exit statuses, and how they speak."""

import argparse
import os
import sys

from ansible.module_utils.hadoop_dl_host import user_environment
from ansible.module_utils.hadoop_dl_host.text_columns import write
from ansible.module_utils.hadoop_dl_host.user_environment import DEFAULT, ROOT, NotReady

OK, USAGE, NOT_READY = 0, 2, 3


class Refused(Exception):
    """A wrong usage; the text has what is required, what was found, and what to do."""


def say(text):
    write("deeplearning: %s\n" % text, sys.stderr)


def parser(command, usage, description, example):
    """A parser whose help ends with an example."""
    parser = argparse.ArgumentParser(
        prog="deeplearning " + command,
        usage="deeplearning %s %s" % (command, usage),
        description=description,
        epilog="example:\n" + "".join("  %s\n" % line for line in example),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--root", default=ROOT, help=argparse.SUPPRESS)
    return parser


def add_environment(parser):
    """The options that name an environment."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--stack",
        metavar="NAME",
        help="another environment than the default, such as tf2.15 (deeplearning list; %s)" % DEFAULT,
    )
    choice.add_argument("--venv", metavar="DIR", help="your packages in DIR, too (deeplearning venv)")


def gpus(text):
    if text not in ("none", "0"):
        raise argparse.ArgumentTypeError(
            "none is required (or 0), but this is %r; without --gpus a program sees all GPUs of the host" % text
        )
    return 0


def leading(parser, arguments):
    """(own options, the rest): the options of the command come first, and what follows belongs to the script."""
    values = dict((name, action.nargs is None) for action in parser._actions for name in action.option_strings)
    position = 0
    while position < len(arguments) and arguments[position].partition("=")[0] in values:
        name, separator, _ = arguments[position].partition("=")
        position += 2 if values[name] and not separator else 1
    return parser.parse_args(arguments[:position]), arguments[position:]


def chosen(root, stack):
    """The path of the environment that --stack names, else the user's or the host's default."""
    return user_environment.environment_path(root, stack or os.environ.get(DEFAULT))


def tfos_submit():
    """The path of the program beside this one, which only edge nodes have."""
    program = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), "tfos-submit")
    if not os.access(program, os.X_OK):
        raise NotReady("%s is required, but is not on this host. Log in on an edge node." % program)
    return program
