"""The exit statuses of tfos-submit, and its messages."""

import sys

from ansible.module_utils.hadoop_dl_host.text_columns import write

# Exit statuses; the help explains them (options.py).
OK, FAILED, USAGE, NOT_READY, NO_EXECUTORS, TOO_LONG, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def say(text):
    """Print a message of this program to standard error."""
    tell("tfos-submit: %s\n" % text)


def tell(text, stream=None):
    """On standard error, if anybody still reads it: the job is ended also after the terminal."""
    try:
        write(text, stream or sys.stderr)
    except (IOError, OSError):
        return
