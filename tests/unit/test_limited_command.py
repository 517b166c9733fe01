"""Programs that roles start on hosts end, and are named where they do not."""

from pathlib import Path
from typing import Any

import pytest
from ansible_programs import tasks_in
from host_modules import run

ROLES = Path(__file__).resolve().parents[2] / "roles"
UNLIMITED = {f"{prefix}{name}" for prefix in ("", "ansible.builtin.") for name in ("command", "shell", "raw", "script")}


def test_a_program_that_does_not_end_is_ended_and_named():
    result = run("limited_command", argv=["sh", "-c", "echo begun; sleep 60"], timeout=1)
    assert (result["failed"], result["rc"], result["stdout"]) == (True, 124, "begun")
    assert result["msg"] == "sh -c echo begun; sleep 60 did not end within 1 s"
    assert result["stderr"] == result["msg"]  # what a task reads that decides itself


def test_it_answers_with_status_and_output():
    result = run("limited_command", argv=["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (result["failed"], result["rc"], result["stdout"], result["stderr"]) == (True, 3, "out", "err")
    assert run("limited_command", argv=["true"])["changed"]
    failure = run("limited_command", argv=["grubby-of-nobody"])
    assert failure["rc"] == 127
    assert "grubby-of-nobody cannot be run: No such file or directory" in failure["stderr"]


@pytest.mark.parametrize(("path", "runs"), [("there", False), ("missing", True)])
def test_it_runs_only_where_it_is_needed(tmp_path, path, runs):
    (tmp_path / "there").touch()
    arguments: dict[str, Any] = {"argv": ["touch", str(tmp_path / "ran")], "creates": str(tmp_path / path)}
    assert run("limited_command", _ansible_check_mode=True, **arguments)["changed"] is runs
    assert not (tmp_path / "ran").exists()
    assert run("limited_command", **arguments)["changed"] is runs
    assert (tmp_path / "ran").exists() is runs


def test_check_mode_skips_it(tmp_path):
    result = run("limited_command", argv=["touch", str(tmp_path / "ran")], _ansible_check_mode=True)
    assert (result["skipped"], result["changed"], result["rc"]) == (True, False, 0)
    assert list(tmp_path.iterdir()) == []


def test_no_task_starts_a_program_on_a_host_without_a_limit():
    files = sorted(path for kind in ("tasks", "handlers") for path in ROLES.glob(f"*/{kind}/*.yml"))
    assert len(files) > 100
    unlimited_tasks = [
        f"{path.relative_to(ROLES)}: {task.get('name')}"
        for path in files
        for task in tasks_in(path)
        if UNLIMITED & set(task) and task.get("delegate_to") != "localhost"
    ]
    assert unlimited_tasks == []
