"""Which of a failed job's sentences is the first error, by where it stands and what follows it. Texts are of public reports, named beside them."""

import pytest
from resource_manager import collected
from tfos_submit import hints
from tfos_submit.first_error import first_error

KNOWN = hints.known(hints.table())
MASTER, EXECUTOR = "container_1_0001_01_000001", "container_1_0001_01_000002"

FROM_ONE_LOG = {
    "Spark warned of the reason": (  # a company's guide to Spark: the client of HDFS then says what it could not tidy up
        "18/09/09 16:32:40 WARN DFSClient: DataStreamer Exception\n"
        "org.apache.hadoop.ipc.RemoteException(org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException): No lease on /user/x (inode 4)\n"
        "18/09/09 16:32:40 ERROR DFSClient: Failed to close inode 491680434",
        "No lease on /user/x",
    ),
    "a lost executor before what follows from it": (  # Spark's progress bar stands before the time
        "[Stage 30:=========>(104 + 1) / 105]18/06/22 23:57:07 ERROR YarnScheduler: Lost executor 6 on data4: Container marked as failed: c on "
        "host: data4. Exit status: 143. Diagnostics: Container killed on request. Exit code is 143\n\n"
        'Exception in thread "main" org.apache.spark.SparkException: Job aborted due to stage failure: ResultStage 31 has failed the maximum '
        "allowable number of times: 4. Most recent failure reason: org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location",
        "Lost executor 6 on data4",
    ),
    "YARN's diagnostics in the client's report": (  # a blog on Spark with YARN
        "17/07/21 22:17:02 ERROR YarnClientSchedulerBackend: Yarn application has already exited with state FINISHED!\n"
        "17/07/21 22:17:02 ERROR SparkContext: Error initializing SparkContext.\n\n"
        "\t diagnostics: Uncaught exception: org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException: requestedVirtualCores=100",
        "requestedVirtualCores=100",
    ),
    "a task's own reason and its host": (  # xubo245's notes
        'Exception in thread "main" org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most '
        'recent failure: Lost task 1.3 in stage 0.0 (TID 6, data2): java.lang.NumberFormatException: For input string: "6373"',
        'the driver: java.lang.NumberFormatException: For input string: "6373" (Lost task 1.3 in stage 0.0 (TID 6, data2))',
    ),
    "an indented traceback": (  # notes on HDP, shortened
        "18/03/08 17:10:54 WARN TaskSetManager: Lost task 0.0 in stage 0.0 (TID 0, data2, executor 2): org.apache.spark.SparkException:\n"
        'Error from python worker:\n  Traceback (most recent call last):\n    File "pkg_resources/__init__.py", line 1273\n      raise err\n'
        "  pkg_resources.ExtractionError: Can't extract file(s) to egg cache\n\njava.io.EOFException",
        "ExtractionError: Can't extract file(s) to egg cache (Lost task 0.0 in stage 0.0 (TID 0, data2, executor 2))",
    ),
    "a traceback without a head": (  # a README of TensorFlowOnSpark, shortened
        'org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File "TFSparkNode.py", line 420, in _train\n'
        "Exception: Timeout while feeding partition",
        ": Exception: Timeout while feeding partition",
    ),
    "the innermost cause": (  # a company's guide to Spark
        "26/11/29 10:00:00 ERROR Executor: Exception in task 0.0\njava.lang.ExceptionInInitializerError\n\tat a.B(Test.scala:85)\n"
        "Caused by: java.io.IOException: MountRootFileSystem can not mkdir /user/x/.sparkStaging",
        "java.io.IOException: MountRootFileSystem can not mkdir",
    ),
    "a graph's error below its stack": (  # Dimsmary/Ossas_ChatBot#50, shortened
        'Traceback (most recent call last):\n  File "main.py", line 35, in <module>\n    main()\n'
        "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:\n\n"
        "Detected at node 'Equal' defined at (most recent call last):\n"
        '    File "main.py", line 35, in <module>\n      main()\n    File "seq2seq.py", line 79, in train_model\n'
        "Node: 'Equal'\nIncompatible shapes: [14] vs. [14,50]\n\t [[{{node Equal}}]] [Op:__inference_train_function_10404]",
        "InvalidArgumentError: Graph execution error: Incompatible shapes: [14] vs. [14,50]",
    ),
    "a shell": (  # YooJong's GrowthLog
        "[2021-02-02 02:20:46.014]Container exited with a non-zero exit code 127. Error file: prelaunch.err.\n"
        "Last 4096 bytes of stderr :\n/bin/bash: /bin/java: No such file or directory",
        "/bin/bash: /bin/java: No such file or directory",
    ),
    "a sentence that is wrapped": (  # horovod/horovod#1421
        "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted.",
        "Primary job  terminated normally, but 1 process returned a non-zero exit code.",
    ),
    "a host's name before the line's end": (  # Open MPI's list, with opal-restart
        "mpirun noticed that process rank 2 with PID 18384 on node debian1\nexited on signal 11 (Segmentation fault).",
        "on node debian1 exited on signal 11",
    ),
    "the script of a container": (  # a guide to Gremlin on HDP, shortened
        "ERROR org.apache.spark.SparkContext  - Error initializing SparkContext.\norg.apache.spark.SparkException: Yarn application has already ended!\n"
        "Diagnostics: Exception from container-launch.\nException message: /x/launch_container.sh: line 24: $PWD:/x/${hdp.version}: bad substitution",
        ": /x/launch_container.sh: line 24: ",
    ),
    "what YARN's container-executor says before": (  # terasort on CDH with Kerberos
        "Diagnostics: Application application_1_0001 initialization failed (exitCode=255) with output: main : command provided 0\n"
        "main : run as user is raffles\nmain : requested yarn user is raffles\nUser raffles not found",
        "with output: User raffles not found",
    ),
    "what Spark's page says of a stage": (  # a blog on elasticsearch-hadoop
        "ExecutorLostFailure (executor 4 exited caused by one of the running tasks) Reason: Container killed by YARN for exceeding memory limits. "
        "6.0 GB of 6 GB physical memory used.\norg.apache.spark.shuffle.FetchFailedException: Failed to connect to host18/192.168.10.188:45026",
        "6.0 GB of 6 GB physical memory used",
    ),
    "the last warning": (  # tensorflow/ecosystem#161
        "20/06/13 18:52:56 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform...\n"
        "20/06/13 18:56:04 WARN DAGScheduler: Barrier stage in job 0 requires 1 slots, but only 0 are available.",
        "requires 1 slots, but only 0 are available",
    ),
    "what YARN glues to its reason": (  # Hadoop 3.3.6
        "Failing this attempt.Diagnostics: Container released on a *lost* nodeFor more detailed output, check the application tracking page: http://x",
        ": Container released on a *lost* node",
    ),
    "what only an information says": (  # a blog on the driver's memory
        "22/11/11 16:41:36 INFO yarn.ApplicationMaster: Final app status: FAILED, exitCode: 11, (reason: Max number of executor failures (400) reached)",
        "Max number of executor failures (400) reached",
    ),
    "what Java prints of itself": (  # Java 11
        "WARNING: All illegal access operations will be denied in a future release\nRESULT 1",
        "",
    ),
}


@pytest.mark.parametrize(("text", "words"), FROM_ONE_LOG.values(), ids=FROM_ONE_LOG)
def test_the_reason_of_one_log(text: str, words: str) -> None:
    first = first_error(text, KNOWN)
    assert words in first if words else not first


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
