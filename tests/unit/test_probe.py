"""The suite's probe, as it is packed for a host: it asks every question of gpu-check, and names what failed."""

import json
import runpy
import subprocess
from pathlib import Path

from gpu_check.cli import QUESTIONS

from hadoop_dl.hosts import host_script, verify

COMPUTING = {"cuda_computes", "tensorflow_lists_gpus", "tensorflow_convolves_on_gpu"}
COMPUTING |= {f"tensorflow_computes_on_{where}" for where in ("cpu", "gpu")}
INFRA = Path(__file__).resolve().parents[2] / "tests/infra"


def test_every_question_of_gpu_check_is_a_test_of_the_suite(request):
    for marker in ("part", "stack_has"):
        request.config.addinivalue_line("markers", marker)  # as the suite's own conftest does
    tests = {name for name in runpy.run_path(str(INFRA / "test_gpus.py")) if name.startswith("test_")}
    tests -= {"test_nvidia_smi_lists_every_gpu", "test_a_host_without_gpus_is_asked_for_none"}
    suite_names = {name for name, _ in QUESTIONS if f"test_gpu_{name}" in tests}
    assert {name for name, _ in QUESTIONS} - suite_names == COMPUTING
    assert len(tests) == len(QUESTIONS), "those that compute have names of their own"


def test_the_packed_probe_asks_every_question_and_a_failure_has_its_sentence(tmp_path):
    """What it prints about this machine, which promises a GPU that it does not have."""
    script = verify.probe_script({"environment": str(tmp_path), "gpu_count": 1})
    completed = subprocess.run(["sh", "-c", host_script.command()], input=script, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    results = json.loads(completed.stdout)["gpu"]["results"]
    assert set(results) == {name for name, _ in QUESTIONS}
    assert results["driver_runs"]["outcome"] == "FAIL"
    assert "nvidia-smi" in results["driver_runs"]["message"]


def test_it_fits_into_the_argument_of_one_command():
    script = verify.probe_script({"environment": "/opt/deeplearning/current", "gpu_count": 1})
    assert len(host_script.one_command(script)) < 120 * 1024  # of 128 KiB; sudo and its shell need some
