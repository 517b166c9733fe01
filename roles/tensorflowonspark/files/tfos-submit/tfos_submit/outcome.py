# -*- coding: utf-8 -*-
"""How tfos-submit ends, and what it says on the way."""

from __future__ import absolute_import, division, print_function

import sys

# Exit statuses; the help explains them (options.py).
OK, FAILED, USAGE, NOT_READY, NO_EXECUTORS, TOO_LONG, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


def write(text):
    """Print text, such as that of a script, to standard output as it is."""
    (sys.stdout.buffer if hasattr(sys.stdout, "buffer") else sys.stdout).write(text.encode("utf-8"))
    sys.stdout.flush()


def say(text):
    sys.stderr.write("tfos-submit: %s\n" % text)
    sys.stderr.flush()
