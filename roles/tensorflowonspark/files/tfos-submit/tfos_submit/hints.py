"""Sentences for the known ways in which jobs fail, by the rows of hints.json."""

import collections
import json
import pkgutil
import re

from tfos_submit.first_error import REASON, containers, error_at, errors, first_error, of_logs
from tfos_submit.outcome import say

QUIET = re.compile(r"^\s+at |^(?!.*tfos-gpus: ).{0,60}\b(?:INFO|DEBUG|TRACE)\b")  # lines that no row is about
LAST = 20000  # lines of a log that are read for what is no error

# weak: it says that something ended, not why; another row's hint is better.
# loss: it names that of an executor or its host (yes), or only says that another process ended (maybe).
Row = collections.namedtuple("Row", "component seen source also pattern weak loss cause step")


def table():
    """The rows of hints.json in its order: of a line, the first that matches is its hint."""
    components = json.loads(
        pkgutil.get_data("tfos_submit", "hints.json").decode("utf-8"), object_pairs_hook=collections.OrderedDict
    )
    return [
        Row(
            name,
            row["seen"],
            row["source"],
            row.get("also", []),
            re.compile(row["pattern"]),
            row.get("weak", False),
            row.get("loss"),
            row["cause"],
            row["step"],
        )
        for name, rows in components.items()
        for row in rows
    ]


def hints(text):
    """The sentence about the first error that a row explains; a weak row's only if there is no other. One cause, one sentence."""
    rows, weak = table(), []
    lines = [line for error in errors(text, known=known(rows)) for line in error.block]
    for line in lines + text.splitlines()[-LAST:]:
        row, match = explained(rows, line)
        if match and not row.weak:
            return [sentence(row, match)]
        weak += [sentence(row, match)] if match else []
    return weak[:1]


def known(rows):
    """The test whether a row is about a line."""
    return lambda line: explained(rows, line)[0]


def explained(rows, line):
    """The row about a line and its match."""
    for row in () if QUIET.search(line) else rows:
        match = row.pattern.search(line)
        if match:
            return row, match
    return None, None


def sentence(row, match):
    return " ".join(part.format(*match.groups()) for part in (row.cause, row.step) if part)


def lost(log, output, logs, lost_hosts):
    """The words about the executor or host whose loss ended a job; empty if an error of its own did. lost_hosts: what YARN says of them.

    The first error decides. If it only says that another process ended, any line about a loss counts.
    """
    rows = table()
    text = everything(log, output, logs)
    first = next(iter(errors(text, known=known(rows))), None)
    row = explained(rows, first.words)[0] if first else None
    is_own = first and (not row.loss if row else first.grade == REASON)
    candidates = [first] if is_own else of_logs(containers(text), error_at) + ([first] if first else [])
    patterns = [row.pattern for row in rows if row.loss == "yes"]
    losses = [error.words for error in candidates if any(pattern.search(error.words) for pattern in patterns)]
    return losses[0] if losses else "" if is_own else lost_hosts()


def everything(log, output, logs):
    """What the driver printed here, and the logs as `yarn logs` prints them."""
    return "%s\nLogType:stdout\n%s\n%s" % (log, output, logs)


def say_causes(log, output, logs, ended=True):
    """Print the hint and the first error. log and output: what the driver printed here. logs: as `yarn logs` prints them."""
    text = everything(log, output, logs)
    for line in hints(text):
        say("hint: " + line)
    first = first_error(text, known(table()) if ended else None)
    if first:
        say("the first error: " + first)
