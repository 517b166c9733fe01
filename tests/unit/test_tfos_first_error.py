"""Which of a failed job's sentences is the first error, by where it stands and what follows it. Texts are of public reports, named beside them."""

from pathlib import Path

import pytest
from resource_manager import collected
from tfos_submit import hints
from tfos_submit.first_error import first_error

KNOWN = hints.known(hints.table())
MASTER, EXECUTOR = "container_1_0001_01_000001", "container_1_0001_01_000002"


def of_group(name: str) -> pytest.MarkDecorator:
    """The cases of a group of first_errors.txt: what a log has, and the words that must be in its first error (-: there is none)."""
    text = (Path(__file__).parent / "first_errors.txt").read_text(encoding="utf-8")
    groups = dict(group.split("\n", 1) for group in text.split("##### ")[1:])
    cases = [case.rstrip("\n").split("\n", 2) for case in ("\n" + groups[name]).split("\n=== ")[1:]]
    return pytest.mark.parametrize(
        ("text", "words"), [pytest.param(lines, words, id=title) for title, words, lines in cases]
    )


def log(*lines: str, kind: str = "stderr", container: str = EXECUTOR) -> str:
    return collected((container, "data1", kind, "\n".join(lines) + "\n"))


@of_group("of one log")
def test_the_reason_of_one_log(text: str, words: str) -> None:
    first = first_error(text, KNOWN)
    assert words in first if words != "-" else not first


def test_the_clock_of_tensorflow_has_no_date() -> None:
    """Azure HDInsight, CaffeOnSpark: what a process says before it dies is before YARN's report of the death."""
    kill = f"17/02/01 07:12:05 WARN YarnAllocator: Container marked as failed: {EXECUTOR} on host: data2. Exit status: 134."
    own = "17/02/01 07:10:48 INFO LMDB: Batch size:100\nF0201 07:10:48.309725 11624 common.cpp:79] Cannot use GPU in CPU-only Caffe"
    text = collected((MASTER, "data1", "stderr", kill), (EXECUTOR, "data2", "stderr", own))
    assert first_error(text).startswith(f"{EXECUTOR} on data2 at 07:10:48: common.cpp:79] Cannot use GPU")


def test_what_an_executor_says_after_it_was_told_to_end_is_no_reason() -> None:
    """A blog on Spark Streaming with Kerberos: the driver warned ten minutes before."""
    executor = (
        "16/11/02 03:51:33 ERROR executor.CoarseGrainedExecutorBackend: RECEIVED SIGNAL 15: SIGTERM\n"
        "16/11/02 03:51:34 ERROR x.Anything: it could not go on"
    )
    driver = (
        "16/11/02 03:41:17 WARN Client: Exception encountered while connecting to the server : org.apache.hadoop.ipc.RemoteException"
        "(org.apache.hadoop.security.token.SecretManager$InvalidToken): Invalid AMRMToken from appattempt_1"
    )
    text = collected((EXECUTOR, "data2", "stderr", executor), (MASTER, "data1", "stderr", driver))
    assert "Invalid AMRMToken" in first_error(text, KNOWN)
    assert first_error(text).endswith("it could not go on"), "of a job that runs, warnings are none"


EXCEPTION = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
LAYOUTS = (
    "26/11/24 00:48:58 ERROR Executor: {}",
    "2026-11-24 00:48:58 ERROR Executor:91 - {}",
    "2026-11-24 00:48:58,297 ERROR [Executor task launch worker-0] org.apache.spark.executor.Executor: {}",  # CDH
    "[2026-11-24 00:48:58.344] [ERROR] [worker 2] [org.apache.spark.executor.Executor] >>> msg={}",  # yahoo/TensorFlowOnSpark#391
    '{{"ts":"2026-11-24T00:48:58.344Z","level":"ERROR","msg":"{}","logger":"Executor"}}',  # Spark 4
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_error_is_one_in_every_layout(layout: str) -> None:
    words = first_error(log("26/11/24 00:48:50 INFO Executor: state ERROR", layout.format("it broke")))
    assert words.startswith(f"{EXECUTOR} on data1 at 00:48:58: ")
    assert words.endswith("it broke")


@pytest.mark.parametrize(
    "prefix",
    [
        *("[1]<stderr>:", "[1,0]<stderr>:", "[1,0]<stderr>: "),
        *("Thu Feb 25 21:29:09 2021[3]<stderr>:", "(raylet) "),  # horovod/horovod#2694, intel/BigDL#5118
    ],
)
def test_the_prefixes_of_horovod_and_mpi_are_no_words(prefix: str) -> None:
    lines = ("Traceback (most recent call last):", '  File "a.py", line 1', "ValueError: it broke")
    assert first_error(log(*(prefix + line for line in lines))).endswith(": ValueError: it broke")


@of_group("before the worker that exited")
def test_a_native_death_is_before_the_worker_that_exited(text: str, words: str) -> None:
    assert words in first_error(log(text, "26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", EXCEPTION))


def test_an_error_line_of_tensorflow_stands_beside_the_death_and_is_no_error_itself() -> None:
    line = "2026-11-24 00:48:57.1: E tensorflow/stream_executor/cuda/cuda_dnn.cc:385] could not create cudnn handle"
    assert first_error(log(line)) == ""
    text = first_error(log(line, "26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", EXCEPTION))
    assert text.index("exited unexpectedly") < text.index("could not create cudnn handle")
    kill = (
        f"26/11/24 00:48:58 WARN YarnAllocator: Container from a bad node: {EXECUTOR} on host: data1. Exit status: 134."
    )
    text = log(line) + log(kill, container=MASTER)
    assert "could not create cudnn handle" in first_error(text)


@pytest.mark.parametrize(
    ("kill", "is_reason"),
    [
        (
            "Container from a bad node: c on host: data2. Exit status: 137. Diagnostics: Container killed on request.",
            True,
        ),
        ("Container killed by YARN for exceeding memory limits. 8.3 GB of 8 GB physical memory used.", True),
        (
            "Container marked as failed: c on host: data2. Exit status: 143. Diagnostics: Container killed on request.",
            False,
        ),
        ("Unable to load native-hadoop library for your platform", False),
        ("Failed to fetch remote block.\nCaused by: java.lang.OutOfMemoryError: Java heap space", True),
    ],
)
def test_a_kill_that_yarn_warns_of_is_an_error(kill: str, is_reason: bool) -> None:
    assert (kill[-40:] in first_error(log(f"26/11/24 00:48:58 WARN YarnAllocator: {kill}"))) is is_reason


def test_the_host_of_a_killed_executor_is_named() -> None:
    """Spark 2.4.8 on Hadoop 3.1.1: YARN's own sentence has no host, and is in the log of the application's master."""
    kill = (
        "Container killed by YARN for exceeding memory limits.  3.3 GB of 3 GB physical memory used. Consider boosting."
    )
    lines = (
        f"26/11/29 12:19:23 WARN yarn.YarnAllocator: {kill}",
        f"26/11/29 12:19:23 WARN cluster.YarnSchedulerEndpoint: Requesting driver to remove executor 2 for reason {kill}",
        f"26/11/29 12:19:23 ERROR cluster.YarnClusterScheduler: Lost executor 2 on data2: {kill}",
    )
    assert f"Lost executor 2 on data2: {kill}" in first_error(log(*lines, container=MASTER))


def test_the_only_error_is_one_although_it_mostly_follows_from_others() -> None:
    refused = (
        "Traceback (most recent call last):",
        "  File x",
        "ConnectionRefusedError: [Errno 111] Connection refused",
    )
    text = log("26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", *refused)
    assert first_error(text).endswith("Connection refused")
    other = log("26/11/24 00:48:59 ERROR Executor: it broke", container="container_1_0001_01_000003")
    assert first_error(text + other).endswith("it broke")


@pytest.mark.parametrize(
    "words",
    [
        "Client: Application diagnostics message: Application a failed 1 times due to AM Container for b exited with  exitCode: 13",
        "ApplicationMaster: User application exited with status 2",
        "Client: Exception\norg.apache.spark.SparkException: Application application_1_0011 finished with failed status",
    ],
)
def test_that_a_job_failed_is_no_reason(words: str) -> None:
    assert first_error(log(f"26/11/29 04:32:20 ERROR {words}")) == ""


def test_an_interrupted_wait_follows_from_another_error() -> None:
    """Spark 3.5.8, when the driver's heap is full."""
    wait = log("26/11/29 04:35:36 ERROR X: Exception in task-result-getter-1", "java.lang.InterruptedException")
    other = log("26/11/29 04:35:37 ERROR X: it broke")
    assert first_error(wait + other).endswith("it broke")


def test_a_connection_that_the_dead_executor_left_is_never_the_first_error() -> None:
    """Spark 3.5.8, after a segmentation fault in an executor's Python."""
    left = "26/11/29 04:30:32 ERROR TransportResponseHandler: Still have 2 requests outstanding when connection from /172.30.6.232:35236 is closed\n"
    crash = log("26/11/29 04:30:33 ERROR Executor: Exception in task 0.0 in stage 0.0 (TID 0)", EXCEPTION)
    assert first_error(left + crash).endswith(EXCEPTION)


def test_the_reason_on_the_next_line_belongs_to_the_error() -> None:
    lines = ("Traceback (most recent call last):", '  File "a.py"', "py4j.protocol.Py4JJavaError: An error occurred.")
    text = log(*lines, ": java.net.ConnectException: Call From edge1 to localhost:8020 failed", "\tat x", kind="stdout")
    assert first_error(text).endswith(
        "An error occurred. java.net.ConnectException: Call From edge1 to localhost:8020 failed"
    )


@of_group("where others see it")
def test_the_reason_is_where_others_see_it(text: str, words: str) -> None:
    assert words in first_error(log(text))


@of_group("only if no line begins an error")
def test_what_no_line_begins_as_an_error_is_the_reason_if_nothing_else_is(text: str, words: str) -> None:
    assert words in first_error(log(text), KNOWN)
    other = log("26/11/29 04:35:37 ERROR X: it broke", container="container_1_0001_01_000003")
    assert first_error(log(text) + other, KNOWN).endswith("it broke")
    assert first_error(log(text)) == "", "a job that runs may be well"


@pytest.mark.parametrize("signal", ["9 (Killed)", "4 (Illegal instruction: 4)"])
def test_a_rank_that_a_signal_ended_is_an_error(signal: str) -> None:
    """horovod/horovod#469 and #298: the lines above it name no reason."""
    words = f"mpirun noticed that process rank 1 with PID 0 on node data1 exited on signal {signal}."
    text = log(
        "Primary job  terminated normally, but 1 process returned", "a non-zero exit code.", words, kind="stdout"
    )
    assert first_error(text).endswith(words)


@pytest.mark.parametrize("head", ["Traceback (most recent call last):\n  File x\n", ""], ids=["a script", "a notebook"])
def test_the_reason_of_a_task_is_below_what_the_driver_says_of_it(head: str) -> None:
    """Spark 2.4.8 in cluster mode: YARN collects the driver's log before those of the executors."""
    text = head + (
        "py4j.protocol.Py4JJavaError: An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task "
        "0.0 in stage 0.0 (TID 0, data2, executor 2): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
        "  File \"/tmp/user.py\", line 5, in work\nKeyError: 'test'\n\n\tat org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:456)"
    )
    words = first_error(log(text, kind="stdout"), KNOWN)
    assert words.endswith("KeyError: 'test' (Lost task 0.0 in stage 0.0 (TID 0, data2, executor 2))")


def test_the_exception_that_a_wrapper_has_is_the_reason() -> None:
    """citiususc/SparkBWA#20"""
    lines = (
        "16/07/25 15:45:25 ERROR scheduler.LiveListenerBus: Listener EventLoggingListener threw an exception",
        "java.lang.reflect.InvocationTargetException",
        "    at sun.reflect.NativeMethodAccessorImpl.invoke0(Native Method)",
        "Caused by: java.io.IOException: Filesystem closed",
    )
    assert first_error(log(*lines)).endswith("java.io.IOException: Filesystem closed")


def test_what_spark_printed_on_this_host_is_the_drivers() -> None:
    said = "26/11/24 00:48:58 INFO SparkContext: up\nTraceback (most recent call last):\n  File x\nKeyError: 'mine'\n"
    assert (
        first_error(said + log("26/11/24 00:48:59 ERROR X: RECEIVED SIGNAL TERM"))
        == "the driver at 00:48:58: KeyError: 'mine'"
    )
