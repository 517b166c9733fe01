# -*- coding: utf-8 -*-
"""The error that came first, out of what `yarn logs` prints: what follows it in other containers is its consequence."""

from __future__ import absolute_import, division, print_function

import re

from tfos_submit.logs import DRIVER

# Spark's log (24/11/24 00:15:28), Python's logging and TensorFlow's (2024-11-24 00:15:28).
CLOCK = re.compile(r"^(?:20)?(\d\d)[-/](\d\d)[-/](\d\d)[ T](\d\d:\d\d:\d\d)")
ERROR = re.compile(r"^\S+ \S+ (?:ERROR|FATAL) (.*)")
# A Python traceback's last line is the first one after it without an indent.
TRACEBACK = "Traceback (most recent call last):"
EXCEPTION = re.compile(r"^(?:Caused by: )?[\w.$]+(?:Error|Exception|Interrupt|Failure)\b.*")
OURS = re.compile(r".*?(tfos-gpus: .*)")
RANK = re.compile(r"^\[\d+\]<std(?:out|err)>:")  # Horovod puts it before what its processes print
# What an executor says because another one failed, or because the job is ended.
CONSEQUENCES = re.compile(
    r"RECEIVED SIGNAL|self-exiting|[Dd]river .*(?:disassociated|disconnected|commanded)|Driver terminated|Shutdown hook|"
    r"Connection (?:reset|refused)|Broken pipe|EOFError|BlockManager|TaskKilled|aborting job|User application exited|"
    r"Horovod has been shut down"
)


def first_error(text):
    """Container, host, time and words; empty if no container has an error."""
    errors = [error for error in map(error_of, containers(text)) if error]
    if not errors:
        return ""
    # Of the same second, the driver's own is the consequence.
    when, container, host, words = min(errors, key=lambda error: (error[0] or "~", bool(re.search(DRIVER, error[1]))))
    return "%s on %s%s: %s" % (container, host, " at " + when.split(" ")[1] if when else "", words[:500])


def containers(text):
    """(container, host, lines) of each log; a container has a header for every file. Standard output has the driver's tracebacks."""
    name, kind, bodies = None, None, {}
    for line in text.splitlines():
        header = re.match(r"^Container: (\S+) on (\S+)", line)
        start = re.match(r"^LogType: ?(\S+)", line)
        if header:
            name, kind = header.groups(), None
        elif start:
            kind = start.group(1)
        elif name and kind and kind.startswith(("stderr", "stdout")):
            bodies.setdefault((name, kind), []).append(RANK.sub("", line))
    return [(container, re.sub(r"[_:]\d+$", "", host), lines) for ((container, host), _), lines in bodies.items()]


def error_of(container):
    """(time, container, host, words) of the first error that is no consequence; None if there is none."""
    name, host, lines = container
    when = ""
    for number, line in enumerate(lines):
        clock = CLOCK.match(line)
        if clock:
            when = "%s-%s-%s %s" % clock.groups()
        words = error_at(lines, number)
        if words and not CONSEQUENCES.search(words):
            return when, name, host, words
    return None


def error_at(lines, number):
    """What a line that begins an error has to say: a traceback's last line rather than the sentence above it."""
    line = lines[number]
    own_error, error = OURS.match(line), ERROR.match(line)
    if own_error:
        return own_error.group(1)
    if error:
        return exception_after(lines[number + 1 :]) or error.group(1)
    if line.rstrip() == TRACEBACK:
        return exception_after(lines[number:])
    return ""


def exception_after(lines):
    """The exception that the lines below an error are about, up to the next line with a time."""
    end = next((index for index, line in enumerate(lines) if CLOCK.match(line)), len(lines))
    lines = lines[:end]
    starts = [index for index, line in enumerate(lines) if line.rstrip().endswith(TRACEBACK)]
    if starts:
        exception_lines = [line for line in lines[starts[0] + 1 :] if line[:1].strip()]
        return exception_lines[0].strip() if exception_lines else ""
    exceptions = [line.strip() for line in lines if EXCEPTION.match(line)]
    if not exceptions:
        return ""
    return exceptions[-1 if exceptions[0].endswith(" awaitResult:") else 0]  # what it waited for is below
