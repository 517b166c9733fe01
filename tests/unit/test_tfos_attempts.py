"""tfos-submit --attempts: a job that lost an executor or a host is submitted again, one that failed by itself is not."""

import signal
from types import SimpleNamespace
from typing import Any

import pytest
from loopback import Quiet, served
from resource_manager import collected
from tfos_host import app, parsed, settings, start, submit
from tfos_submit import hints, outcome
from tfos_submit.job import Job
from waiting import until

LOST = (
    "26/11/29 15:59:30 ERROR cluster.YarnScheduler: Lost executor 2 on data1: Container marked as failed: "
    "container_1_0001_01_000003 on host: data1. Exit status: -100. Diagnostics: Container released on a *lost* node."
)
OWN = "Traceback (most recent call last):\n  File x\nKeyError: mine"
PEER = "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: Socket closed"
# TensorFlowOnSpark 1.4.2 with TensorFlow 1 on the demo, whose data3 was killed: the last line comes from a thread of its own and says no reason.
SLAVE = """\
26/11/30 11:04:34 ERROR cluster.YarnScheduler: Lost executor 1 on data3: Slave lost
26/11/30 11:04:34 WARN scheduler.TaskSetManager: Lost task 0.0 in stage 1.0 (TID 4, data3, executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Slave lost
26/11/30 11:04:34 ERROR scheduler.TaskSetManager: Task 0 in stage 1.0 failed 1 times; aborting job
2026-11-30 11:04:34,928 ERROR (Thread-3-1844) Exception in TF background thread
2026-11-30 11:04:38,142 ERROR (MainThread-1844) Exiting Spark application with error status."""
# Whatever the driver calls an error at once comes from the loss; later Spark has gone on without the executor.
AFTER = "2026-11-30 {},000 ERROR (MainThread-1844) Training failed: KeyError: mine"
# Another run: YARN had ended the application before the script went on.
STOPPED = (
    SLAVE
    + """
26/11/30 11:04:34 ERROR cluster.YarnClientSchedulerBackend: YARN application has exited unexpectedly with state SUCCEEDED! Check the YARN application logs for more details.
26/11/30 11:04:34 ERROR cluster.YarnSchedulerBackend$YarnSchedulerEndpoint: Sending RequestExecutors(0,0,Map(),Set()) to AM was unsuccessful
java.io.IOException: Failed to send RPC RPC 8948730040542318860 to /172.30.133.231:35860: java.nio.channels.ClosedChannelException
26/11/30 11:04:34 ERROR util.Utils: Uncaught exception in thread YARN application state monitor
Traceback (most recent call last):
  File "/home/analyst/digits/train_tf1.py", line 143, in <module>
py4j.protocol.Py4JJavaError: An error occurred while calling z:org.apache.spark.api.python.PythonRDD.readRDDFromFile.
: java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext."""
)
# A third run.
NO_ANSWER = """\
26/11/30 13:00:45 WARN cluster.YarnSchedulerBackend$YarnSchedulerEndpoint: Attempted to get executor loss reason for executor id 2 at RPC address 172.30.133.232:46350, but got no response. Marking as slave lost.
java.io.IOException: Connection from /172.30.133.233:53314 closed
26/11/30 13:00:45 ERROR cluster.YarnScheduler: Lost executor 2 on data2: Slave lost"""
# A fourth run.
NO_REPLY = """\
26/11/30 17:19:16 WARN cluster.YarnSchedulerBackend$YarnSchedulerEndpoint: Attempted to get executor loss reason for executor id 1 at RPC address 172.30.133.231:55638, but got no response. Marking as slave lost.
org.apache.spark.rpc.RpcTimeoutException: Cannot receive any reply from null in 120 seconds. This timeout is controlled by spark.rpc.askTimeout
\tat org.apache.spark.rpc.RpcTimeout.org$apache$spark$rpc$RpcTimeout$$createRpcTimeoutException(RpcTimeout.scala:47)
Caused by: java.util.concurrent.TimeoutException: Cannot receive any reply from null in 120 seconds
\tat org.apache.spark.rpc.netty.NettyRpcEnv$$anon$1.run(NettyRpcEnv.scala:258)
26/11/30 17:19:16 ERROR cluster.YarnScheduler: Lost executor 1 on data1: Slave lost"""
# The driver of Horovod 0.28.1 on Spark 3.5.8 on the demo, whose data3 was powered off; without INFO messages and most frames.
HOROVOD = """\
Exception in thread Thread-4 (run_spark):
Traceback (most recent call last):
  File "/home/analyst/hvd/lib/python3.11/site-packages/horovod/spark/runner.py", line 142, in run_spark
    result = procs.mapPartitionsWithIndex(mapper).collect()
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
py4j.protocol.Py4JJavaError: An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job 0 cancelled part of cancelled job group horovod.spark.run.0
\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2898)

Traceback (most recent call last):
  File "/home/analyst/hvd/lib/python3.11/site-packages/horovod/runner/gloo_run.py", line 284, in launch_gloo
    raise RuntimeError('Horovod detected that one or more processes exited with non-zero '
RuntimeError: Horovod detected that one or more processes exited with non-zero status, thus causing the job to be terminated. The first process to do so was:
Process name: 1
Exit code: None

26/11/30 20:47:28 ERROR TransportResponseHandler: Still have 1 requests outstanding when connection from /172.30.159.231:46602 is closed
26/11/30 20:47:28 WARN YarnSchedulerBackend$YarnSchedulerEndpoint: Attempted to get executor loss reason for executor id 2 at RPC address 172.30.159.233:36548, but got no response. Marking as agent lost.
java.io.IOException: Connection from /172.30.159.231:46602 closed"""
# The rank on the host that stayed, in another run. Of its log the end was seen: the first four lines are as Python and the job's first error had them.
RANK = """\
[0]<stderr>:Traceback (most recent call last):
[0]<stderr>:  File "train.py", line 56, in <module>
[0]<stderr>:    main(options.output, options.epochs)
[0]<stderr>:tensorflow.python.framework.errors_impl.UnknownError: Graph execution error:
[0]<stderr>:
[0]<stderr>:Detected at node DistributedAdam_Allreduce/cond/HorovodAllreduce_grads_0 defined at (most recent call last):
[0]<stderr>:  File "<frozen runpy>", line 88, in _run_code
[0]<stderr>:
[0]<stderr>:  File "<string>", line 111, in horovod_allreduce
[0]<stderr>:
[0]<stderr>:Horovod has been shut down. This was caused by an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one of the ranks finished execution.
[0]<stderr>:\t [[{{node DistributedAdam_Allreduce/cond/HorovodAllreduce_grads_0}}]] [Op:__inference_train_function_2091]"""
# Spark 3.1 and later say it in other words (ExecutorLossReason.scala).
PROCESS = SLAVE.replace("Slave lost", "Executor Process Lost")
# Spark's log of a host that the ResourceManager, before it misses it, chose for the application's master: bigdata8 was down (a user's note on
# NoRouteToHostException, with Spark's head of 3.0).
LAUNCH = """\
26/11/30 11:04:34 ERROR spark.SparkContext: Error initializing SparkContext.
org.apache.spark.SparkException: Application application_1504508652498_2831 failed 1 times due to Error launching appattempt_1504508652498_2831_000001. Got exception: java.net.NoRouteToHostException: No Route to Host from bigdata2/192.168.37.22 to bigdata8:45454 failed on socket timeout exception: java.net.NoRouteToHostException: No route to host; For more details see: http://wiki.apache.org/hadoop/NoRouteToHost"""
# Spark 1 may report first that it lost the executor (raster-foundry/raster-foundry#246), and then why (YarnAllocator.scala).
MEMORY = """\
15/10/26 16:13:40 ERROR cluster.YarnClusterScheduler: Lost executor 4 on data2: remote Rpc client disassociated
15/10/26 16:13:42 WARN yarn.YarnAllocator: Container killed by YARN for exceeding memory limits. 5.5 GB of 5.5 GB physical memory used. Consider boosting spark.yarn.executor.memoryOverhead."""
# Its settings are kept as 1, 2, ...; the first ones end as `fails` says.
SPARK_SUBMIT = """
cd {tmp}; number=$(($(ls | grep -c '^attempt') + 1)); cat "$2" > attempt$number
[ $number -gt {failures} ] || {{ sleep {seconds}; cat fails >&2; exit 1; }}
{then}
"""


def attempts(host: SimpleNamespace, fails: str, failures: int = 9, seconds: int = 0, then: str = "") -> None:
    (host.tmp / "fails").write_text(fails + "\n", encoding="utf-8")
    host.spark_submit(SPARK_SUBMIT.format(tmp=host.tmp, failures=failures, seconds=seconds, then=then))


def test_a_job_that_lost_an_executor_is_submitted_again(host: SimpleNamespace) -> None:
    attempts(host, LOST, failures=1)
    completed = submit(host, "--attempts", "3")
    assert completed.code == 0, completed.error
    assert "tfos-submit: attempt 1 of 3 was lost, so the job is submitted again: " in completed.error
    assert "Lost executor 2 on data1" in completed.error.split("submitted again: ")[1]
    first, second = (settings(host, f"attempt{number}") for number in (1, 2))
    assert first["spark.deeplearning.job"] == second["spark.deeplearning.job"], "how scripts know their own"
    assert first["spark.yarn.tags"] != second["spark.yarn.tags"], "by its tag YARN finds the attempt's application"
    assert not (host.tmp / "attempt3").exists()


@pytest.mark.parametrize(
    ("fails", "options", "count"),
    [
        (LOST, ["--attempts", "2"], 2),
        (LOST, [], 1),
        (OWN, ["--attempts", "3"], 1),
        (f"{OWN}\n{LOST}", ["--attempts", "3"], 1),
        (SLAVE, ["--attempts", "2"], 2),
        (STOPPED, ["--attempts", "2"], 2),
        (NO_ANSWER, ["--attempts", "2"], 2),
        (NO_REPLY, ["--attempts", "2"], 2),
        (HOROVOD, ["--attempts", "3"], 1),  # all hosts are there
        (RANK, ["--attempts", "3"], 1),
        (PROCESS, ["--attempts", "2"], 2),
        (LAUNCH, ["--attempts", "2"], 2),
        (MEMORY, ["--attempts", "3"], 1),
        (f"{SLAVE}\n{AFTER.format('11:04:40')}", ["--attempts", "2"], 2),
        (f"{SLAVE}\n{AFTER.format('11:09:40')}", ["--attempts", "3"], 1),
        (f"24/11/24 00:15:28 ERROR Executor: {PEER}", ["--attempts", "3"], 1),  # all hosts are there
        (f"24/11/24 00:15:28 ERROR Executor: {PEER}\n{LOST}", ["--attempts", "2"], 2),
    ],
)
def test_the_job_fails_after_its_attempts_and_at_once_by_an_error_of_its_own(
    host: SimpleNamespace, fails: str, options: list[str], count: int
) -> None:
    attempts(host, fails)
    assert submit(host, *options).code == outcome.FAILED
    assert len(list(host.tmp.glob("attempt*"))) == count


def test_ctrl_c_ends_the_second_attempt_and_the_job(host: SimpleNamespace) -> None:
    attempts(host, LOST, failures=1, then="exec sleep 60")
    process = start(host, "--attempts", "3")
    until((host.tmp / "attempt2").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == outcome.INTERRUPTED
    assert not (host.tmp / "attempt3").exists()


def test_ctrl_c_while_the_logs_of_a_lost_attempt_are_read_ends_the_job(host: SimpleNamespace) -> None:
    attempts(host, LOST, seconds=2)
    host.yarn.application = app()
    (host.tmp / "hadoop/bin/yarn").write_text(
        f"#!/bin/sh\n[ $1 != logs ] || touch {host.tmp}/reads; sleep 1\n", encoding="utf-8"
    )
    process = start(host, "--attempts", "3")
    until((host.tmp / "reads").exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == outcome.INTERRUPTED
    assert not (host.tmp / "attempt2").exists()


def test_a_result_that_the_script_did_not_write_is_its_own_error(host: SimpleNamespace) -> None:
    host.spark_submit(f"cat fails >&2; touch {host.tmp}/attempt$(ls {host.tmp} | grep -c attempt)")
    (host.tmp / "fails").write_text(LOST + "\n", encoding="utf-8")
    completed = submit(host, "--attempts", "3", "--result", "result.json", of_script=("result.json",))
    assert (completed.code, "was not written" in completed.error) == (outcome.FAILED, True), completed.error
    assert len(list(host.tmp.glob("attempt*"))) == 1


@pytest.mark.parametrize(("clock", "is_lost"), [("11:04:34", True), ("11:04:30", False), ("11:09:40", False)])
def test_in_cluster_mode_the_script_has_a_log_of_its_own_beside_sparks(clock: str, is_lost: bool) -> None:
    """PythonRunner gives both streams of the script to the master's standard output."""
    spark, script = SLAVE.splitlines()[:3], AFTER.format(clock)
    master = ("container_1_0001_01_000001", "data1")
    logs = [(*master, "stderr", "\n".join(spark)), (*master, "stdout", script)]
    for files in (logs, logs[::-1]):
        assert bool(hints.lost("", "", collected(*files), str)) is is_lost


def test_a_job_without_yarn_has_one_attempt(host: SimpleNamespace) -> None:
    completed = submit(host, "--attempts", "2", "--local")
    assert (completed.code, "--attempts is for a job on YARN" in completed.error) == (outcome.USAGE, True)


class NodeManager(Quiet):
    def do_GET(self) -> None:
        self.answer(200, b"{}")


@pytest.mark.parametrize(
    ("states", "silent", "gone"),
    [
        ({"data1": "RUNNING", "data2": "RUNNING"}, [], ""),
        ({"data1": "RUNNING", "data2": "DECOMMISSIONING"}, [], ""),
        ({"data1": "UNHEALTHY", "data2": "RUNNING"}, [], "YARN no longer has localhost."),
        ({"data1": "RUNNING", "data2": "RUNNING"}, ["data2"], "YARN no longer has 127.0.0.1."),
        ({"data1": "RUNNING", "data2": "RUNNING"}, ["data1", "data2"], ""),  # a firewall is before them
    ],
)
def test_a_host_is_lost_if_yarn_says_so_or_it_alone_is_silent(
    states: dict[str, str], silent: list[str], gone: str
) -> None:
    """data1 is localhost, data2 127.0.0.1: Spark's lines about a loss may be missing, such as those of a level that the site does not log."""
    names = {"data1": "localhost", "data2": "127.0.0.1"}
    nodes: Any = [{"name": names[name], "state": state} for name, state in states.items()]
    job = Job(parsed(), [], {}, "tag", SimpleNamespace(every_node=lambda: nodes), {}, None)
    with served(NodeManager) as address:
        port = address.rpartition(":")[2]
        job.addresses = [f"http://{names[name]}:{1 if name in silent else port}" for name in states]
        assert job.lost_hosts() == gone


@pytest.mark.parametrize("fails", [f"24/11/24 00:15:28 ERROR Executor: {PEER}", HOROVOD, RANK])
def test_the_hosts_are_those_of_the_job_once_all_executors_run(host: SimpleNamespace, fails: str) -> None:
    """The surviving worker, or Horovod's driver, says only that another process ended, and data2 is no longer YARN's."""
    attempts(host, fails, failures=1, seconds=2)
    host.yarn.application, answer = app(containers=3), host.yarn.answer
    host.yarn.nodes = [{"nodeHostName": "data2", "state": "LOST"}]

    def answers(path: str) -> Any:
        if path.endswith("/appattempts"):
            return {"appAttempts": {"appAttempt": [{"appAttemptId": "appattempt_1_0001_000001"}]}}
        if path.endswith("/containers"):
            return {"container": [{"containerId": "container_1_0001_01_000002", "nodeHttpAddress": "data2:1"}]}
        return answer(path)

    host.yarn.answer = answers
    completed = submit(host, "--attempts", "2")
    assert (completed.code, "again: YARN no longer has data2." in completed.error) == (0, True), completed.error
