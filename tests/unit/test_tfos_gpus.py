"""tfos-submit --gpus: what Spark is told, what is refused, and the script with which executors find GPUs of their own."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from python_files import write_script
from resource_manager import collected, gpu_node
from tfos_host import add_jars, app, executable, refusal, settings, submit, told
from tfos_submit import discovery, gpus, hints, nvidia_smi, outcome, yarn
from tfos_submit.first_error import first_error

from hadoop_dl_dev.demo import images

STAND_IN = images.REPOSITORY / "demo/gpu/files/nvidia-smi"


@pytest.mark.parametrize("prefix", ["spark.yarn.appMasterEnv.", "spark.executorEnv."])
def test_0_gpus_hides_those_of_the_hosts(prefix: str) -> None:
    properties = told("--gpus", "0")
    assert properties[prefix + "CUDA_VISIBLE_DEVICES"] == ""
    assert properties[prefix + "CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert not [name for name in properties if "resource.gpu" in name]


def test_without_the_option_nothing_is_said_about_gpus() -> None:
    assert not [name for name in told() if "gpu" in name.lower() or "CUDA" in name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.executor.resource.gpu.amount", "2"),
        ("spark.task.resource.gpu.amount", "2"),
        ("spark.executor.resource.gpu.discoveryScript", "./tfos-gpus"),
        ("spark.executorEnv.TFOS_GPUS", "2"),
        ("spark.executorEnv.CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ("spark.yarn.appMasterEnv.CUDA_VISIBLE_DEVICES", ""),  # the master asked for none
        ("spark.scheduler.maxRegisteredResourcesWaitingTime", "600s"),  # never with fewer
    ],
)
def test_each_executor_asks_for_its_gpus(name: str, value: str) -> None:
    properties = told("--gpus", "2", "--timeout", "600")
    assert properties[name] == value
    assert "spark.executorEnv.CUDA_VISIBLE_DEVICES" not in properties


def test_the_script_goes_with_the_job_and_nothing_of_it_stays(host: SimpleNamespace) -> None:
    host.yarn.nodes = [gpu_node("data1", 2)]
    (host.tmp / "mine.txt").write_text("mine")
    host.spark_submit(
        f'echo "$*" > {host.tmp}/command; cp "${{4#*,}}" {host.tmp}/sent; dirname "$2" > {host.tmp}/place'
    )
    assert submit(host, "--gpus", "1", "--files", str(host.tmp / "mine.txt")).code == 0
    assert f"--files {host.tmp}/mine.txt,/" in (host.tmp / "command").read_text()
    assert (host.tmp / "sent").read_text().startswith('#!/bin/sh\nexec "')
    assert not Path((host.tmp / "place").read_text().strip()).exists()


@pytest.mark.parametrize("local", [True, False])
def test_this_hosts_own_process_sees_no_gpu_either(host: SimpleNamespace, local: bool) -> None:
    command = 'echo "visible=<$CUDA_VISIBLE_DEVICES> $CUDA_DEVICE_ORDER"'
    host.spark_submit(command)
    python = host.root / "envs/tf-0123456789ab/bin/python"
    python.write_text(f"#!/bin/sh\n{command}\n")
    completed = submit(host, "--gpus", "0", *(["--local"] if local else []))
    assert (completed.code, completed.output) == (0, "visible=<> PCI_BUS_ID\n")


@pytest.mark.parametrize(
    ("asked", "memory"),
    [
        (["--per-node", "1"], 6145),  # more than half of the largest node
        (["--per-node", "2"], 4097),
        (["--per-node", "2", "--memory", "5g"], 5120),  # two of these fit, and no third one
        (["--per-node", "8", "--memory", "2g"], 2048),
    ],
)
def test_no_more_executors_fit_onto_a_node_than_per_node_says(
    host: SimpleNamespace, asked: list[str], memory: int
) -> None:
    small, large, lost_node = (gpu_node(name, 0) for name in ("data1", "data2", "data3"))
    large.update(availMemoryMB=2048, usedMemoryMB=10240)  # what others use now counts as well
    lost_node.update(state="LOST", availMemoryMB=0, usedMemoryMB=0)
    host.yarn.nodes = [small, large, lost_node]
    assert submit(host, *asked).code == 0
    names = ("spark.executor.memory", "spark.executor.memoryOverhead")
    assert sum(int(settings(host)[name].removesuffix("m")) for name in names) == memory


def test_per_node_without_an_answer_of_yarn_is_refused(host: SimpleNamespace) -> None:
    host.yarn.nodes = [{**gpu_node("data1", 0), "state": "LOST"}]
    words = "--per-node 1 requires the memory of YARN's nodes, but the ResourceManager names no running one"
    assert words in refusal(host, "--per-node", "1")


@pytest.mark.parametrize(
    ("jars", "words"),
    [
        (["spark-core_2.11-2.4.8.jar", "hadoop-yarn-api-3.1.1.jar"], "requires Spark 3, but"),
        # PyPI's pyspark 3.0.3 has these
        (["spark-core_2.12-3.0.3.jar", "hadoop-yarn-api-2.7.4.jar"], "is 2.7, which cannot ask YARN for yarn.io/gpu"),
        (["spark-core_2.12-3.1.3.jar", "hadoop-yarn-api-3.0.0-cdh6.3.2.jar"], "is 3.0, which cannot"),
    ],
)
def test_a_spark_that_would_start_without_gpus_is_refused(host: SimpleNamespace, jars: list[str], words: str) -> None:
    add_jars(host, *jars)
    assert words in refusal(host, "--gpus", "1")
    assert submit(host, "--gpus", "0").code == 0


@pytest.mark.parametrize(
    "jars",
    [
        ["spark-core_2.12-3.5.8.jar", "hadoop-client-api-3.3.4.jar"],
        ["spark-core_2.12-3.1.3.jar", "hadoop-yarn-api-2.10.2.jar"],
        ["spark-core_2.12-3.3.0.jar", "hadoop-yarn-api-3.1.1.7.1.9.0-387.jar"],
        [],
    ],
)
def test_a_spark_that_can_ask_for_gpus_is_taken(host: SimpleNamespace, jars: list[str]) -> None:
    add_jars(host, *jars)
    host.yarn.nodes = [gpu_node("data1", 2)]
    assert submit(host, "--gpus", "1").code == 0


@pytest.mark.parametrize(
    ("arguments", "nodes", "fit"),
    [
        (["--executors", "3"], [gpu_node("data1", 1), gpu_node("data2", 1)], 2),
        (["--gpus", "2"], [gpu_node("data1", 3), gpu_node("data2", 1)], 1),  # no executor is on two nodes
        ([], [gpu_node("data1", 2, state="LOST")], 0),
        ([], [gpu_node("data1", 0)], 0),
    ],
)
def test_gpus_that_yarn_has_nowhere_are_refused_before_anything_starts(
    host: SimpleNamespace, arguments: list[str], nodes: list[dict[str, Any]], fit: int
) -> None:
    host.yarn.nodes = nodes
    text = refusal(host, "--gpus", "1", "--queue", "vision", *arguments)
    assert f"(yarn.io/gpu, in queue vision) require more than YARN has: {fit} of them fit" in text
    assert f"data1 ({nodes[0]['state']}) has {yarn.node_summary(nodes[0])['total_gpus']}" in text


def test_gpus_that_others_use_are_waited_for(host: SimpleNamespace) -> None:
    host.yarn.nodes = [gpu_node("data1", 2, free=0)]
    assert submit(host, "--gpus", "1").code == 0


def test_executors_without_gpus_are_told_with_resource_queue_and_nodes(host: SimpleNamespace) -> None:
    host.yarn.application = app(containers=2, queue="vision")
    host.yarn.nodes = [gpu_node("data1", 2, free=0)]
    host.spark_submit("exec sleep 60")
    completed = submit(host, "--gpus", "1", "--wait", "1")
    assert completed.code == outcome.NO_EXECUTORS
    assert (
        "each with 3072 MB, 1 vcore and 1 GPU (yarn.io/gpu), in queue vision; after 1 s YARN has given 1"
        in completed.error
    )
    assert "0/2" in completed.error
    assert "--executors 1, or a smaller --memory, --cores or --gpus" in completed.error


def test_executors_that_per_node_keeps_apart_are_told_so(host: SimpleNamespace) -> None:
    host.yarn.application = app(containers=2)
    host.yarn.nodes = [{**gpu_node("data1", 0), "availMemoryMB": 2048, "usedMemoryMB": 4096}]
    host.spark_submit("exec sleep 60")
    completed = submit(host, "--per-node", "1", "--wait", "1")
    assert completed.code == outcome.NO_EXECUTORS
    assert "each with 3073 MB" in completed.error
    assert "or a larger --per-node" in completed.error


# The script in a container, with the demo's nvidia-smi and files in place of devices: flock is the kernel's own for both.


@pytest.fixture
def container(tmp_path: Path) -> Iterator[SimpleNamespace]:
    """A host with two GPUs, and what starts executors on it."""
    (tmp_path / "gpus.json").write_text((images.DATA / "fixtures/nvidia-smi/nvidia-smi-stand-in.json").read_text())
    text = STAND_IN.read_text().replace("#!/usr/bin/python3", f"#!{sys.executable}")
    (tmp_path / "nvidia-smi").write_text(text.replace("@VERSION@", "535.104.05"))
    (tmp_path / "nvidia-smi").chmod(0o755)
    (tmp_path / "dev").mkdir()
    for number in range(2):
        (tmp_path / "dev" / f"nvidia{number}").touch()
    write_script(tmp_path / "environment/bin/python", f'exec {sys.executable} "$@"')
    environment = str(tmp_path / "environment")
    (script,) = map(Path, gpus.write_programs(str(tmp_path), 1, environment, environment))
    script_text = script.read_text().replace('"/dev/nvidia%s"', f'"{tmp_path}/dev/nvidia%s"')
    script.write_text(script_text.replace("PATIENCE = 20", "PATIENCE = 2"))
    (tmp_path / gpus.PROGRAMS).mkdir()
    host_variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "NVIDIA_SMI_STAND_IN": str(tmp_path / "gpus.json")}
    executors = []

    def executor(number: int) -> SimpleNamespace:
        """A process that starts the script, as the executor's JVM does, and lives on: it, and what the script said."""
        program = "import subprocess, sys, time; subprocess.call(sys.argv[1]); time.sleep(20)"
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        variables = {**host_variables, "TFOS_GPUS": str(number)}
        process = subprocess.Popen([sys.executable, "-c", program, script], env=variables, cwd=tmp_path, **options)
        executors.append(process)
        line = process.stdout.readline() if number else ""
        return SimpleNamespace(process=process, gpus=json.loads(line)["addresses"] if line else None)

    def asked(number: int) -> subprocess.CompletedProcess[str]:
        variables = {**host_variables, "TFOS_GPUS": str(number)}
        return subprocess.run([str(script)], env=variables, cwd=tmp_path, capture_output=True, text=True)

    def refused(number: int) -> str:
        """What the script says when it finds no GPU."""
        completed = asked(number)
        assert (completed.returncode, completed.stderr) == (1, "")
        return completed.stdout

    yield SimpleNamespace(tmp=tmp_path, executor=executor, asked=asked, refused=refused)
    for process in executors:
        process.kill()
        process.communicate()


def test_two_executors_of_one_host_never_share_a_gpu(container: SimpleNamespace) -> None:
    assert [container.executor(1).gpus, container.executor(1).gpus] == [["0"], ["1"]]
    message = container.refused(1)
    assert message.startswith("tfos-gpus: 1 GPU is required on ")
    assert "nvidia-smi lists 2 here" in message
    assert message.count("belongs to another executor") == 2


def test_an_executor_that_ended_leaves_its_gpus(container: SimpleNamespace) -> None:
    first = container.executor(2)
    assert first.gpus == ["0", "1"]
    assert (container.tmp / discovery.OWN).read_text() == "0 1"  # for TensorFlowOnSpark 1.4
    assert f"{gpus.PROGRAMS}/{nvidia_smi.OWN}" == discovery.OWN
    container.refused(1)
    first.process.kill()
    begin = time.monotonic()
    assert container.executor(2).gpus == ["0", "1"]
    assert time.monotonic() - begin < 10


def test_too_few_gpus_are_none_and_stay_free(container: SimpleNamespace) -> None:
    assert "3 GPUs are required" in container.refused(3)
    assert container.executor(2).gpus == ["0", "1"]


def test_a_gpu_that_the_container_may_not_open_is_not_its_own(container: SimpleNamespace) -> None:
    """YARN's isolation: the device is there and cannot be opened. A missing one has the same effect here, as root may open all."""
    (container.tmp / "dev/nvidia0").unlink()
    assert container.executor(1).gpus == ["1"]
    assert "nvidia0 cannot be opened (No such file or directory)" in container.refused(1)


def test_a_host_without_a_driver_says_so(container: SimpleNamespace) -> None:
    (container.tmp / "gpus.json").unlink()
    assert "nvidia-smi gives no GPUs: nvidia-smi ended with status" in container.refused(1)


def test_an_nvidia_smi_that_hangs_ends_at_the_limit(container: SimpleNamespace) -> None:
    script = container.tmp / "tfos-gpus"
    script.write_text(script.read_text().replace("LIMIT = 60", "LIMIT = 1"))
    (container.tmp / "nvidia-smi").write_text("#!/bin/sh\nexec sleep 30\n")
    begin = time.monotonic()
    assert container.asked(1).returncode == -signal.SIGALRM
    assert time.monotonic() - begin < 40


def test_what_the_script_says_is_a_hint(container: SimpleNamespace) -> None:
    error = "26/11/28 21:32:16 ERROR util.Utils: Process List(./tfos-gpus) exited with code 1: "  # of Spark 3.0.3
    sentences = hints.hints(error + container.refused(5))
    assert sentences[0].startswith("An executor found no GPU of its own: 5 GPUs are required on ")
    assert ".." not in sentences[0]


MINOR = "<minor_number>%s</minor_number>"
RESET = "<gpu_reset_status><reset_required>%s</reset_required></gpu_reset_status>"
ACTION = "<gpu_recovery_action>%s</gpu_recovery_action>"
DEPRECATED = RESET % "Requested functionality has been deprecated"  # as 575.51.02 prints it


@pytest.mark.parametrize(
    ("card", "device"),
    [
        (MINOR % 1, "/dev/nvidia1"),  # not every driver counts them in the order of the bus
        (MINOR % 0 + RESET % "No", "/dev/nvidia0"),
        (MINOR % 0 + DEPRECATED + ACTION % "None", "/dev/nvidia0"),
        (MINOR % 0 + ACTION % "Drain P2P", "/dev/nvidia0"),
        ("", "has no minor number (nothing)"),
        (MINOR % "N/A", "has no minor number (N/A)"),
        (MINOR % "[GPU is lost]", "has no minor number ([GPU is lost])"),
        (MINOR % 0 + RESET % "Yes", "must be reset first (Yes)"),
        (MINOR % 0 + RESET % "GPU is lost", "must be reset first (GPU is lost)"),
        (MINOR % 0 + RESET % "N/A" + ACTION % "Not Supported", "/dev/nvidia0"),
        (MINOR % "²", "has no minor number (²)"),
        (MINOR % 0 + DEPRECATED + ACTION % "Drain and Reset", "must be recovered first (Drain and Reset)"),
        (MINOR % 0 + ACTION % "[GPU requires reset]", "must be recovered first ([GPU requires reset])"),
    ],
)
def test_a_gpu_is_its_minor_numbers_device_unless_it_is_sick(card: str, device: str) -> None:
    other = f"<gpu>{MINOR % 7}</gpu>"
    first, second = discovery.devices(f"<log><gpu>{card}</gpu>{other}</log>")
    assert (first[0] or first[1], second) == (device, ("/dev/nvidia7", None))


def test_a_sick_gpu_is_named_and_the_others_keep_their_index(container: SimpleNamespace) -> None:
    smi = container.tmp / "nvidia-smi"
    smi.write_text(
        smi.read_text()
        .replace("<minor_number>%d</minor_number>", "<minor_number>%s</minor_number>")
        .replace('(gpu["uuid"], index)', '(gpu["uuid"], index or "N/A")')
    )
    assert container.executor(1).gpus == ["1"]
    assert "nvidia-smi lists 2 here; GPU 0 has no minor number (N/A); " in container.refused(1)


# Cluster mode: the script runs on a data node.

DRIVER_CONTAINER = "container_1_0001_01_000001"


def cluster_run(host: SimpleNamespace, text: str, *arguments: str) -> SimpleNamespace:
    """A job in cluster mode: `yarn logs` prints the text, the script has --out out.json."""
    (host.tmp / "logs.txt").write_text(text)
    executable(host.tmp / "hadoop/bin/yarn", f'#!/bin/sh\necho "$*" >> {host.tmp}/yarn.log\ncat {host.tmp}/logs.txt\n')
    host.yarn.application = app("FINISHED", -1)
    host.spark_submit(f'cat "$2" > {host.tmp}/settings; echo "$*" > {host.tmp}/command; sleep 1')
    return submit(host, "--deploy-mode", "cluster", *arguments, of_script=("--out=out.json",))


def test_the_drivers_output_and_the_result_come_from_the_collected_logs(host: SimpleNamespace) -> None:
    text = collected(
        ("container_1_0001_01_000002", "data1", "stdout", "of an executor\n"),
        (DRIVER_CONTAINER, "data2", "out.json", '{"name": "\u00e9"}\n'),
        (DRIVER_CONTAINER, "data2", "stdout", "RESULT 1\n"),
    )
    completed = cluster_run(host, text, "--result", "out.json")
    assert (completed.code, completed.output) == (0, "RESULT 1\n"), completed.error
    assert (host.tmp / "out.json").read_text() == '{"name": "\u00e9"}\n'
    assert "--out=<LOG_DIR>/out.json" in (host.tmp / "command").read_text()
    assert settings(host)["spark.submit.deployMode"] == "cluster"
    assert settings(host)["spark.driver.memoryOverhead"] == "2048m"


def test_the_logs_of_a_failed_job_are_those_of_all_its_hosts(host: SimpleNamespace) -> None:
    """Each NodeManager collects by itself: that of the application's master was first on the demo's three."""
    master = (DRIVER_CONTAINER, "data2", "stderr", OF_THE_DRIVER)
    for name, files in (
        ("first", (master,)),
        ("then", (master, ("container_1_0001_01_000002", "data1", "stderr", LATE))),
    ):
        (host.tmp / name).write_text(collected(*files), encoding="utf-8")
    yarn = f"#!/bin/sh\ncd {host.tmp}\ncat first\nmv then first 2>/dev/null\ntrue\n"
    executable(host.tmp / "hadoop/bin/yarn", yarn)
    host.yarn.application = app("FINISHED", -1)
    host.spark_submit("sleep 1; exit 1")
    completed = submit(host)
    assert "the first error: container_1_0001_01_000002 on data1" in completed.error, completed.error


def test_a_result_that_nobody_wrote_is_a_failure(host: SimpleNamespace) -> None:
    completed = cluster_run(host, collected((DRIVER_CONTAINER, "data2", "stdout", "")), "--result", "out.json")
    assert completed.code == outcome.FAILED
    assert "the result out.json (--result) was not written" in completed.error


def test_a_result_that_the_script_is_not_told_of_is_refused(host: SimpleNamespace) -> None:
    words = "--result other.json must be one of the script's own arguments"
    assert words in refusal(host, "--result", "other.json")


# As the demo printed them (Spark 3.5.8).
LATE = """26/11/24 00:48:58 ERROR Executor: Exception in task 0.0 in stage 1.0 (TID 2)
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/deeplearning/worker.py", line 1, in main
    process()
ValueError: the second

26/11/24 00:49:01 INFO Executor: Told to shut down
"""
EARLY = LATE.replace("00:48:58", "00:48:57").replace("the second", "the first")
TERMINATED = "26/11/24 00:48:50 ERROR CoarseGrainedExecutorBackend: RECEIVED SIGNAL TERM\n"
OF_THE_DRIVER = "26/11/24 00:48:57 ERROR TaskSetManager: Task 0 in stage 1.0 failed 1 times; aborting job\n"
# Of an executor that starts when the script has ended (Spark 2.4.8).
WITHOUT_DRIVER = """26/11/27 12:03:07 ERROR executor.CoarseGrainedExecutorBackend: Executor self-exiting due to : Unable to create executor due to Exception thrown in awaitResult:
org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.ThreadUtils$.awaitResult(ThreadUtils.scala:226)
Caused by: java.io.IOException: Failed to connect to edge1/172.30.69.211:41503
\tat java.lang.Thread.run(Thread.java:750)
Caused by: java.net.ConnectException: Connection refused
"""
# Two processes of Horovod 0.28.1: what they print, it writes into the executor's log.
HOROVOD_FAILED = """26/11/27 15:25:49 INFO Executor: Running task 1.0 in stage 0.0 (TID 1)
[1]<stderr>:2026-11-27 15:26:04.772374: I tensorflow/core/util/port.cc:113] oneDNN custom operations are on.
[1]<stderr>:Traceback (most recent call last):
[1]<stderr>:  File "bad.py", line 5, in <module>
[1]<stderr>:    open("/nonexistent/data")
[1]<stderr>:FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/data'
"""
HOROVOD_ENDED = """[0]<stderr>:2026-11-27 15:26:03.124622: I tensorflow/core/util/port.cc:113] oneDNN custom operations are on.
[0]<stderr>:Traceback (most recent call last):
[0]<stderr>:  File "bad.py", line 8, in <module>
[0]<stderr>:    hvd.allreduce(tf.constant([1.0])); time.sleep(0.1)
[0]<stderr>:tensorflow.python.framework.errors_impl.UnknownError: Horovod has been shut down. This was caused by an exception on one of the ranks
"""
IN_A_PROCESS = (
    "2026-11-24 00:48:56,001 INFO (MainThread-7) started\nTraceback (most recent call last):\n  File x\nOSError: full\n"
)


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        ([LATE, EARLY], "c3 on data1 at 00:48:57: ValueError: the first"),
        ([TERMINATED, LATE], "c3 on data1 at 00:48:58: ValueError: the second"),
        ([LATE, IN_A_PROCESS], "c3 on data1 at 00:48:56: OSError: full"),
        (["26/11/24 00:48:58 INFO Executor: well\n"], ""),
        ([WITHOUT_DRIVER], ""),
        (
            [HOROVOD_ENDED, HOROVOD_FAILED],
            "c3 on data1 at 15:26:04: FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/data'",
        ),
    ],
)
def test_the_first_error_is_that_of_the_executor_that_failed_first(logs: list[str], expected: str) -> None:
    files = [(DRIVER_CONTAINER, "data2", "stderr", OF_THE_DRIVER)]
    files += [(f"c{number}", "data1", "stderr", text) for number, text in enumerate(logs, 2)]
    assert first_error(collected(*files)) == expected


def test_the_scripts_own_error_is_in_the_drivers_output() -> None:
    traceback = "Traceback (most recent call last):\n  File x\nKeyError: 'mine'\n"
    exit_line = "26/11/24 00:48:58 ERROR ApplicationMaster: User application exited with status 1\n"
    text = collected((DRIVER_CONTAINER, "data2", "stderr", exit_line), (DRIVER_CONTAINER, "data2", "stdout", traceback))
    assert first_error(text) == f"{DRIVER_CONTAINER} on data2: KeyError: 'mine'"
