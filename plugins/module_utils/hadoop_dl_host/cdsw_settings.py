# -*- coding: utf-8 -*-
"""Single lines of cdsw.conf, and what `cdsw status` prints. Python 2.7 and 3, standard library only.

The format of both: compat/cdsw.yml. Only the keys that are asked for are read: the file may hold secrets.
"""

from __future__ import absolute_import, division, print_function

import re

READY = "Cloudera Data Science Workbench is ready!"
LINE = r"^\s*(?:export\s+)?%s=(.*)$"


def line_of(text, key):
    """The line that sets a key, which is the last one; None if none does."""
    lines = [line for line in text.splitlines() if re.match(LINE % re.escape(key), line)]
    return lines[-1] if lines else None


def with_line(text, key, line):
    """The text with this line for the key, in the place of the last one that sets it; None removes every line of the key."""
    lines = text.splitlines()
    places = [place for place, row in enumerate(lines) if re.match(LINE % re.escape(key), row)]
    if line is None:
        lines = [row for place, row in enumerate(lines) if place not in places]
    elif places:
        lines[places[-1]] = line
    else:
        lines.append(line)
    return "\n".join(lines) + "\n"


def shown(line):
    """A line for a diff: without user and password of an address; nothing for a line that is missing."""
    return "" if line is None else re.sub(r"//\S*@", "//***@", line) + "\n"


def assignment(key, value):
    return '%s="%s"' % (key, value)


def holds(text, key, value):
    """Whether the key has this value, with or without quotes."""
    match = re.match(LINE % re.escape(key), line_of(text, key) or "")
    return bool(match) and re.sub(r"\s+#.*$", "", match.group(1)).strip().strip("\"'") == value


def nodes(output):
    """GPUs of each node in the table that `cdsw status` prints, None in a table without that column; None without a table.

    A table of pods follows it, which has NAME and STATUS as well. A node whose STATUS is not True does not answer.
    """
    header, gpus = [], None
    for line in output.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "NAME" in cells and "STATUS" in cells:
            header = [] if "READY" in cells else cells
            gpus = {} if header and gpus is None else gpus
        elif header and len(cells) == len(header):
            row = dict(zip(header, cells))
            if row["STATUS"] not in ("False", "Unknown", "NotReady"):
                gpus[row["NAME"]] = int(row["GPU"]) if row.get("GPU", "").isdigit() else None
    return gpus


def ready(status, output):
    return status == 0 and READY in output


def reason(status, output):
    """What keeps CDSW from being ready, from its own words."""
    lines = [
        line.strip() for line in output.splitlines() if line.strip() and not line.startswith("Sending detailed logs")
    ]
    problem_lines = [line for line in lines if re.search(r"not running|Failed|not ready|^(ERROR|FAILED|WARNING)", line)]
    cause = problem_lines[0] if problem_lines else (lines or ["nothing"])[-1]
    return "cdsw status ended with status %s and printed: %s" % ("none" if status is None else status, cause)
