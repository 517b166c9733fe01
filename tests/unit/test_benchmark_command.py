"""deeplearning benchmark: what is compared with what, and what is said if there is nothing to compare. The networks themselves: tests/e2e."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from deeplearning_command import benchmark
from deeplearning_edge import NEW, command, interrupted
from deeplearning_edge import run as run_command

from hadoop_dl.cli import cdsw_project

# A TensorFlow whose networks are the names of their layers. 32 samples take 4 ms on the CPU. A GPU takes 1 ms for
# any batch and 1 ms more for each 256 samples. The first batch of a size is slow. TF_FAILS: a layer, a device, what happens.
TENSORFLOW = """
import os, time
clock = [0.0]
time.time = lambda: clock[-1]
used, device = [], "cpu" if os.environ.get("CUDA_VISIBLE_DEVICES") == "" else "gpu"
class errors(object):
    class ResourceExhaustedError(Exception):
        pass
class Anything(object):
    def __getattr__(self, name):
        used.append(name)
        return self
    def __call__(self, *arguments, **options):
        return self
    def train_on_batch(self, given, wanted):
        layer, on, happens = os.environ.get("TF_FAILS", "none none 0").split(" ", 2)
        if layer in used and on == device:
            exec(happens)
        if device == "gpu" and given > int(os.environ.get("MEMORY", 9999)):
            raise errors.ResourceExhaustedError("OOM")
        seconds = given / 32 * 0.004 if device == "cpu" else 0.001 + given / 256 * 0.001
        clock.append(clock[-1] + seconds + 0.05 * (given not in used))
        used.append(given)
keras = Anything()
"""
DEVICES = """
import os
def list_local_devices():
    class Device(object):
        device_type, physical_device_desc = "GPU", "device: 0, name: Tesla P100-PCIE-16GB, pci bus id: 0000:3b:00.0"
    return [Device] * int(os.environ["TF_GPUS"])
"""
NUMPY = """
class Array(int):
    def astype(self, kind):
        return self
class random(object):
    rand = staticmethod(lambda *shape: Array(shape[0]))
    randint = staticmethod(lambda least, most, shape: Array(shape[0]))
"""


@pytest.fixture(scope="module")
def trained(edge: SimpleNamespace) -> SimpleNamespace:
    """The edge node of the command's other tests, with this TensorFlow."""
    (packages,) = edge.root.glob(f"envs/{NEW}.1/lib/python*/site-packages")
    client = packages / "tensorflow/python/client"
    client.mkdir()
    for directory in (client, client.parent, client.parent.parent):
        (directory / "__init__.py").touch()
    (packages / "tensorflow/__init__.py").write_text(TENSORFLOW)
    (client / "device_lib.py").write_text(DEVICES)
    (packages / "numpy.py").write_text(NUMPY)
    edge.devices = client / "device_lib.py"
    return edge


def run(edge: Any, *arguments: str, gpus: int = 1, fails: str = "") -> subprocess.CompletedProcess[str]:
    variables = {"TF_FAILS": fails} if fails else {}
    return run_command(edge, "benchmark", "--seconds", "0.1", *arguments, TF_GPUS=str(gpus), **variables)


def rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split() for line in done.stdout.splitlines()[2:]]


def test_the_gpu_is_compared_with_the_cpu_of_the_same_host(trained, tmp_path):
    completed = run(trained, "--networks", "lstm,conv1d", "--output", str(tmp_path / "found.json"))
    assert completed.returncode == 0, completed.stderr
    assert "Tesla P100-PCIE-16GB" in completed.stdout.splitlines()[0]
    report = json.loads((tmp_path / "found.json").read_text())
    assert (report["environment"], report["seconds"]) == (NEW, 0.1)
    assert (
        [entry["network"] for entry in report["networks"]] == [row[0] for row in rows(completed)] == ["lstm", "conv1d"]
    )
    for network, row in zip(report["networks"], rows(completed), strict=True):
        assert network["factor"] == network["gpu"] / network["cpu"] > 1
        assert network["cpu"] == pytest.approx(32 / 0.004), (
            "samples of a batch by its time, without the slow first ones"
        )
        measured = network["measured"]
        assert measured["cpu"]["batch"] == 32, "a larger one is no faster"
        assert measured["gpu"]["batch"] == 2048, "one twice as large is faster by less than a tenth"
        assert measured["cpu"]["spread"] == pytest.approx(0)
        assert row[3] == f"{network['cpu']:.1f}"
        assert row[4:6] == ["(32,", f"{100 * measured['cpu']['spread']:.0f}%)"]
        assert row[6:8] == [f"{network['gpu']:.1f}", f"({measured['gpu']['batch']},"]
        assert row[9:] == [f"{network['factor']:.1f}x", "#" * round(network["factor"] / 2)]
    assert completed.stderr == "", "nothing is compared with figures of others"


def test_a_batch_that_does_not_fit_the_memory_of_the_gpu_ends_the_search(trained, tmp_path):
    arguments = ("--networks", "lstm", "--output", str(tmp_path / "found.json"))
    completed = run_command(trained, "benchmark", "--seconds", "0.1", *arguments, TF_GPUS="1", MEMORY="100")
    assert completed.returncode == 0, completed.stderr
    (network,) = json.loads((tmp_path / "found.json").read_text())["networks"]
    assert network["measured"]["gpu"]["batch"] == 64


@pytest.mark.parametrize("gpus", [1, 0])
def test_a_session_of_cdsw_trains_the_same_networks(trained, gpus, tmp_path):
    for source in (cdsw_project.EXAMPLES / "cdsw/benchmark.py", cdsw_project.NETWORKS):
        shutil.copy(source, tmp_path)
    packages = trained.devices.parents[3]
    variables = {**os.environ, "PYTHONPATH": str(packages), "TF_GPUS": str(gpus)}

    def measured(network: str, **more: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, str(tmp_path / "benchmark.py"), "--seconds", "0.1", network]
        return subprocess.run(words, env={**variables, **more}, capture_output=True, text=True, check=False)

    completed = measured("lstm")
    (row,) = rows(completed)
    assert row[:3] == ["lstm", "80", "words"]
    assert float(row[3]) == pytest.approx(32 / 0.004)
    assert (row[4:] == ["-", "-", "32"]) is (gpus == 0)
    if gpus:
        assert "Tesla P100-PCIE-16GB" in completed.stdout.splitlines()[0]
        assert float(row[4]) / float(row[3]) == pytest.approx(float(row[5][:-1]), rel=0.1)
        assert float(row[5][:-1]) > 1
    usage_error = measured("vgg")
    assert (usage_error.returncode, "but found vgg" in usage_error.stderr) == (2, True)
    failure = measured("lstm", TF_FAILS="LSTM cpu raise MemoryError('no room')")
    assert (failure.returncode, "no room" in failure.stderr) == (1, True)
    assert "lstm did not run on the CPU (exit status 1)" in failure.stderr


def test_without_a_gpu_nothing_is_compared_and_this_is_said(trained):
    completed = run(trained, "--networks", "lstm", gpus=0)
    (row,) = rows(completed)
    assert (completed.returncode, row[:3], row[6:]) == (0, ["lstm", "80", "words"], ["-", "-"])
    assert "nothing was compared" in completed.stderr


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        ("raise MemoryError('OOM when allocating')", "GPU: MemoryError: OOM when allocating (exit status 1)"),
        ("os.kill(os.getpid(), 9)", "GPU: it said nothing (exit status -9)"),
    ],
)
def test_a_network_that_fails_is_named_with_its_cause_and_the_next_one_runs(trained, tmp_path, happens, words):
    output = tmp_path / "found.json"
    completed = run(trained, "--networks", "lstm,conv1d", "--output", str(output), fails=f"LSTM gpu {happens}")
    assert completed.returncode == 1
    assert words in completed.stdout
    first, second = json.loads(output.read_text())["networks"]
    assert (first["factor"], first["cpu"] > 0, second["factor"] > 2) == (None, True, True)


def test_a_training_that_hangs_is_ended_at_its_limit(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("TF_FAILS", "LSTM cpu time.sleep(60)")
    environment = str(trained.root / "envs" / f"{NEW}.1")
    trainer = benchmark.Trainer(environment, f"{environment}/bin/python", str(tmp_path), 3)
    trainer.program = str(trained.program)
    assert trainer.ask(["lstm", 0.1], hidden=True) == (None, "it did not end within 3 s")
    assert trainer.ask(["conv1d", 0.1], hidden=True)[1] is None


def test_a_tensorflow_that_does_not_import_is_no_measurement(trained):
    text = trained.devices.read_text()
    trained.devices.write_text("raise ImportError('libcuda.so.1: cannot open shared object file')\n")
    try:
        completed = run(trained)
    finally:
        trained.devices.write_text(text)
    assert (completed.returncode, completed.stdout) == (3, "")
    assert "libcuda.so.1: cannot open shared object file" in completed.stderr


def test_what_was_measured_before_an_interruption_is_kept(trained, tmp_path):
    output, mark = tmp_path / "found.json", tmp_path / "reached"
    wait = f"open({str(mark)!r}, 'w').close(); import time; time.sleep(60)"
    arguments = ["--seconds", "0.1", "--networks", "lstm,conv1d", "--output", str(output)]
    words = command(trained, "benchmark", *arguments)
    status, errors = interrupted(words, mark.exists, TF_GPUS="1", TF_FAILS=f"Conv1D cpu {wait}")
    assert (status, "interrupted" in errors) == (130, True)
    assert [network["network"] for network in json.loads(output.read_text())["networks"]] == ["lstm"]


@pytest.mark.parametrize(
    ("option", "value", "code", "words"),
    [
        ("--networks", "lstm,vgg", 2, "this is 'vgg'"),
        ("--networks", ",", 2, "resnet110, conv1d, lstm"),
        ("--seconds", "0", 2, "up to 3600 are required"),
        ("--seconds", "nan", 2, "up to 3600 are required"),
        ("--output", "/missing/found.json", 3, "/missing/found.json must be writable for --output"),
    ],
)
def test_a_wrong_option_is_refused_before_anything_is_measured(trained, option, value, code, words):
    completed = run(trained, option, value)
    assert (completed.returncode, completed.stdout, words in completed.stderr) == (code, "", True)


def test_the_bars_are_comparable_between_hosts():
    network = {"network": "lstm", "cpu": 1.0, "gpu": 61.0, "factor": 61.0, "problem": None}
    network["measured"] = dict.fromkeys(("cpu", "gpu"), {"batch": 32, "spread": 0.1})
    assert benchmark.line(network).endswith(" " + "#" * 30)
    assert benchmark.line(dict(network, factor=17.0)).endswith(" " + "#" * 8)
