"""deeplearning benchmark --resnet50: what is asked of tfos-submit (a stand-in), the arithmetic of a row, refusals, and what is kept. The job: tests/long."""

import json
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host.user_environment import NotReady
from deeplearning_command import resnet50
from deeplearning_edge import NEW, OLD, command, interrupted
from deeplearning_edge import run as run_command
from tfos_submit import options as of_jobs

# Ends as the file behaves says for its number of executors: a Python statement; else it writes what the workers would report.
SUBMIT = """#!{python}
import json, os, sys, time
given = sys.argv[1:]
with open({base!r} + "/submitted", "a") as log:
    log.write(json.dumps(given) + "\\n")
spec, path, workers = json.loads(given[-1]), given[-2], int(given[given.index("--executors") + 1])
print("26/11/26 10:00:00 INFO Client: Spark says much")
def say(text):
    sys.stderr.write("tfos-submit: " + text + "\\n")
    sys.stderr.flush()
say("%d executors" % workers)
sums, reported = float(workers), workers
exec(json.load(open({base!r} + "/behaves")).get(str(workers), ""))
assert open(given[-3]).read().endswith("main(*sys.argv[1:])\\n")
seconds = [("input", 0.1), ("compute", 1.0), ("all_reduce", 0.5), ("step", 2.0)]
times = dict((part, [one] * spec["rounds"]) for part, one in seconds)
found = {{"replicas": workers, "gpus": [], "sum_of_ones": sums, "gradient_bytes": 8, "seconds": times}}
json.dump([dict(found, host="data%d" % number) for number in range(reported)], open(path, "w"))
"""
FAILS = 'say("the first error: container_1 on data1: OOM."); say("the job failed (application_1_0001)."); sys.exit(1)'


@pytest.fixture
def ready(edge: SimpleNamespace) -> Iterator[SimpleNamespace]:
    """The edge node of the command's other tests, with TensorFlowOnSpark and a tfos-submit."""
    (site,) = edge.root.glob(f"envs/{NEW}.1/lib/python*/site-packages")
    (site / "tensorflowonspark-2.2.5.dist-info").mkdir(exist_ok=True)
    program = edge.base / "tfos-submit"
    program.write_text(SUBMIT.format(python=sys.executable, base=str(edge.base)))
    program.chmod(0o755)
    edge.submit, edge.log = program, edge.base / "submitted"
    edge.log.unlink(missing_ok=True)
    behave(edge)
    yield edge
    program.unlink(missing_ok=True)


def behave(ready: Any, **how: str) -> None:
    (ready.base / "behaves").write_text(json.dumps({name.strip("_"): text for name, text in how.items()}))


def run(ready: Any, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_command(ready, "benchmark", "--resnet50", "--rounds", "3", *arguments)


def report(step: list[float], **more: Any) -> dict[str, Any]:
    seconds = {"input": [0.1, 0.1, 0.1], "compute": [1.0, 3.0, 2.0], "all_reduce": [0.5, 0.5, 9.0], "step": step}
    defaults = {"host": "data1", "replicas": 2, "gpus": [], "sum_of_ones": 2.0, "gradient_bytes": 8}
    return {**defaults, "seconds": seconds, **more}


def test_each_number_of_workers_is_a_job_and_a_row(ready, tmp_path):
    output = tmp_path / "found.json"
    more_options = ["--gpus", "1", "--queue", "vision", "--conf", "spark.x=1", "--image-size", "64", "--batch", "4"]
    completed = run(ready, "--workers", "4,1,2", "--output", str(output), *more_options)
    assert completed.returncode == 0, completed.stderr
    rows = [line.split() for line in completed.stdout.splitlines()[:-1]]
    assert rows[1] == list(resnet50.TITLES)
    assert rows[2] == ["1", "1", "2.0", "1.00", "0.100", "1.000", "0.500", "0.400", "2.000", "0", "%"]
    assert [row[:4] for row in rows[3:]] == [["2", "2", "4.0", "1.00"], ["4", "4", "8.0", "1.00"]]
    measurement = json.loads(output.read_text())
    assert (measurement["environment"], measurement["networks"], measurement["gpus"]) == (NEW, [], [])
    measured = measurement["resnet50"]
    assert (measured["image_size"], measured["batch"], measured["rounds"]) == (64, 4, 3)
    assert [entry["workers"] for entry in measured["workers"]] == [1, 2, 4]
    assert "says nothing about GPUs" in completed.stdout.splitlines()[-1]
    assert "Spark says much" not in completed.stdout + completed.stderr
    for line, workers in zip(ready.log.read_text().splitlines(), (1, 2, 4), strict=True):
        options = of_jobs.arguments_parser().parse_args(json.loads(line))
        assert (options.executors, options.gpus, options.queue, options.memory) == (workers, 1, "vision", 6144)
        assert (options.conf, options.timeout, options.root) == ([("spark.x", "1")], 3600, str(ready.root))
        assert options.result == options.arguments[0]
        assert json.loads(options.arguments[1]) == {"workers": workers, "image_size": 64, "batch": 4, "rounds": 3}


def test_the_parts_and_the_remainder_are_the_step_and_the_slowest_worker_of_a_round_counts():
    row = resnet50.row(2, 4, [report([4.0, 5.0, 4.0]), report([3.0, 6.0, 4.0])], None, [])
    assert row["rounds"]["step"] == [4.0, 6.0, 4.0]
    seconds = row["seconds"]
    assert seconds == {"input": 0.1, "compute": 2.0, "all_reduce": 0.5, "step": 4.0, "remainder": pytest.approx(1.4)}
    assert row["spread"] == {"input": 0.0, "compute": 1.0, "all_reduce": 4.25, "step": 1.0}
    assert (row["images_per_second"], row["efficiency"]) == (2 * 4 / 4.0, None)
    assert resnet50.line(row).split()[-2:] == ["25", "%"]


def test_an_exchange_beside_the_computation_has_a_negative_remainder():
    row = resnet50.row(2, 4, [report([2.0] * 3)] * 2, None, [])
    assert row["seconds"]["remainder"] == pytest.approx(-0.6)
    assert " -0.600 " in resnet50.line(row)


def test_efficiency_is_by_the_images_of_one_worker():
    first_row = resnet50.row(1, 4, [report([1.0] * 3, replicas=1, sum_of_ones=1.0)], None, [])
    assert (first_row["images_per_second"], first_row["efficiency"]) == (4.0, 1.0)
    assert resnet50.row(2, 4, [report([1.6] * 3)] * 2, None, [first_row])["efficiency"] == pytest.approx(5.0 / 8.0)
    two_gpus = report([2.0] * 3, replicas=4, sum_of_ones=4.0, gpus=["V100", "V100"])
    assert resnet50.row(2, 4, [two_gpus] * 2, None, [])["images_per_second"] == 8.0
    failed_row = resnet50.row(1, 4, [], "no", [])
    assert resnet50.row(2, 4, [report([1.6] * 3)] * 2, None, [failed_row])["efficiency"] is None


@pytest.mark.parametrize(
    ("values", "share", "quantile"),
    [([3.0], 0.5, 3.0), ([3.0, 1.0, 2.0], 0.5, 2.0), ([4.0, 1.0, 2.0, 3.0], 0.5, 2.5), ([0.0, 1.0, 2.0], 0.25, 0.5)],
)
def test_quantiles(values, share, quantile):
    assert resnet50.quantile(values, share) == quantile


@pytest.mark.parametrize("reports", [[], [report([1.0] * 3)], [report([1.0] * 3, sum_of_ones=1.0)] * 2])
def test_fewer_workers_than_asked_are_no_result(reports):
    row = resnet50.row(2, 4, reports, None, [])
    assert (row["images_per_second"], "2 workers must report" in row["problem"]) == (None, True)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (FAILS, "the first error: container_1 on data1: OOM; the job failed (application_1_0001) (exit status 1)"),
        ('say("after 40 s YARN has given 1 of them."); sys.exit(4)', "after 40 s YARN has given 1 of them (exit"),
        ('say("require more than YARN has."); sys.exit(3)', "require more than YARN has (exit status 3)"),
        ("reported = 1", "2 workers must report"),
    ],
)
def test_a_number_that_fails_is_a_row_with_its_cause_and_the_others_are_measured(ready, tmp_path, how, words):
    behave(ready, _2=how)
    output = tmp_path / "found.json"
    completed = run(ready, "--workers", "1,2,4", "--output", str(output))
    assert (completed.returncode, words in completed.stdout) == (1, True), completed.stdout
    rows = json.loads(output.read_text())["resnet50"]["workers"]
    assert [(row["workers"], row["efficiency"]) for row in rows] == [(1, 1.0), (2, None), (4, 1.0)]


def test_what_was_measured_before_an_interruption_is_kept_and_the_job_is_ended(ready, tmp_path):
    start_marker, marker, output = (tmp_path / name for name in ("waits", "ended", "found.json"))
    wait = f"open({str(start_marker)!r}, 'w').close(); time.sleep(60)"
    behave(ready, _2=f"\ntry:\n    {wait}\nexcept KeyboardInterrupt:\n    open({str(marker)!r}, 'w'); sys.exit(130)")
    arguments = ["--resnet50", "--workers", "1,2", "--rounds", "2", "--output", str(output)]
    status, text = interrupted(command(ready, "benchmark", *arguments), start_marker.exists)
    assert (status, "interrupted, and the job was ended" in text) == (130, True), text
    assert marker.exists()
    assert [row["workers"] for row in json.loads(output.read_text())["resnet50"]["workers"]] == [1]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--workers", "0"], 2, "a whole number from 1 is required, but this is '0'"),
        (["--workers", "1,x"], 2, "but this is 'x'"),
        (["--image-size", "16"], 2, "from 32"),
        (["--rounds", "1"], 2, "from 2"),
        (["--executors", "3"], 2, "unrecognized arguments: --executors"),
        (["train.py"], 2, "unrecognized arguments: train.py"),
        (["--stack", "tf1.15"], 3, f"requires TensorFlow 2.4 to 2.15 and TensorFlowOnSpark, but {OLD} has TensorFlow 1.15.0"),
        (["--output", "/missing/found.json"], 3, "must be writable for --output"),
    ],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused_before_a_job(ready, arguments, code, words):
    completed = run(ready, *arguments)
    assert (completed.returncode, completed.stdout, words in completed.stderr) == (code, "", True), completed.stderr
    assert not ready.log.exists()


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ({"tensorflow": "2.3.4", "tensorflowonspark": "2.2.5"}, "has TensorFlow 2.3.4"),
        ({"tensorflow_cpu": "2.16.1", "tensorflowonspark": "2.2.5"}, "has TensorFlow 2.16.1"),
        ({"tensorflow_cpu": "2.15.1"}, "TensorFlowOnSpark none"),
        ({}, "TensorFlow none"),
        ({"tensorflow": "2.4.4", "tensorflowonspark": "2.2.5"}, None),
        ({"tensorflow_cpu": "2.15.1", "tensorflowonspark": "2.2.5"}, None),
    ],
)
def test_which_environments_fit(tmp_path, packages, words):
    for name, version in packages.items():
        (tmp_path / f"lib/python3.11/site-packages/{name}-{version}.dist-info").mkdir(parents=True)
    if words is None:
        resnet50.check(str(tmp_path))
        return
    with pytest.raises(NotReady, match="deeplearning list") as error:
        resnet50.check(str(tmp_path))
    assert words in str(error.value)


def test_a_wrong_option_of_tfos_submit_ends_all(ready):
    behave(ready, _1='say("a whole number is required"); sys.exit(2)')
    assert run(ready, "--workers", "1,2").returncode == 2
    assert len(ready.log.read_text().splitlines()) == 1


def test_a_host_that_submits_nothing_says_so(ready):
    ready.submit.unlink()
    completed = run(ready)
    assert (completed.returncode, "Log in on an edge node." in completed.stderr) == (3, True)
