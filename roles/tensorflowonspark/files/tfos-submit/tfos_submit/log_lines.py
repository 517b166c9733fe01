"""One line of a log, whatever layout its site gave it."""

import json
import re

# Spark's (24/11/24 00:15:28), Python's logging and TensorFlow's (2024-11-24 00:15:28), Spark 4's JSON (2024-11-24T00:15:28Z).
CLOCK = re.compile(r"(?:(?:20)?(\d\d)[-/](\d\d)[-/](\d\d)[ T]|\b)(\d\d:\d\d:\d\d)\b")
LEVEL = re.compile(r"(?<![\w.])(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|SEVERE)(?![\w.])")
HEAD = 120  # characters of a line in which time and level are
# Horovod's launcher, MPI's and Ray's put the process before what it prints, Horovod on Spark the time before it, Spark its progress bars.
RANK = re.compile(
    r"^(?:(?:\w{3} \w{3} +\d+ [\d:]+ \d{4})?\[\d+(?:,\d+)?\]<std(?:out|err)>: ?|\((?:raylet|\w* ?pid=\d+[^)]*)\) ?|(?:\[Stage \d+:[^\]]*\])+)"
)
# YARN's container-executor says this before it says what it could not do.
EXECUTOR = re.compile(r"main : (?:command provided|run as user is|requested yarn user is) \S+$")
DIAGNOSTICS = re.compile(r"^\[\d{4}-[\d-]+ [\d:.]+\]\w")
# Layouts without the time.
BARE = re.compile(r"^(?:\[(?:WARN|ERROR|FATAL) *\] |(?:WARN|ERROR|FATAL) +[\w.$]+(?::\d+)?(?::| -) )")
# What a layout has between the level and the message: brackets of threads and loggers, arrows.
LAYOUT = re.compile(r"^[\]\s:-]*(?:(?:\[[^\]]*\]|>>>|msg=|- )\s*)*")


def normal_lines(lines):
    """Without ranks and the like, and JSON as the text that other layouts print."""
    return [normal for line in lines for normal in of_json(EXECUTOR.sub("", RANK.sub("", line)))]


def of_json(line):
    """Spark 4 with spark.log.structuredLogging.enabled."""
    if not line.startswith('{"ts":'):
        return [line]
    try:
        entry = json.loads(line)
    except ValueError:
        return [line]
    text = "%s %s %s: %s" % tuple(entry.get(key, "") for key in ("ts", "level", "logger", "msg"))
    exception = entry.get("exception") or {}
    if exception:
        text += "\n%s: %s" % (exception.get("class"), exception.get("msg"))
    return text.splitlines()


def clock_of(line):
    """Date and time of a line that begins a message, as they sort; empty for other lines."""
    match = CLOCK.search(line[:60])
    if not match:
        return ""
    date = "-".join(match.groups()[:3]) if match.group(1) else "~"
    return "%s %s" % (date, match.group(4))


def begins_message(line):
    """Whether a line is the first of a message. The times in YARN's diagnostics are of parts of one."""
    clock = CLOCK.search(line[:60])
    return (
        line.startswith('Exception in thread "')
        or bool(clock)
        and (bool(level_and_words(line)[0]) or (clock.start() < 2 and not DIAGNOSTICS.match(line)))
    )


def level_and_words(line):
    """The level of a line that begins a message, and its words; ("", "") for other lines."""
    level = LEVEL.search(line[:HEAD])
    if not level or not (CLOCK.search(line[:HEAD]) or BARE.match(line)):
        return "", ""
    name = {"WARNING": "WARN", "CRITICAL": "FATAL", "SEVERE": "FATAL"}.get(level.group(1), level.group(1))
    return name, LAYOUT.sub("", line[level.end() :])
