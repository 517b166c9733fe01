"""deeplearning grid: what is tried, whole jobs on a stand-in of Spark (real processes, local files), and what is printed.

Seen with pyspark 3.5.5 (TensorFlow 2.15, Python 3.11) and 3.0.3 (1.15, 2.7) on local-cluster: what the stand-in does, and ExecutorLostFailure.
"""

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from deeplearning_edge import PROGRAM
from tfos_submit import grid, grid_job
from waiting import until

from hadoop_dl.data import programs

# Of a Spark that starts nothing: its driver is its executor. KILLED is what the real one said when an executor's JVM got signal 9.
PYSPARK = """
import os, shutil
from types import SimpleNamespace as Some
KILLED = '''An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times, most recent failure: Lost task 0.0 in \
stage 0.0 (TID 0) (192.0.2.2 executor 0): ExecutorLostFailure (executor 0 exited caused by one of the running tasks) Reason: Command exited \
with code 137
Driver stacktrace:
'''
class Path(str):
    def getFileSystem(self, configuration):
        return FileSystem()
    def toString(self):
        return str(self)
class FileSystem:
    def makeQualified(self, path):
        return Path(path.replace("file:///", "file:/"))
    def setWriteChecksum(self, on):
        pass
    exists = staticmethod(os.path.exists)
    open = staticmethod(open)
    def create(self, path, overwrite):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")
    def delete(self, path, recursive):
        shutil.rmtree(path)
    mkdirs = staticmethod(os.makedirs)
    def copyFromLocalFile(self, source, target):
        shutil.copy(source.replace("file://", ""), target)
class TaskContext:
    @staticmethod
    def get():
        gpus = os.environ.get("TFOS_GPUS")
        resources = lambda: {"gpu": Some(addresses=gpus.split(","))} if gpus else {}
        return Some(resources=resources, attemptNumber=lambda: SparkContext.failures)
class SparkContext:
    failures, words = 0, "Job aborted due to stage failure: Task 0 in stage 0.0 failed 2 times, most recent failure: Lost task 0.1: %s"
    applicationId = "application_1700000000000_0001"
    _jsc = Some(hadoopConfiguration=lambda: None)
    _jvm = Some(org=Some(apache=Some(
        hadoop=Some(fs=Some(Path=Path)),
        commons=Some(io=Some(IOUtils=Some(toString=lambda stream, encoding: stream.read()))))))
    def parallelize(self, items, parts):
        def collect(function):
            if items[0]["parameters"].get("layers") == 9:
                raise Exception(KILLED)
            for SparkContext.failures in range(2):  # one at a time
                try:
                    return [function(item) for item in items]
                except Exception as error:
                    words = SparkContext.words % error
            raise Exception(words)
        return Some(map=lambda function: Some(collect=lambda: collect(function)))
    def stop(self):
        pass
"""
SUBMIT = """
echo "$*" > {tmp}/command
cp "$2" {tmp}/settings
while case $1 in */grid_job.py) false;; esac; do shift; done
PYTHONPATH={tmp}/spark/python TFOS_GPUS={gpus} exec {python} "$@"
"""
TRAIN = """
import argparse, os
p = argparse.ArgumentParser()
for name in ("--layers", "--rate", "--output", "--epochs"):
    p.add_argument(name)
a = p.parse_args()
print("RESULT accuracy 0.1")
with open(a.output + "/started", "a") as log:
    log.write("once more")
if a.layers == "3" or (a.layers == "2" and a.epochs == "7" and not a.output.endswith("retry")):
    raise ValueError("no more than two layers")
print('RESULT {"accuracy": %s, "gpus": %s, "epochs": %s}' % (float(a.rate) * int(a.layers), os.environ.get("CUDA_VISIBLE_DEVICES", -1), a.epochs))
"""


SPACE = {"layers": [1, 2, 3], "rate": [0.1, 0.5]}


@pytest.fixture
def ready(host: SimpleNamespace) -> SimpleNamespace:
    """A host with both commands, whose spark-submit is the stand-in, and a script."""
    (host.tmp / "spark/jars").mkdir(parents=True, exist_ok=True)
    (host.tmp / "spark/jars/spark-core_2.12-3.5.5.jar").touch()
    (host.tmp / "spark/python").mkdir()
    (host.tmp / "spark/python/pyspark.py").write_text(PYSPARK)
    host.command, host.output, host.gpus = host.program.with_name("deeplearning"), host.tmp / "grid", ""
    programs.main([str(PROGRAM), str(host.command)])
    host.script.write_text(TRAIN)
    return host


def command(ready: Any, asked: Any, *arguments: str, epochs: str = "2") -> list[str]:
    ready.spark_submit(SUBMIT.format(tmp=ready.tmp, python=sys.executable, gpus=ready.gpus))
    (ready.tmp / "params.json").write_text(json.dumps(asked))
    words = [ready.command, "grid", "--root", ready.root, "--poll", "0.1", "--params", ready.tmp / "params.json"]
    words += ["--output", f"file://{ready.output}", *arguments, ready.script, "--epochs", epochs]
    return [str(word) for word in words]


def run(ready: Any, asked: Any, *arguments: str, epochs: str = "2") -> SimpleNamespace:
    words = command(ready, asked, *arguments, epochs=epochs)
    completed = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    table = [line.split(None, 6) for line in completed.stdout.splitlines() if not re.match(r"\d+ (of|trials)", line)]
    return SimpleNamespace(code=completed.returncode, output=completed.stdout, error=completed.stderr, table=table)


def prepared(ready: Any, asked: Any, *arguments: str, spark: tuple[int, int] = (3, 5)) -> Any:
    options = grid.parser().parse_args(command(ready, asked, *arguments)[2:])
    grid.prepare(options, "/envs/e", spark, str(ready.tmp))
    return options


def trial(ready: Any, name: str) -> Any:
    return json.loads((ready.output / name / "trial.json").read_text())


def starts(ready: Any) -> list[int]:
    """How often each trial found its directory empty, and how often not."""
    return sorted(path.read_text().count("once") for path in ready.output.glob("*/started"))


def test_trials_are_compared_and_a_bad_one_ends_alone(ready):
    ready.gpus = "5"
    outcome = run(ready, SPACE, "--executors", "2")
    assert outcome.code == 1, outcome.error
    assert outcome.table[0] == ["ACCURACY", "EPOCHS", "GPUS", "LAYERS", "RATE", "SECONDS", "HOST  STATUS"]
    assert [row[:5] for row in outcome.table[1:5]] == [
        ["1", "2", "5", "2", "0.5"],
        ["0.5", "2", "5", "1", "0.5"],
        ["0.2", "2", "5", "2", "0.1"],
        ["0.1", "2", "5", "1", "0.1"],
    ]
    failure = "failed: ValueError: no more than two layers (exit status 1)"
    assert [row[-1].split(None, 1)[1] for row in outcome.table[5:]] == [failure] * 2
    words = "tfos-submit: 4 of 6 trials are done. To see them: deeplearning tensorboard file://"
    assert f"{words}{ready.output}" in outcome.error
    entry = trial(ready, "layers=2,rate=0.5")
    assert entry["parameters"] == {"layers": 2, "rate": 0.5}
    assert entry["metrics"] == {"accuracy": 1.0, "gpus": 5.0, "epochs": 2.0}
    assert entry["gpus"] == ["5"]
    assert (entry["status"], entry["environment"], entry["arguments"]) == ("done", "tf-0123456789ab", ["--epochs", "2"])
    assert entry["sha256"] == hashlib.sha256(TRAIN.encode()).hexdigest()
    (code,) = ready.output.glob("code-*/train.py")
    assert code.read_text() == TRAIN
    assert trial(ready, "layers=3,rate=0.5")["said"][-1] == "ValueError: no more than two layers"


def test_spark_takes_idle_executors_back_and_gives_no_more_than_there_are_trials(ready):
    assert run(ready, {"layers": [1], "rate": [1]}, "--executors", "8", "--conf", "spark.x=mine").code == 0
    lines = dict(line.split(" ", 1) for line in (ready.tmp / "settings").read_text().splitlines())
    assert (lines["spark.executor.instances"], lines["spark.app.name"]) == ("1", "grid of train.py")
    prefix = "spark.dynamicAllocation."
    names = ("enabled", "shuffleTracking.enabled", "maxExecutors")
    assert [lines[prefix + name] for name in names] == ["true", "true", "1"]
    assert lines["spark.x"] == "mine"


def test_an_earlier_spark_keeps_its_executors(ready):
    assert prepared(ready, {"layers": [1]}, spark=(2, 4)).conf == [("spark.yarn.max.executor.failures", "5")]


@pytest.mark.parametrize(
    ("spark", "names"), [((3, 1), "excludeOnFailure"), ((3, 0), "blacklist"), ((2, 2), "blacklist"), ((2, 1), "")]
)
def test_hosts_where_trials_fail_are_excluded_by_the_names_of_each_spark(ready, spark, names):
    settings = dict(prepared(ready, SPACE, "--executors", "2", spark=spark).conf)
    answer = {name: value for name, value in settings.items() if re.search("exclude|blacklist|maxFailures", name)}
    rows = {"enabled": "true", "task.maxTaskAttemptsPerNode": "1", "application.maxFailedExecutorsPerNode": "1"}
    expected = {f"spark.{names}.{name}": value for name, value in rows.items()} | {"spark.task.maxFailures": "2"}
    assert answer == (expected if names else {})


def test_a_trial_that_another_host_can_run_is_done(ready):
    """Spark counts the first failure against its host because the trial is done on another."""
    outcome = run(ready, {"layers": [2, 3], "rate": [0.5]}, "--executors", "1", epochs="7")
    entry = trial(ready, "layers=2,rate=0.5")
    assert (entry["status"], entry["output"]) == ("done", f"{ready.output}/layers=2,rate=0.5/retry"), outcome.error
    assert (trial(ready, "layers=3,rate=0.5")["status"], outcome.code) == ("failed", 1)


def test_the_same_command_runs_only_what_is_missing_or_failed(ready):
    run(ready, SPACE)
    (ready.output / "layers=1,rate=0.1/trial.json").write_text('{"status": "done", "metr')  # the driver was killed
    ready.script.write_text(TRAIN)
    outcome = run(ready, {**SPACE, "rate": [0.1, 0.5, 0.9]})
    assert "9 trials in" in outcome.output
    assert "3 of them done before" in outcome.output
    assert starts(ready) == [1] * 9, "a trial that is repeated begins with an empty directory"


def test_what_another_script_did_is_not_compared_but_its_failures_are_replaced(ready):
    assert run(ready, {"layers": [3], "rate": [1]}).code == 1
    ready.script.write_text(TRAIN.replace("more than two", "more"))
    assert "0 of them done before" in run(ready, {"layers": [3, 1], "rate": [1]}).output
    other_arguments = run(ready, {"layers": [1, 2], "rate": [1]}, epochs="3")
    ready.script.write_text(TRAIN)
    for outcome in (other_arguments, run(ready, {"layers": [1, 2], "rate": [1]})):
        assert (outcome.code, "layers=1,rate=1 was made by another train.py" in outcome.error) == (1, True)
    assert not (ready.output / "layers=2,rate=1").exists()


def test_a_lost_executor_is_one_row(ready):
    outcome = run(ready, {"layers": [9, 1], "rate": [1]})
    assert (outcome.code, outcome.table[-1][-1].split(None, 1)) == (1, ["-", "failed: Command exited with code 137"])
    assert trial(ready, "layers=1,rate=1")["status"] == "done"
    assert trial(ready, "layers=9,rate=1")["error"] == "Command exited with code 137"


def test_an_interrupted_job_keeps_what_is_done(ready):
    ready.script.write_text(TRAIN + "if a.layers == '2':\n    import time\n    time.sleep(60)\n")
    words = command(ready, {"layers": [1, 2], "rate": [1]}, "--executors", "1")
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        until((ready.output / "layers=2,rate=1/started").exists, 30)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=30)[1]
    assert (process.returncode, f"trials that ended are kept in file://{ready.output}" in error) == (130, True), error
    assert [trial(ready, f"layers={number},rate=1")["status"] for number in (1, 2)] == ["done", "running"]


@pytest.mark.parametrize(
    ("asked", "arguments", "code", "words"),
    [
        ({"layer": [1]}, [], 3, "train.py must have the option --layer,"),
        ({"layers": {"from": 1, "to": 3}}, [], 3, "--random 20"),
        ({"layers": list(range(40)), "rate": list(range(40))}, [], 3, "at most 1000 trials"),
        ({"layers": []}, [], 2, "layers has no list of different numbers and texts"),
        ({"layers": [1, 1]}, [], 2, "different"),
        ({"layers": [None]}, [], 2, "numbers and texts"),
        ({"layers": [True]}, [], 2, "numbers and texts"),
        ({"layers": 1}, [], 2, "layers has no list"),
        ({"layers": {"from": 0, "to": 3, "scale": "log"}}, [], 2, "above 0"),
        ({"layers": {"from": 3, "to": 3}}, [], 2, "below"),
        ({"layers": {"from": 1, "to": 3, "step": 1}}, [], 2, "range of layers"),
        ({"output": ["x"]}, [], 2, "'output' is no name"),
        ({"--layers": [1]}, [], 2, "'--layers' is no name"),
        ({}, [], 2, "no object with options"),
        ([1], [], 2, "no object with options"),
        (SPACE, ["--output", "grid"], 2, "all hosts must reach it"),
        (SPACE, ["--params", "missing.json"], 2, "missing.json must be JSON such as"),
    ],
)
def test_what_cannot_be_run_is_refused_before_submission(ready, capsys, asked, arguments, code, words):
    with pytest.raises((SystemExit, NotReady)) as error:
        prepared(ready, asked, *arguments)
    status = error.value.code if isinstance(error.value, SystemExit) else 3
    assert (status, words in f"{error.value} {capsys.readouterr().err}") == (code, True)


def test_what_is_for_one_run_is_refused(ready):
    outcome = run(ready, SPACE, "--local")
    assert (outcome.code, "--local and --result are for one run of a script" in outcome.error) == (2, True)
    assert not (ready.tmp / "command").exists()


def test_a_host_that_submits_nothing_says_so(ready, tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy2(ready.command, tmp_path / "bin")
    words = [tmp_path / "bin/deeplearning", "grid", "train.py"]
    completed = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (completed.returncode, "Log in on an edge node." in completed.stderr) == (3, True)


@pytest.mark.parametrize(
    ("text", "name", "taken"),
    [
        ('add_argument("--learning-rate")', "learning-rate", True),
        ('add_argument("--learning-rate"); a.learning_rate', "learning_rate", False),
        ('add_argument("--learning-rate-decay")', "learning-rate", False),
        ('flags.DEFINE_float("learning_rate", 0.1)', "learning_rate", True),
        ("def main(learning_rate):", "learning_rate", True),
        ("def main(my_learning_rate):", "learning_rate", False),
    ],
)
def test_an_option_that_no_code_names_is_noticed(text, name, taken):
    assert grid.takes(text, name) is taken


def test_random_trials_are_the_same_each_time_and_in_their_ranges():
    space = {"rate": {"from": 0.001, "to": 0.1, "scale": "log"}, "layers": {"from": 1, "to": 3}, "kind": ["a", "b"]}
    few, many = (list(grid.sets(space, number).values()) for number in (20, 200))
    assert few == many[:20]
    assert len(many) == 200
    assert all(0.001 <= values["rate"] <= 0.1 for values in many)
    assert 60 < sum(values["rate"] < 0.01 for values in many) < 140
    assert ({values["layers"] for values in many}, {values["kind"] for values in many}) == ({1, 2, 3}, {"a", "b"})


def test_random_trials_have_no_repeats():
    assert list(grid.sets({"layers": [1, 2]}, 50)) == ["layers=2", "layers=1"]


@pytest.mark.parametrize(
    ("value", "name"),
    [("relu", "kind=relu"), ("a/b:c", "kind=a_b_c-c8f3d945"), ("x" * 200, "kind=" + "x" * 95 + "-2239e428")],
)
def test_the_name_of_a_trial_is_one_of_hdfs(value, name):
    assert grid.name_of({"kind": value}) == name


RESULT = '{"accuracy": 0.5, "rows": 3, "hosts": ["a"], "fine": true, "mode": "spark", "loss": NaN}'


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        (RESULT, {"accuracy": 0.5, "rows": 3}),
        ("accuracy 0.5", {"accuracy": 0.5}),
        ("accuracy 0.5 loss 1e-3", {"accuracy": 0.5, "loss": 0.001}),
        ("accuracy nan", {}),
        ("0.5", {}),
        ("all is well", {}),
    ],
)
def test_numbers_of_a_result_are_metrics(text, metrics):
    assert grid_job.numbers(text) == metrics


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print('RESULT accuracy 1')", ""),
        ("print('accuracy 1')", "it printed no line such as RESULT accuracy 0.9"),
        ("print('RESULT accuracy 1'); raise SystemExit('no disk')", "no disk (exit status 1)"),
        ("import os; os.kill(os.getpid(), 9)", "it said nothing (exit status -9)"),
    ],
)
def test_how_a_trial_ended_is_told(code, error):
    answer = grid_job.run([sys.executable, "-u", "-c", code], None)
    assert (answer["error"], answer["status"]) == (error, "failed" if error else "done")


def test_the_table_has_the_best_first_and_failures_last():
    def one(number: int, status: str, **metrics: float) -> dict[str, Any]:
        defaults = {"error": "", "seconds": 1, "host": "h"}
        return {**defaults, "parameters": {"n": number}, "metrics": metrics, "status": status}

    trials = [one(1, "done", loss=0.2), one(2, "failed", loss=0.1), one(3, "done", loss=0.3), one(4, "done", other=1)]
    assert [row[2] for row in grid.table(trials, ["n"], "loss", True)] == ["N", 1, 3, 4, 2]
    assert [row[2] for row in grid.table(trials, ["n"], "loss", False)] == ["N", 3, 1, 4, 2]
