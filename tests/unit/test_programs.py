"""Programs that stay on hosts are one file: a launcher, and behind it an archive that Python runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import python_files
import yaml

from hadoop_dl.data import programs

ROLES = Path(__file__).resolve().parents[2] / "roles"
GPU_CHECK = ROLES / "gpu_check/files/gpu-check"


@pytest.fixture(scope="module")
def gpu_check(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("program") / "gpu-check"
    assert programs.main([str(GPU_CHECK), str(target)]) == 0
    return target


def run(*command: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_every_program_that_a_role_installs_is_one_that_the_plan_knows():
    """The plan's digests are of what programs.directories finds."""
    installed = {
        path.parents[1] / "files" / re.sub(r"^.*/files/", "", str(task["host_program"]["source"]))
        for path in sorted(ROLES.glob("*/tasks/*.yml"))
        for task in yaml.safe_load(path.read_text(encoding="utf-8")) or []
        if "host_program" in task
    }
    assert installed == {directory for role in ROLES.iterdir() for directory in programs.directories(role)}
    assert GPU_CHECK in installed


@pytest.mark.parametrize("launcher", ["", "sh"])
def test_it_finds_its_python_and_refuses_misuse(gpu_check, launcher):
    completed = run(*filter(None, [launcher]), str(gpu_check), "--nonsense")
    assert completed.returncode == 2
    assert "gpu-check does not know --nonsense." in completed.stderr


@pytest.mark.parametrize("how", ["by path", "by a relative name", "by another Python"])
def test_nothing_is_imported_from_where_the_caller_is(gpu_check, tmp_path, how):
    """Root may call it in a directory that somebody else writes to."""
    for name in ("json.py", "ansible.py", "gpu_check.py", "ctypes.py", "tensorflow.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong file was imported')\n", encoding="utf-8")
    command = {
        "by path": [str(gpu_check)],
        "by a relative name": ["sh", os.path.relpath(gpu_check, tmp_path)],
        "by another Python": [sys.executable, os.path.relpath(gpu_check, tmp_path)],
    }[how]
    environment = {**os.environ, "PYTHONPATH": "" if how == "by another Python" else str(tmp_path)}
    completed = run(*command, "--json", "xid", cwd=tmp_path, env=environment)
    assert completed.stderr == ""
    assert [result["name"] for result in json.loads(completed.stdout)] == ["xid"]


def test_the_product_is_asked_of_a_python_that_imports_nothing_from_there(gpu_check, tmp_path):
    """The environment's Python says where it runs, and what it was told."""
    from gpu_check.compute import tensorflow
    from gpu_check.host import Host

    python_files.write_script(tmp_path / "opt/deeplearning/current/bin/python", 'echo "$PWD $1 $2 $3"')
    host = Host(str(tmp_path))
    host.contained = lambda: True  # on a host root would ask as nobody, who may not enter pytest's directory
    assert tensorflow(host)[1].splitlines()[0] == "/ -E -s -c"
