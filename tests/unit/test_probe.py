"""The suite's probe, as it is packed for a host: it asks every question of gpu-check, and names what failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpu_check.cli import QUESTIONS

from hadoop_dl.hosts import host_script, verify

COMPUTING = {"cuda_computes", "tensorflow_lists_gpus", "tensorflow_convolves_on_gpu"}
COMPUTING |= {f"tensorflow_computes_on_{where}" for where in ("cpu", "gpu")}
INFRA = Path(__file__).resolve().parents[2] / "tests/infra"


def test_every_question_of_gpu_check_is_a_test_of_the_suite(tmp_path: Path) -> None:
    expectations = tmp_path / "expectations.json"
    expectations.write_text(json.dumps({"local": {"gpu_count": 1}}), encoding="utf-8")
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", str(INFRA / "test_gpus.py")],
        cwd=INFRA.parents[1],
        env={**os.environ, "VERIFY_EXPECTATIONS": str(expectations)},
        capture_output=True,
        text=True,
        check=False,
    )
    tests = {line.rpartition("::")[2].partition("[")[0] for line in completed.stdout.splitlines() if "::" in line}
    tests -= {"test_nvidia_smi_lists_every_gpu", "test_a_host_without_gpus_is_asked_for_none"}
    suite_names = {name for name, _ in QUESTIONS if f"test_gpu_{name}" in tests}
    assert {name for name, _ in QUESTIONS} - suite_names == COMPUTING, completed.stdout + completed.stderr
    assert len(tests) == len(QUESTIONS), "those that compute have names of their own"


@pytest.fixture(scope="module")
def answer(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the packed script prints about this machine, which promises a GPU it does not have."""
    environment = tmp_path_factory.mktemp("environment")
    script = verify.probe_script({"environment": str(environment), "gpu_count": 1})
    completed = subprocess.run(["sh", "-c", host_script.command()], input=script, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def test_the_packed_probe_asks_every_question(answer: dict[str, dict[str, dict[str, object]]]) -> None:
    assert set(answer["gpu"]["results"]) == {name for name, _ in QUESTIONS}


def test_a_question_that_fails_has_its_sentence(answer: dict[str, dict[str, dict[str, dict[str, str]]]]) -> None:
    result = answer["gpu"]["results"]["driver_runs"]
    assert result["outcome"] == "FAIL"
    assert "nvidia-smi" in result["message"]


def test_it_fits_into_the_argument_of_one_command() -> None:
    script = verify.probe_script({"environment": "/opt/deeplearning/current", "gpu_count": 1})
    assert len(host_script.one_command(script)) < 100 * 1024
