"""The lines of a lock, for the controller and for hosts (lib/hadoop_dl/data/locks.py has the format). Python 2.7 and 3."""

import re

HEADING = re.compile(r"^# component: (\w+)$")
LINE = re.compile(
    r"^(?P<project>[A-Za-z0-9][\w.-]*)==(?P<version>\S+) --hash=sha256:(?P<sha256>[0-9a-f]{64})"
    r"  # (?P<file>[A-Za-z0-9][\w.+-]*) (?P<size>\d+)$"
)


def canonical(name):
    """The name as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lines(text):
    """Number, component, line and match of each heading and artifact; the match is None for a heading, and for a line that names no artifact."""
    component = ""
    for number, line in enumerate(text.splitlines(), 1):
        heading = HEADING.match(line)
        if heading:
            component = heading.group(1)
        if heading or (line.strip() and not line.startswith("#")):
            yield number, component, line, LINE.match(line)
