"""tfos-submit's table of known errors, and the reader of containers' logs. Every text is a whole sentence as printed; its source is beside it."""

import pytest
from resource_manager import collected
from tfos_submit import hints
from tfos_submit.first_error import first_error

ROWS = hints.table()
SENTENCES = [(row, seen) for row in ROWS for seen in [row.seen, *(also[0] for also in row.also)]]
NAME = "container_1_0001_01_000002"


def log(*lines: str, kind: str = "stderr", container: str = NAME) -> str:
    return collected((container, "data1", kind, "\n".join(lines) + "\n"))


@pytest.mark.parametrize(("row", "seen"), SENTENCES, ids=[seen[:60] for _, seen in SENTENCES])
def test_a_sentence_gets_the_hint_of_its_row_alone(row: hints.Row, seen: str) -> None:
    expected = [hints.sentence(row, row.pattern.search(seen))]
    assert hints.hints(seen) == expected
    assert "{" not in expected[0]
    assert hints.hints(log("26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", seen)) == expected


@pytest.mark.parametrize("row", ROWS, ids=[row.seen[:60] for row in ROWS])
def test_a_row_is_complete(row: hints.Row) -> None:
    assert row.source
    assert row.cause.rstrip(":").endswith((".", "}")) or row.cause.endswith(":"), row.cause
    assert row.step or row.cause.endswith("{0}")


def test_what_is_well_has_no_hint() -> None:
    assert hints.hints("all is well") == []
    healthy = "26/11/24 00:48:58 INFO RetryInvocationHandler: Operation category READ is not supported in state standby"
    assert hints.hints(log(healthy)) == []


def test_a_row_that_names_the_cause_is_before_one_that_names_the_end() -> None:
    lines = (
        "libcublas.so.9.0: cannot open shared object file",
        "26/11/24 00:48:58 ERROR X: Python worker exited unexpectedly",
    )
    assert hints.hints(log(*lines)) == hints.hints("libcublas.so.9.0: cannot open shared object file")


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
    assert words.startswith(f"{NAME} on data1 at 00:48:58: ")
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


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        # yahoo/TensorFlowOnSpark#277
        (
            ("2026-11-24 00:48:57.1: F tensorflow/core/kernels/conv_ops.cc:712] Check failed: stream->ok()",),
            "Check failed",
        ),
        (("F0000 00:00:1732.1 12345 cuda_dnn.cc:83] Check failed: x",), "Check failed"),  # TensorFlow 2.17
        # tensorflow/tensorflow#34704
        (
            (
                "# A fatal error has been detected by the Java Runtime Environment:",
                "#",
                "#  SIGSEGV (0xb) at pc=0x00, pid=6",
            ),
            "SIGSEGV",
        ),
        (
            ("terminate called after throwing an instance of 'gloo::IoException'", "  what():  closed by peer"),
            "closed by peer",
        ),
        (("python: symbol lookup error: /x/libhdfs.so: undefined symbol: JNI",), "undefined symbol: JNI"),
        (("Fatal Python error: Segmentation fault",), "Segmentation fault"),
    ],
)
def test_a_native_death_is_before_the_worker_that_exited(lines: tuple[str, ...], words: str) -> None:
    text = log(*lines, "26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", EXCEPTION)
    assert words in first_error(text)


def test_an_error_line_of_tensorflow_stands_beside_the_death_and_is_no_error_itself() -> None:
    line = "2026-11-24 00:48:57.1: E tensorflow/stream_executor/cuda/cuda_dnn.cc:385] could not create cudnn handle"
    assert first_error(log(line)) == ""
    text = first_error(log(line, "26/11/24 00:48:58 ERROR Executor: Exception in task 0.0", EXCEPTION))
    assert text.index("exited unexpectedly") < text.index("could not create cudnn handle")
    kill = f"26/11/24 00:48:58 WARN YarnAllocator: Container from a bad node: {NAME} on host: data1. Exit status: 134."
    text = log(line) + log(kill, container="container_1_0001_01_000001")
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
    assert f"Lost executor 2 on data2: {kill}" in first_error(log(*lines, container="container_1_0001_01_000001"))


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # yahoo/TensorFlowOnSpark#519: TFoS 2 raises what another process of the node raised.
        (
            "Traceback (most recent call last):\n  File x\nException: Exception in worker:\nTraceback (most recent call last):\n"
            "  File y\nValueError: it broke",
            ": ValueError: it broke",
        ),
        # apache/dolphinscheduler#4907: the reason is in YARN's diagnostics.
        (
            "21/03/01 17:12:35 ERROR spark.SparkContext: Error initializing SparkContext.\norg.apache.spark.SparkException: Application a "
            "failed 2 times due to AM Container for b exited with  exitCode: -1000\nFailing this attempt.Diagnostics: "
            "[2021-03-01 17:12:34.877]File f does not exist\njava.io.FileNotFoundException: File f does not exist",
            "Error initializing SparkContext: File f does not exist",
        ),
        # DTStack/Taier#876: so is the end of a container's log that YARN did not collect.
        (
            "22/11/10 17:02:03 WARN YarnAllocator: Container from a bad node: c on host: data2. Exit status: 1. Diagnostics: x\n"
            "[2022-11-10 17:02:03.074]Container exited with a non-zero exit code 1.\nError: Could not find or load main class a.B",
            "Error: Could not find or load main class a.B",
        ),
        # intel/BigDL#4425: a layout without the time.
        (
            "ERROR YarnScheduler:70 - Lost executor 1 on data2: Container killed by YARN for exceeding memory limits.",
            "memory",
        ),
        # intel/ipex-llm#5314: an exception without words.
        (
            "22/08/04 16:14:09 ERROR PythonRunner: Python worker exited\nTraceback (most recent call last):\n  File x\nEOFError",
            "PythonRunner: Python worker exited: EOFError",
        ),
        # yahoo/TensorFlowOnSpark#265
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\nAssertionError',
            'AssertionError (File "a.py", line 1, in f)',
        ),
    ],
    ids=["nested", "diagnostics", "end of a log", "no time", "no words", "no words in a traceback"],
)
def test_the_reason_is_where_others_see_it(text: str, words: str) -> None:
    assert words in first_error(log(text))


HEADLESS = [
    # jupyter/docker-stacks#831: a notebook.
    (
        "Py4JJavaError: An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n: org.apache.hadoop.security."
        'AccessControlException: Permission denied: user=anna, access=WRITE, inode="/user/anna/.sparkStaging/application_1_0014":hdfs:hdfs:drwxr-xr-x',
        "Permission denied: user=anna",
    ),
    # TOSIT-IO/tdp-collection#793
    (
        "py4j.protocol.Py4JJavaError: An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task "
        '0.3 in stage 0.0 (TID 3, data1, executor 1): java.io.IOException: Cannot run program "/bin/python": error=2, Aucun fichier ou dossier de ce type',
        'Cannot run program "/bin/python"',
    ),
    # tensorflow/tensorflow#5316: libhdfs.
    (
        "hdfsGetPathInfo(): constructNewObjectOfPath error:\njava.lang.IllegalArgumentException: Can not create a Path from an empty string",
        "Can not create a Path from an empty string",
    ),
    # alibaba/x-deeplearning#337: libhdfs without its jars.
    (
        "loadFileSystems error:\n(unable to get root cause for java.lang.NoClassDefFoundError)",
        "java.lang.NoClassDefFoundError",
    ),
    # alibaba/x-deeplearning#321
    (
        "20/01/13 12:07:40 WARN ipc.Client: Exception encountered while connecting to the server : javax.security.sasl.SaslException: GSS initiate "
        "failed [Caused by GSSException: No valid credentials provided (Mechanism level: Failed to find any Kerberos tgt)]",
        "GSS initiate failed",
    ),
    # newnius/Dockerfiles#2
    (
        "19/02/02 13:00:37 WARN hdfs.DataStreamer: DataStreamer Exception\norg.apache.hadoop.ipc.RemoteException(java.io.IOException): File "
        "/user/anna/input could only be replicated to 0 nodes instead of minReplication (=1).  There are 0 datanode(s) running and no node(s) are "
        "excluded in this operation.",
        "DataStreamer Exception: org.apache.hadoop.ipc.RemoteException(java.io.IOException): File /user/anna/input could only be replicated",
    ),
    # TalkingData/Fregata#12
    (
        "17/01/01 23:03:32 ERROR YarnScheduler: Lost executor 598 on data2: Container marked as failed: container_e50_1_03_01_000599 on host: data2. "
        "Exit status: 143. Diagnostics: Container killed on request. Exit code is 143",
        "Exit status: 143",
    ),
    # yahoo/TensorFlowOnSpark#33: Spark repeats what it printed as a warning.
    (
        "17/04/19 10:43:50 INFO scheduler.TaskSetManager: Lost task 6.1 in stage 1.0 (TID 15) on executor data1: org.apache.spark.api.python."
        "PythonException (Traceback (most recent call last):\n  File x\nAttributeError: 'NoneType' object has no attribute 'get'\n) [duplicate 11]",
        "AttributeError: 'NoneType' object has no attribute 'get'",
    ),
    # commoncrawl/cc-pyspark#50
    (
        "25/04/28 00:57:45 INFO Executor: Executor killed task 8.0 in stage 0.0 (TID 8), reason: Stage cancelled: Job aborted due to stage failure: "
        "Task 5 in stage 0.0 failed 1 times, most recent failure: Lost task 5.0 in stage 0.0 (TID 5) (data1 executor 1): "
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "Python worker exited unexpectedly",
    ),
    # horovod/horovod#1152: TensorFlow 1.
    (
        "[1,1]<stderr>:ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[2,1023,50257] and type float",
        "OOM when allocating tensor",
    ),
    # tensorflow/models#3788
    (
        "INFO:tensorflow:Error reported to Coordinator: <class 'tensorflow.python.framework.errors_impl.UnavailableError'>, OS Error",
        "UnavailableError'>, OS Error",
    ),
    # horovod/horovod#552: TensorFlow before it printed the time.
    (
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:806] failed to allocate 512.00M (536870912 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY",
        "failed to allocate 512.00M",
    ),
    # tensorflow/tensorflow#60913: healthy processes have error lines as well, but a row is about this one.
    (
        "E0000 00:00:1738697930.202924    7665 cuda_dnn.cc:522] Loaded runtime CuDNN library: 9.1.0 but source was compiled with: 9.3.0.\n"
        "2025-02-04 20:38:50.230519: W tensorflow/core/framework/op_kernel.cc:1841] OP_REQUIRES failed at xla_ops.cc:577 : FAILED_PRECONDITION",
        "Loaded runtime CuDNN library: 9.1.0",
    ),
    # TOSIT-IO/tdp-collection#346: YARN's diagnostics.
    ("1/1 local-dirs have errors: [ /data/yarn/local : Cannot create directory: /data/yarn/local ]", "local-dirs have"),
    # TOSIT-IO/tdp-collection#727
    ("Caused by: ExitCodeException exitCode=24: File /etc/hadoop/conf.rm must be owned by root", "owned by root"),
    # uber/petastorm#288: the end of a stack.
    (
        "\tat java.lang.Thread.run(Thread.java:748)\nCaused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        "Python worker exited",
    ),
    # horovod/horovod#2544: a stack that is printed with indentation.
    (
        "    raise Py4JJavaError(\n    \tpy4j.protocol.Py4JJavaError: An error occurred while calling o153.parquet.\n"
        "\t\t\t: org.apache.spark.SparkException: Job aborted.",
        "o153.parquet. org.apache.spark.SparkException: Job aborted.",
    ),
    # tensorflow/tensorflow#51760
    ("data1:376586:377443 [4] ibvwrap.c:130 NCCL WARN Call to ibv_create_qp failed", "ibv_create_qp failed"),
    # alibaba/FastNN#15
    (
        "2023-08-31 01:40:46.786721: W tensorflow/core/framework/op_kernel.cc:1651] OP_REQUIRES failed at nccl_communicator.cc:116 : "
        "Internal: unhandled system error",
        "unhandled system error",
    ),
    # tensorflow/tensorflow#42062
    (
        "2020-08-05 20:21:04.420413: E tensorflow/core/common_runtime/ring_alg.cc:274] Aborting RingReduce with Invalid argument: "
        "[_Derived_]indices[4] = 14 is not in [0, 14)",
        "indices[4] = 14 is not in",
    ),
    ("PMIX ERROR: OUT-OF-RESOURCE in file dstore/pmix_esh.c at line 831", "PMIX ERROR"),  # horovod/horovod#3765
    # horovod/horovod#3412
    (
        "[1,0]<stderr>:Horovod has been shut down. This was caused by an exception on one of the ranks.",
        "Horovod has been",
    ),
]


@pytest.mark.parametrize(("text", "words"), HEADLESS, ids=[words[:40] for _, words in HEADLESS])
def test_what_no_line_begins_as_an_error_is_the_reason_if_nothing_else_is(text: str, words: str) -> None:
    known = hints.known(ROWS)
    assert words in first_error(log(text), known)
    other = log("26/11/29 04:35:37 ERROR X: it broke", container="container_1_0001_01_000003")
    assert first_error(log(text) + other, known).endswith("it broke")
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
    words = first_error(log(text, kind="stdout"), hints.known(ROWS))
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
