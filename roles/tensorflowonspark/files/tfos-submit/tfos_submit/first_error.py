# -*- coding: utf-8 -*-
"""The error that came first, out of what `yarn logs` prints: what follows it in other containers is its consequence."""

from __future__ import absolute_import, division, print_function

import collections
import re

from tfos_submit.log_lines import begins_message, clock_of, level_and_words, normal_lines
from tfos_submit.logs import DRIVER, FRAME

Error = collections.namedtuple("Error", "when container host words block")

TRACEBACK = "Traceback (most recent call last):"
EXCEPTION = re.compile(
    r"^(?:Caused by: |Exception in thread \"[^\"]*\" )?[\w.$]+(?:Error|Exception|Interrupt|Failure)\b.*"
)
# YARN's reason for a container that did not run; the rest is what its own log says.
DIAGNOSIS = re.compile(
    r"^(?:.* exitCode: -?\d+)?\s*(?:Failing this attempt\.)?Diagnostics: (?:\[[^\]]*\])?"
    r"(?!\[|Exception from|Container killed on request)(\S.+)"
)
# It says nothing itself: the reason is the exception that it wraps.
WRAPPER = re.compile(
    r"^(?:Caused by: )?[\w.]+\.(?:InvocationTargetException|UndeclaredThrowableException|ExecutionException: Boxed Error)$"
)
OURS = re.compile(r".*?(tfos-gpus: .*)")
ARGUMENTS = re.compile(r"^\S+\.py: error: .+")
# Native code that ends its process, without a time: glibc, libstdc++, HotSpot, CPython, ld.so and bash print it.
NATIVE = re.compile(
    r"^(?:terminate called|Error: Could not find or load main class|# A fatal error has been detected by the Java|# There is insufficient memory|Fatal Python error|"
    r"\*\*\* (?:Error in|stack smashing|Process received signal)|double free|\w+\(\): invalid|malloc\(\): |corrupted |.*: symbol lookup error: |"
    r".*error while loading shared libraries: |.*\(required by |(?:\S+: line \d+: .*)?(?:Segmentation fault|Illegal instruction|Aborted)\b|"
    r"User application exited with status|mpirun(?:\.\w+)? noticed that process rank|"
    r"(?:Caused by: |# )?java\.lang\.OutOfMemoryError)"
)
# TensorFlow's own log: of F the process ends; E is printed by healthy processes as well.
TENSORFLOW = re.compile(r"^(?:\S+ [\d:.]+: ([EF])|([EF])\d{4} [\d:.]+ +\d+) (\S+:\d+\] .*)")
# YARN's kills are warnings of Spark's master.
KILL = re.compile(
    r"Exit (?:status|code):? (?:is )?(?!0\b)-?\d|exceeding .*memory limits|beyond .*memory limit|\bpreempted\b"
)
# Never a reason: what is said when the job is ended, or of an error that is printed elsewhere.
EMPTY = re.compile(
    r"RECEIVED SIGNAL|self-exiting|ApplicationAttemptNotFoundException|[Dd]river .*(?:disassociated|disconnected|commanded)|Driver terminated|Shutdown hook|"
    r"aborting job|User application exited with(?! status 1(?:29|[3-5]\d))|TaskKilled|requests? outstanding when connection|"
    r"Exit (?:status|code):? (?:is )?143(?!.*beyond)|finished with failed status|exited with +exitCode: 1[0-6]\b"
)
# What an executor says because another one failed: the reason only if there is no other error.
CONSEQUENCES = re.compile(
    r"Connection (?:reset|refused)|Failed to connect to|Broken pipe|EOFError|EOFException|BlockManager|Horovod has been shut down|Job aborted due to|"
    r"Python worker exited unexpectedly|check for exceptions on other nodes|ExecutorLostFailure|Max number of executor failures|"
    r"Lost executor .*(?:[Ss]lave lost|worker lost|disassociated|heartbeat)|waiting for reservations|Uncaught exception in thread|"
    r"User class threw exception|Exception thrown in awaitResult: *$|InterruptedException|processes exited with non-zero status|"
    r"YARN application has already ended|has been quiet for|ExecutorDeadException|FetchFailed|Fail to find loss reason|Py4JNetworkError|exited with +exitCode: -?\d+\W*$|"
    r"[Ee]xit(?:ed with +exit)? ?(?:status|[Cc]ode):? (?:1|5[01])\b"
)
# The reason only if no line begins an error: an exception without its head, as a notebook, TensorFlow 1 or a script prints what it caught,
# or after libhdfs's "NAME error:"; one that Spark or Hadoop only warns of; an executor that was ended from outside.
HEADLESS = re.compile(
    r"^\s*(?:Caused by: )?(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?:\([\w.$]+\)| \(see above for traceback\)| exitCode=\d+)?: |^\w+(?:\(.*\):)? (?:.* )?error:$|"
    r"^Horovod has been shut down|.*\bError reported to Coordinator: |"
    r".*\bNCCL WARN |"
    r".*(?:PMIX ERROR|ORTE_ERROR_LOG): |MPI_ABORT was invoked|There are not enough slots|ORTE was unable|Host key verification failed"
)
JAVA_EXCEPTION = re.compile(r"\b(?:\w+\.){2,}[\w$]+(?:Error|Exception)\b")
WARNED = re.compile(
    r" [WE] tensorflow/\S+\] (?:OP_REQUIRES failed at|Aborting \w+ with)"
)  # of the exception that follows
ENDED = re.compile(r"Lost executor|Lost task|Job aborted|Final app status: FAILED")  # not only warned of
LOGGER = re.compile(r"^[\w.$]+: (?:Requesting driver to remove executor \d+ for reason )?")
# They say that a process died, not why: TensorFlow's last error line stands beside them.
SYMPTOMS = re.compile(
    r"worker exited|Exit (?:status|code)|OS Error|SIG[A-Z]+ \(|EOFException|Check failed|Unknown error 255"
)


def first_error(text, known=None):
    """Container, host, time and words; empty if no container has an error. known: for a job that has ended, see errors()."""
    first = next(iter(errors(text, known=known)), None)
    if not first:
        return ""
    when = first.when.split(" ")[-1]
    place = "%s on %s" % (first.container, first.host) if first.container else "the driver"
    return "%s%s: %s" % (place, " at " + when if when else "", first.words[:500] + beside(first, text))


def errors(text, anything=True, known=None):
    """Those that may be the reason, the first one first; consequences only if there is nothing else, or never.

    known: a test of lines. With it also what is headless, and else what passes it, if there is nothing else.
    """
    logs, everything = containers(text), []

    def if_it(test):
        return lambda lines, number: lines[number].strip() if test(lines[number]) else ""

    for begins in (error_at, headless_at, if_it(known), if_it(WARNED.search)):
        everything = [error for container in logs for error in errors_of(container, begins)]
        if everything or not known:
            break
    # Spark prints a kill up to three times, only the last time with the executor's host.
    losses = [error.words for error in everything if "Lost executor" in error.words]
    everything = [
        error
        for error in everything
        if error.words in losses or not any(LOGGER.sub("", error.words)[:60] in loss for loss in losses)
    ]
    reasons = [error for error in everything if not CONSEQUENCES.search(error.words)]
    # Of the same second, the driver's own is the consequence; in a container the lines are in order.
    return sorted(
        reasons or everything if anything else reasons,
        key=lambda error: (error.when or "~", not error.container or bool(re.search(DRIVER, error.container))),
    )


def beside(first, text):
    """TensorFlow's last error line of the process that died without saying why."""
    if not SYMPTOMS.search(first.words):
        return ""
    names = re.findall(r"container_\w+", first.words) or [first.container]
    lines = [
        match.group(3)
        for name, _, lines in containers(text)
        if name in names
        for match in map(TENSORFLOW.match, lines)
        if match and "E" in match.groups()[:2]
    ]
    return " (TensorFlow's last error line there: %s)" % lines[-1][:300] if lines else ""


def containers(text):
    """(container, host, lines) of each log; a container has a header for every file. Lines before the first header are the driver's."""
    name, kind, bodies = ("", ""), "stderr", collections.OrderedDict()
    for line in text.splitlines():
        header = re.match(r"^Container: (\S+) on (\S+)", line)
        start = re.match(r"^LogType: ?(\S+)", line)
        if header:
            name, kind = header.groups(), None
        elif start:
            kind = start.group(1)
        elif kind and kind.startswith(("stderr", "stdout")) and not FRAME.match(line):
            bodies.setdefault((name, kind), []).append(line)
    return [
        (container, re.sub(r"[_:]\d+$", "", host), normal_lines(lines))
        for ((container, host), _), lines in bodies.items()
    ]


def errors_of(container, begins):
    """The errors of one log, in its order. begins: what a line has to say that begins one."""
    name, host, lines = container
    when, found, number = "", [], 0
    while number < len(lines):
        when = clock_of(lines[number]) or when
        words = begins(lines, number)
        end = block_end(lines, number) if words else number + 1
        empty = EMPTY.search(words) or (EMPTY.search(lines[number]) and CONSEQUENCES.search(words))
        if words and (not empty or begins is headless_at and "Lost executor" in words):
            found.append(Error(when, name, host, words, [words] + lines[number:end]))
        # What stands below an error belongs to it; below YARN's warning of a kill stands the end of the killed one's log.
        number = end if level_and_words(lines[number])[0] in ("ERROR", "FATAL") else number + 1
    return found


def block_end(lines, number):
    """The first line below that begins another message, or is far below."""
    last = min(len(lines), number + 400)
    return next((index for index in range(number + 1, last) if begins_message(lines[index])), last)


def error_at(lines, number):
    """What a line that begins an error has to say: a traceback's last line rather than the sentence above it."""
    line = lines[number]
    own_error, tensorflow = OURS.match(line), TENSORFLOW.match(line)
    level, words = level_and_words(line)
    if own_error:
        return own_error.group(1)
    if tensorflow:
        return tensorflow.group(3) if "F" in tensorflow.groups()[:2] else ""
    if level in ("WARN", "ERROR", "FATAL") and KILL.search(words):
        return words
    if level in ("ERROR", "FATAL"):
        exception = exception_after(lines[number + 1 : block_end(lines, number)])
        own = joined([words] + lines[number + 1 :])
        if re.match(r"[^\s(]*:", exception):
            return exception
        return "%s: %s" % (own.rstrip(".:"), exception) if exception else own
    if NATIVE.match(line):
        return native(lines[number : number + 12])
    if line.rstrip() == TRACEBACK or line.startswith('Exception in thread "'):
        return exception_after(lines[number : block_end(lines, number)])
    diagnosis = DIAGNOSIS.match(line)
    return diagnosis.group(1) if diagnosis else line.strip() if ARGUMENTS.match(line) else ""


def headless_at(lines, number):
    """What a line has to say that begins an error for want of a better one."""
    level, words = level_and_words(lines[number])
    if level == "WARN" or level == "INFO" and ENDED.search(words):
        exception = exception_after(lines[number : block_end(lines, number)])
        if words.rstrip().endswith(TRACEBACK):
            return exception
        own = joined([words] + lines[number + 1 :])
        return own if JAVA_EXCEPTION.search(words) else exception and "%s: %s" % (own.rstrip(".:"), exception)
    if level:
        return words if "Lost executor" in words else ""
    return exception_at(lines[number:]) if HEADLESS.match(lines[number]) else ""


def native(lines):
    """A native death with the lines that say which."""
    more = [line for line in lines[1:] if re.match(r"^\s+what\(\):|^#\s+(?:SIG|[CVJj]\s+\[)", line)]
    return " ".join(line.strip(" #") for line in [re.sub(r"^Caused by: ", "", lines[0])] + more)


def joined(lines):
    """A sentence with its reason where that stands on the lines below."""
    words, rest = lines[0].strip(), [line.strip() for line in lines[1:] if line.strip()]
    while (
        rest and len(words) < 500 and (re.search(r"(?::|root error\(s\) found\.)$", words) or rest[0].startswith(": "))
    ):
        if begins_message(rest[0]) or re.match(r"at |File \"", rest[0]):
            break
        words += " " + re.sub(r"^: ", "", rest.pop(0))
    return words


def exception_at(lines):
    """An exception with its reason: of another process of the node, or of an executor's Python, it is a traceback on the lines below."""
    has_traceback = lines[1:2] and lines[1].rstrip().endswith(TRACEBACK)
    if not has_traceback or not (lines[0].rstrip().endswith(":") or lines[1].startswith(": ")):
        return joined(lines)
    task = re.search(r"Lost task .*?executor \d+\)", lines[1])
    return exception_after(lines[1:]) + (" (%s)" % task.group() if task else "")


def exception_after(lines):
    """The exception that the lines of an error are about."""
    starts = [index for index, line in enumerate(lines) if line.rstrip().endswith(TRACEBACK)]
    if starts:
        ends = [index for index in range(starts[0] + 1, len(lines)) if lines[index][:1].strip()]
        below = lines[ends[0] :] if ends else [""]
        frames = [line.strip() for line in lines[: len(lines) - len(below)] if line.startswith('  File "')]
        return exception_at(below) + (" (%s)" % frames[-1] if frames and below[0].strip().isalnum() else "")
    found = [
        joined(lines[index:]) for index, line in enumerate(lines) if EXCEPTION.match(line) or DIAGNOSIS.match(line)
    ]
    # What it is about may stand below, such as what it waited for.
    reasons = [words for words in found if not CONSEQUENCES.search(words)]
    reasons.sort(key=lambda words: bool(WRAPPER.match(words)))
    return DIAGNOSIS.sub(r"\1", re.sub(r"^Caused by: ", "", (reasons + found + [""])[0]))
