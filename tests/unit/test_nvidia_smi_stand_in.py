"""The stand-in nvidia-smi of the demo and the fixture packages answers, and refuses, as the real one does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from nvidia_smi import BRANCHES, PROGRAM, written


def smi(directory: Path, *arguments: str, **state: object) -> subprocess.CompletedProcess[str]:
    return run(written(directory, **state), *arguments)


def run(state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NVIDIA_SMI_STAND_IN": str(state)}
    return subprocess.run([sys.executable, str(PROGRAM), *arguments], env=environment, capture_output=True, text=True)


def test_it_answers_queries(tmp_path):
    completed = smi(tmp_path, "--query-gpu=index,memory.total", "--format=csv,noheader,nounits", "--id=1")
    assert completed.stdout == "1, 16280\n"
    assert smi(tmp_path, "--query-compute-apps=gpu_uuid", "--format=csv,noheader").stdout == ""


def test_it_titles_columns_with_their_units(tmp_path):
    completed = smi(tmp_path, "--query-gpu=name,memory.total", "--format=csv", "-i", "0")
    assert completed.stdout.splitlines() == ["name, memory.total [MiB]", "Tesla P100-PCIE-16GB, 16280 MiB"]


def test_without_gpus_it_fails_as_the_real_one(tmp_path):
    completed = smi(tmp_path, "-L", gpus=[])
    assert (completed.returncode, completed.stdout) == (6, "No devices were found\n")


def test_without_a_driver_it_fails_as_the_real_one(tmp_path):
    completed = run(tmp_path / "none", "-L")
    assert completed.returncode == 9
    assert "couldn't communicate with the NVIDIA driver" in completed.stdout


# From captures of real help texts; their sources are in the stand-in.
@pytest.mark.parametrize(
    ("field", "first"),
    [
        ("retired_pages.pending", 418),
        ("mig.mode.current", 470),
        ("compute_cap", 535),
        ("remapped_rows.failure", 580),
        ("remapped_rows.pending", 580),
        ("gpu_recovery_action", 580),
        ("fabric.state", 535),
        ("clocks_event_reasons.active", 535),
        ("fabric.health.summary", 580),
        ("nonsense", 1000),
    ],
)
@pytest.mark.parametrize("branch", BRANCHES)
def test_each_branch_refuses_the_fields_of_later_ones(tmp_path, branch, field, first):
    completed = smi(tmp_path, f"--query-gpu=index,{field}", "--format=csv,noheader", driver=BRANCHES[branch])
    if branch >= first:
        assert completed.returncode == 0
    else:
        assert (completed.returncode, completed.stdout) == (2, f'Field "{field}" is not a valid field to query.\n\n')


GOES_AGAIN = "--query-gpu=reset_status.reset_required"
REMAPPED = "--query-remapped-rows=gpu_bus_id,remapped_rows.pending"


@pytest.mark.parametrize(
    ("query", "branch", "status"),
    [
        *((GOES_AGAIN, branch, status) for branch, status in ((470, 2), (535, 0), (580, 2))),
        *((REMAPPED, branch, status) for branch, status in ((418, 2), (470, 0), (580, 0))),
    ],
)
def test_a_field_may_go_again_and_remapped_rows_have_a_switch_of_their_own_from_ampere_on(
    tmp_path, query, branch, status
):
    completed = smi(tmp_path, query, "--format=csv,noheader", driver=BRANCHES[branch])
    assert completed.returncode == status, completed.stdout
