"""Text for a terminal: rows with columns, and output in any locale. Python 2.7 and 3, standard library only."""

from __future__ import absolute_import, division, print_function, unicode_literals

import re
import sys

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")  # novermin


def write(text, stream=None):
    """Print text as UTF-8, also if the locale, such as that of cron, has only ASCII. stream: standard output if it is None."""
    stream = stream or sys.stdout
    getattr(stream, "buffer", stream).write(text if isinstance(text, bytes) else text.encode("utf-8"))
    stream.flush()


def printable(text):
    """The text without what moves a terminal's cursor, sets its title, or turns its direction: names in YARN are anybody's."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else "%s" % text
    return CONTROL.sub("\ufffd", text)


def columns(rows):
    """Lines in which the cells of these rows stand below each other."""
    rows = [[printable(cell) for cell in cells] for cells in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip() for cells in rows]
