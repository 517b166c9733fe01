# -*- coding: utf-8 -*-
"""How tfos-submit ends, and what it says on the way."""

from __future__ import absolute_import, division, print_function

import sys

# Exit statuses; the help explains them (options.py).
OK, FAILED, USAGE, NOT_READY, NO_EXECUTORS, TOO_LONG, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def write(text, stream=None):
    """Print text, such as that of a script, as UTF-8 in any locale. stream: standard output if it is None."""
    stream = stream or sys.stdout
    (stream.buffer if hasattr(stream, "buffer") else stream).write(
        text if isinstance(text, bytes) else text.encode("utf-8")
    )
    stream.flush()


def say(text):
    """Print a message of this program to standard error."""
    write("tfos-submit: %s\n" % text, sys.stderr)
