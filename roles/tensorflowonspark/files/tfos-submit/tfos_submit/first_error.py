"""The error that came first, out of what `yarn logs` prints: what follows it in other containers is its consequence."""

import collections
import re

from tfos_submit.log_lines import begins_message, clock_of, level_and_words, normal_lines
from tfos_submit.logs import DRIVER, files_of

# grade: the lower, the likelier the reason.
Error = collections.namedtuple("Error", "when container host words block grade")
REASON, CONSEQUENCE, BESIDE, LOST, OVER = range(5)

TRACEBACK = "Traceback (most recent call last):"
EXCEPTION = re.compile(
    r"^(?:Caused by: |Exception in thread \"[^\"]*\" )?[\w.$]+(?:Error|Exception|Interrupt|Failure)\b.*"
)
# YARN's reason for a container that did not run; the rest is what its own log says.
DIAGNOSIS = re.compile(
    r"^(?:(?:.* exitCode: -?\d+)?\s*(?:Failing this attempt\.)?Diagnostics: (?:\[[^\]]*\])?(?!\[|Exception from|Container killed on request)"
    r"|\s*diagnostics: (?:U[\w ]+ exception: )?(?=[\w.$]+(?:Error|Exception)\b))(\S.+)"
)
# It says nothing itself: the reason is the exception that it wraps.
WRAPPER = re.compile(
    r"^(?:Caused by: |Exception in thread \"\S+\" )?[\w.]+\.(?:InvocationTargetException|UndeclaredThrowableException|ExceptionInInitializerError|ExecutionException: Boxed Error)$"
)
TRACKING = re.compile(r" *(?:For more detailed output, check .*)$")  # YARN glues it to its reason
OURS = re.compile(r".*?(tfos-gpus: .*)")
ARGUMENTS = re.compile(r"^\S+\.py: error: .+")
# Native code that ends its process, without a time: glibc, libstdc++, HotSpot, CPython, ld.so and bash print it.
NATIVE = re.compile(
    r"^(?:terminate called|Error: Could not find or load main class|# A fatal error has been detected by the Java|# There is insufficient memory|Fatal Python error|"
    r"\*\*\* (?:Error in|stack smashing|Process received signal)|double free|\w+\(\): invalid|malloc\(\): |corrupted |.*: symbol lookup error: |"
    r".*error while loading shared libraries: |.*\(required by |(?:Segmentation fault|Illegal instruction|Aborted)\b|"
    r"(?:Exception message: )?\S*sh: (?:line \d+: )?\S+: |User application exited with status|Container exited with a non-zero exit code (?!1\b|143)|mpirun(?:\.\w+)? noticed that process rank|"
    r"(?:Caused by: |# )?java\.lang\.OutOfMemoryError)"
)
# TensorFlow's own log: of F the process ends; E is printed by healthy processes as well.
TENSORFLOW = re.compile(r"^(?:\S+ [\d:.]+: ([EF])|([EF])\d{4} [\d:.]+ +\d+) (\S+:\d+\] .*)")
# YARN's kills are warnings of Spark's master.
OVERUSE = re.compile(r"exceeding .*memory limits|beyond .*memory limit")
KILL = re.compile(r"Exit (?:status|code):? (?:is )?(?!0\b)-?\d|\bpreempted\b")
# That an executor was ended, not why; and what is said when a job ends.
LOSS = re.compile(r"Exit (?:status|code):? (?:is )?143(?!.*beyond)")
END = re.compile(
    r"self-exiting|ApplicationAttemptNotFoundException|aborting job|SparkContext was shut ?down|User application exited with(?! status 1(?:29|[3-5]\d))|TaskKilled|"
    r"finished with failed status|exited with +exitCode: 1[0-6]\b"
)
# A process is told to end: what its log says from there on is the end's consequence.
TOLD_TO_END = re.compile(
    r"RECEIVED SIGNAL|[Dd]river .*(?:disassociated|disconnected|commanded)|Driver terminated|Shutdown hook"
)
# Those parts of Spark speak of the other end of a connection, or of what they tidy up.
ASIDE = re.compile(
    r"^(?:\w+\.)*(?:Transport|ChunkFetch|RetryingBlock|OneForOneBlock|NettyRpc|RpcOutbox|Dispatcher|Inbox|ContextCleaner|LiveListenerBus|AsyncEventQueue|"
    r"ShutdownHookManager|MetricsSystem|DFSClient|EventLoggingListener|ScriptBasedMapping|BlockManager)\w*(?::\d+)?\b"
)
# Spark has lost an executor: what the same process calls an error in these seconds after it comes from that.
GONE = re.compile(
    r"(?:Lost executor|executor loss reason) .*(?:slave lost|worker lost|agent lost|process lost|executor decommission|disassociated|heartbeat|lost\* node|preempted|not because of an error)",
    re.IGNORECASE,
)
AFTERMATH = 10
# What an executor says because another one failed: the reason only if there is no other error.
CONSEQUENCES = re.compile(
    GONE.pattern
    + r"|Connection (?:reset|refused|from \S+ closed)|Failed to connect to|Broken pipe|EOFError|EOFException|Horovod has been shut down|Job aborted due to|"
    r"Python worker exited unexpectedly|check for exceptions on other nodes|ExecutorLostFailure|Max number of executor failures|"
    r"non-existent executor|waiting for reservations|Uncaught exception in thread|"
    r"User class threw exception|Exception thrown in awaitResult: *$|InterruptedException|processes exited with non-zero status|cancelled part of cancelled job group|ClosedChannelException|"
    r"YARN application has (?:already e|exited)|stopped SparkContext|stopped while waiting for backend|Container exited with a non-zero|ExecutorDeadException|FetchFailed|Fail to find loss reason|Py4JNetworkError|exited with +exitCode: -?\d+\W*$|"
    r"[Ee]xit(?:ed with +exit)? ?(?:status|[Cc]ode):? (?:1|5[01])\b",
    re.IGNORECASE,
)
# The reason only if no line begins an error: an exception without its head, as a notebook, TensorFlow 1 or a script prints what it caught.
HEADLESS = re.compile(
    r"^\s*(?:Caused by: )?(?:\w+\.)*[A-Z]\w*(?:Error|Exception)(?:\([\w.$]+\)| \(see above for traceback\)| exitCode=\d+)?: "
)
JAVA_EXCEPTION = re.compile(r"\b(?:\w+\.){2,}[\w$]+(?:Error|Exception)\b")
ENDED = re.compile(r"Lost executor|Lost task|Job aborted|Final app status: FAILED")  # not only warned of
# Any other line that tells of a failure, for want of a better one; not what healthy jobs print when they begin.
TROUBLE = re.compile(
    r"^(?!\s+at |\s+File \"|\S+ [\d:.]+: I |.*(?:native-hadoop library|short-circuit|not bind on port|dynamic library|illegal[- ](?:reflective )?access))"
    r".*(?:error|exception|fail|abort|kill|cannot|can't|could ?n[o']t|unable|denied|refused|invalid|illegal|not (?:found|enough|allowed)|no such|must |missing|"
    r"exceed|exit(?:ed)? |time(?:d )?out|lost|waiting for|mismatch|does not|unhealthy)",
    re.IGNORECASE,
)
TROUBLED = 40  # last lines of each log that are read for them
LOST_TASK = re.compile(r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+[^)]*\)(?: \([^)]*\)| on [\w.-]+(?:,? \w+)*)?")
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
    return "%s%s: %s" % (place_of(first, text), " at " + when if when else "", first.words[:500] + beside(first, text))


def place_of(error, text):
    """Where it was. YARN's diagnostics do not name the host of the application's master, but its log may be there."""
    if error.container:
        return "%s on %s" % (error.container, error.host)
    master = "AM Container for" in text and re.search(r"(?m)^Container: \S+_000001 on (.+?)(?:[_:]\d+)?$", text)
    return "the application's master on " + master.group(1) if master else "the driver"


def errors(text, anything=True, known=None):
    """Those that may be the reason, the first one first; consequences only if there is nothing else, or never.

    known: a test of lines, for a job that has ended. With it an error is found in every text that tells of a failure.
    """
    logs = containers(text)
    strong = of_logs(logs, error_at)
    first = best(strong, BESIDE if anything else REASON)
    if not known or first and first[0].grade == REASON:
        return first
    weak = of_logs(logs, headless_at)
    # Spark warns of a reason, or loses an executor, before the consequences.
    before = best(weak, REASON) + [error for error in strong if error.grade == LOST]
    first = sorted(error for error in before if first and "" < error.when <= first[0].when) or first
    ends = [(name, host, lines[-TROUBLED:]) for name, host, lines in logs]
    return (
        first
        or best(weak, BESIDE)
        or best(of_logs(logs, line_if(known)), BESIDE)
        or best(strong + weak, LOST)
        or of_logs(ends, trouble_at)
        or of_logs(ends, line_if(lambda line: level_and_words(line)[0] == "WARN"))[-1:]
        or best(strong + weak, OVER)
    )


def of_logs(logs, begins):
    """The errors of all logs. begins: what a line has to say that begins one."""
    found = [error for container in logs for error in errors_of(container, begins, losses_beside(container, logs))]
    # Spark prints a kill up to three times, only the last time with the executor's host.
    losses = [error.words for error in found if "Lost executor" in error.words]
    return [
        error
        for error in found
        if error.words in losses or not any(LOGGER.sub("", error.words)[:60] in loss for loss in losses)
    ]


def best(some, worst):
    """Those of the lowest grade up to the worst that counts, in the order of their time."""
    grade = min([error.grade for error in some] + [OVER + 1])
    return sorted(
        (error for error in some if error.grade == grade <= worst),
        # Of the same second, the driver's own is the consequence; in a container the lines are in order.
        key=lambda error: (error.when or "~", not error.container or bool(re.search(DRIVER, error.container))),
    )


def trouble_at(lines, number):
    """A sentence that tells of a failure, from its first line on."""
    level, words = level_and_words(lines[number])
    if not TROUBLE.match(lines[number]) or level in ("INFO", "DEBUG", "TRACE"):
        return ""
    if level:
        return joined([words] + lines[number + 1 :])
    while number and continues(lines[number - 1], lines[number]):
        number -= 1
    return joined(lines[number:])


def continues(line, below):
    """Whether a sentence of plain text goes on below."""
    return bool(re.search(r"[\w,]$", line) and re.match(r"(?!at )[a-z]+(?:,? |$)", below))


def line_if(test):
    """What a line has to say that passes a test."""
    return lambda lines, number: joined(lines[number:]) if test(lines[number]) else ""


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
    bodies = collections.OrderedDict()
    for container, host, kind, lines in files_of(text):
        if lines:
            bodies.setdefault((container, host, kind), []).extend(lines)
    return [
        (container, re.sub(r"[_:]\d+$", "", host), normal_lines(lines))
        for (container, host, _), lines in bodies.items()
    ]


def losses_beside(container, logs):
    """When the other logs of a container have lost executors: of a master in cluster mode, Spark's is one and the script's another."""
    others = [lines for name, _, lines in logs if name == container[0] and lines is not container[2]]
    return [clock_of(line) for lines in others for line in lines if GONE.search(line) and clock_of(line)]


def errors_of(container, begins, losses):
    """The errors of one log, in its order. losses: when its process lost executors, as its other logs have it."""
    name, host, lines = container
    when, found, number, told = next((clock for clock in map(clock_of, lines) if clock), ""), [], 0, False
    gone = list(losses)
    while number < len(lines):
        clock = clock_of(lines[number])
        # TensorFlow's clock has no date.
        when = when.split(" ")[0] + clock[1:] if clock[:1] == "~" and when else clock or when
        words = TRACKING.sub("", of_task(begins(lines, number)))
        end = block_end(lines, number) if words else number + 1
        if words:
            grade = grade_of(words, lines[number], told)
            is_late = when and any((second_of(when) - second_of(loss)) % 86400 <= AFTERMATH for loss in gone)
            if is_late and not OVERUSE.search(words):  # YARN may name the reason of the loss after it
                grade = max(grade, CONSEQUENCE)
            found.append(Error(when, name, host, words, [words] + lines[number:end], grade))
        gone += [when] if when and GONE.search(lines[number]) else []
        told = told or TOLD_TO_END.search(lines[number])
        # What stands below an error belongs to it; below YARN's warning of a kill stands the end of the killed one's log.
        number = end if level_and_words(lines[number])[0] in ("ERROR", "FATAL") else number + 1
    return found


def second_of(when):
    """Of its day."""
    hours, minutes, seconds = map(int, when[-8:].split(":"))
    return hours * 3600 + minutes * 60 + seconds


def grade_of(words, line, told):
    """told: whether the process had been told to end."""
    is_consequence = CONSEQUENCES.search(words)
    for grade, pattern in ((OVER, END), (OVER, TOLD_TO_END), (LOST, LOSS)):
        if pattern.search(words) or is_consequence and pattern.search(line):
            return grade
    if told or ASIDE.match(level_and_words(line)[1]):
        return BESIDE
    return CONSEQUENCE if is_consequence else REASON


def task_of(words):
    """Which task on which host the driver speaks of."""
    task = LOST_TASK.search(words)
    return " (%s)" % task.group() if task else ""


def of_task(words):
    """The reason of a task in what the driver says of it, and then which task."""
    reason = re.search(r"most recent failure:\s+Lost task .*?\): +(\S+: .+)", words)
    return reason.group(1) + task_of(words) if reason else words


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
    if level and OVERUSE.search(words) or level in ("WARN", "ERROR", "FATAL") and KILL.search(words):
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
    if diagnosis:
        return joined([diagnosis.group(1)] + lines[number + 1 :])
    return line.strip() if ARGUMENTS.match(line) or not level and OVERUSE.search(line) else ""


def headless_at(lines, number):
    """What a line has to say that begins an error for want of a better one."""
    level, words = level_and_words(lines[number])
    if level == "WARN" or level == "INFO" and ENDED.search(words):
        exception = exception_after(lines[number : block_end(lines, number)])
        own = joined([words] + lines[number + 1 :])
        if TRACEBACK in own:
            return exception + task_of(words)
        if exception and not JAVA_EXCEPTION.search(words):
            return "%s: %s" % (own.rstrip(".:"), exception)
        return own if level == "INFO" or JAVA_EXCEPTION.search(words) else ""
    if level:
        return ""
    return exception_at(lines[number : block_end(lines, number)]) if HEADLESS.match(lines[number]) else ""


def native(lines):
    """A native death with the lines that say which."""
    more = [line for line in lines[1:] if re.match(r"^\s+what\(\):|^#\s+(?:SIG|[CVJj]\s+\[)", line)]
    return " ".join(
        line.strip(" #") for line in [re.sub(r"^Caused by: |^Exception message: ", "", joined(lines))] + more
    )


def joined(lines):
    """A sentence with its reason where that stands on the lines below."""
    words, rest = lines[0].strip(), [line.strip() for line in lines[1:] if line.strip()]
    while (
        rest
        and len(words) < 500
        and (
            re.search(r"(?::|root error\(s\) found\.)$", words) or rest[0].startswith(": ") or continues(words, rest[0])
        )
    ):
        if begins_message(rest[0]) or re.match(r"at |File \"", rest[0]):
            break
        words += " " + re.sub(r"^: ", "", rest.pop(0))
    return words


def exception_at(lines):
    """An exception with its reason: of another process of the node, or of an executor's Python, it is a traceback on the lines below."""
    for index, line in enumerate(lines[:3]):
        if index and not (lines[0].rstrip().endswith(":") or line.startswith((": ", " "))):
            break
        if line.rstrip().endswith(TRACEBACK):
            return exception_after(lines[index:]) + task_of(line)
    words = joined(lines)
    if words.endswith("defined at (most recent call last):"):  # Keras tells the reason below the graph's stack
        stack = next(index for index, line in enumerate(lines) if line.rstrip().endswith(":") and index)
        below = [line for line in after_frames(lines[stack + 1 :]) if not line.startswith("Node: ")]
        words = "%s %s" % (lines[0].strip(), joined(below)) if below[0] else words
    return with_cause(words, lines)


def after_frames(lines):
    """The lines of a traceback from its exception on: it is no deeper than the frames, which Spark and Markdown indent."""
    depth = 0
    for index, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.startswith('File "', indent):
            depth = indent
        elif indent <= depth and re.match(r"\s*\w", line):
            return [line[indent:]] + lines[index + 1 :]
    return [""]


def with_cause(words, lines):
    """With the innermost exception of its stack, if that says more."""
    causes = [
        joined(lines[index:])[len("Caused by: ") :]
        for index, line in enumerate(lines)
        if line.startswith("Caused by: ")
    ]
    causes = [cause for cause in causes if not CONSEQUENCES.search(cause) and not WRAPPER.match(cause)]
    if causes and causes[-1].split(": ", 1)[-1] not in words:
        return "%s (caused by %s)" % (words[:300], causes[-1])
    return words


def exception_after(lines):
    """The exception that the lines of an error are about."""
    starts = [index for index, line in enumerate(lines) if line.rstrip().endswith(TRACEBACK)]
    if starts:
        below = after_frames(lines[starts[0] + 1 :])
        frames = [line.strip() for line in lines[: len(lines) - len(below)] if line.startswith('  File "')]
        return exception_at(below) + (" (%s)" % frames[-1] if frames and below[0].strip().isalnum() else "")
    found = [
        joined(lines[index:]) for index, line in enumerate(lines) if EXCEPTION.match(line) or DIAGNOSIS.match(line)
    ]
    # What it is about may stand below, such as what it waited for.
    found.sort(key=lambda words: 2 * bool(WRAPPER.match(words)) + bool(CONSEQUENCES.search(words)))
    words = DIAGNOSIS.sub(r"\1", re.sub(r"^Caused by: ", "", (found + [""])[0]))
    return with_cause(words, lines) if words else ""
