"""examples/benchmark: what is compared with what, and what is printed if there is nothing to compare. The networks: tests/e2e; ResNet-50: tests/long."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples/benchmark"

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
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Python finds this TensorFlow."""
    packages = tmp_path_factory.mktemp("packages")
    client = packages / "tensorflow/python/client"
    client.mkdir(parents=True)
    for directory in (client, client.parent, client.parent.parent):
        (directory / "__init__.py").touch()
    (packages / "tensorflow/__init__.py").write_text(TENSORFLOW)
    (client / "device_lib.py").write_text(DEVICES)
    (packages / "numpy.py").write_text(NUMPY)
    return packages


def run(packages: Path, *networks: str, gpus: int = 1, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "benchmark.py"), "--seconds", "0.1", *networks],
        env={**os.environ, "PYTHONPATH": str(packages), "TF_GPUS": str(gpus), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    return [line.split() for line in done.stdout.splitlines()[3:]]


def test_the_gpu_is_compared_with_the_cpu_of_the_same_host(packages):
    completed = run(packages, "lstm", "conv1d")
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "Tesla P100-PCIE-16GB" in completed.stdout.splitlines()[0]
    assert [row[0] for row in rows(completed)] == ["lstm", "conv1d"]
    for row in rows(completed):
        # On the CPU a larger batch is no faster; the slow first ones do not count. On the GPU one twice as large is faster by less than a tenth.
        assert row[3:6] == ["8000.0", "(32,", "0%)"]
        assert row[6:9] == [f"{2048 / 0.009:.1f}", "(2048,", "0%)"]
        assert row[9:] == [f"{2048 / 0.009 / 8000:.1f}x"]


def test_a_batch_that_does_not_fit_the_memory_of_the_gpu_ends_the_search(packages):
    (row,) = rows(run(packages, "lstm", MEMORY="100"))
    assert row[7] == "(64,"


def test_without_a_gpu_nothing_is_compared_and_this_is_said(packages):
    completed = run(packages, "lstm", gpus=0)
    assert rows(completed) == [["lstm", "80", "words", "8000.0", "(32,", "0%)", "-", "-"]]
    assert "nothing is compared" in completed.stdout


def test_a_network_that_fails_is_named_with_its_device_after_what_tensorflow_said(packages):
    completed = run(packages, "conv1d", "lstm", TF_FAILS="LSTM gpu raise MemoryError('no room')")
    assert (completed.returncode, [row[0] for row in rows(completed)]) == (1, ["conv1d"])
    assert "no room" in completed.stderr
    assert "lstm did not run on the GPU (exit status 1)" in completed.stderr


def test_an_unknown_network_is_refused(packages):
    completed = run(packages, "lstm", "vgg")
    assert (completed.returncode, completed.stdout, "but found vgg" in completed.stderr) == (2, "", True)


@pytest.fixture(scope="module")
def resnet50() -> Any:
    spec = importlib.util.spec_from_file_location("resnet50_example", EXAMPLE / "resnet50.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(step: list[float], **more: Any) -> dict[str, Any]:
    seconds = {"input": [0.1, 0.1, 0.1], "compute": [1.0, 3.0, 2.0], "all_reduce": [0.5, 0.5, 9.0], "step": step}
    return {"host": "data1", "replicas": 2, "sum_of_ones": 2.0, "seconds": seconds, **more}


def test_the_parts_and_the_remainder_are_the_step_and_the_slowest_worker_of_a_round_counts(resnet50):
    reports = [report([4.0, 5.0, 4.0]), report([3.0, 6.0, 4.0], host="data2")]
    titles, row = (line.split() for line in resnet50.table(reports, 2, 4).splitlines())
    assert dict(zip(titles, row, strict=True)) == {
        **{"workers": "2", "hosts": "2", "images/s": f"{2 * 4 / 4.0:.1f}", "input": "0.100", "compute": "2.000"},
        **{"all-reduce": "0.500", "remainder": "1.400", "step": "4.000", "spread": "50%"},
    }


@pytest.mark.parametrize(
    ("reports", "words"),
    [
        ([report([1.0] * 3)], "but 1 reported"),
        ([report([1.0] * 3, replicas=1)] * 2, "but 2 reported"),
        ([report([1.0] * 3), report([1.0] * 3, sum_of_ones=1.0)], r"the sums are \[2.0, 1.0\]"),
        ([], "but 0 reported"),
    ],
)
def test_workers_that_did_not_train_together_are_no_result(resnet50, reports, words):
    with pytest.raises(SystemExit, match=words):
        resnet50.table(reports, 2, 4)
