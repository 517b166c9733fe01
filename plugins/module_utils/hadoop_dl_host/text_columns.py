# -*- coding: utf-8 -*-
"""Text for a terminal: rows with columns, and output in any locale. Python 2.7 and 3, standard library only."""

from __future__ import absolute_import, division, print_function

import sys


def write(text, stream=None):
    """Print text as UTF-8, also if the locale, such as that of cron, has only ASCII. stream: standard output if it is None."""
    stream = stream or sys.stdout
    getattr(stream, "buffer", stream).write(text if isinstance(text, bytes) else text.encode("utf-8"))
    stream.flush()


def columns(rows):
    """Lines in which the cells of these rows stand below each other."""
    rows = [["%s" % cell for cell in cells] for cells in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
