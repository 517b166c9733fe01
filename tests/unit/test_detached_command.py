"""A program that goes on without its caller: module detached_command, as Ansible runs it."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from host_modules import run


def start(directory: Path, *argv: str, seconds: int = 30) -> dict[str, Any]:
    return run("detached_command", directory=str(directory), argv=list(argv), timeout=seconds)


def ended(directory: Path) -> dict[str, Any]:
    for _ in range(300):
        answer = run("detached_command", directory=str(directory), state="asked")
        if answer["command_state"] != "running":
            break
        time.sleep(0.1)
    return answer


@pytest.mark.parametrize("status", [0, 3])
def test_its_exit_status_and_the_end_of_its_output_are_recorded(tmp_path: Path, status: int) -> None:
    argv = ("sh", "-c", f"sleep 1; seq 20; echo wrong >&2; exit {status}")
    assert start(tmp_path, *argv)["command_state"] == "running"
    answer = ended(tmp_path)
    assert (answer["command_state"], answer["rc"]) == ("ended", status)
    assert answer["lines"] == [*(str(number) for number in range(12, 21)), "wrong"]


def test_it_is_started_once_by_whoever_lost_the_connection_and_asks_again(tmp_path: Path) -> None:
    argv = ("sh", "-c", f"echo begun >> {tmp_path}/seen; sleep 1")
    assert start(tmp_path, *argv)["changed"]
    assert not start(tmp_path, *argv)["changed"]
    ended(tmp_path)
    assert not start(tmp_path, *argv)["changed"]
    assert (tmp_path / "seen").read_text() == "begun\n"


def test_one_that_was_killed_with_its_watcher_has_no_status_and_is_lost(tmp_path: Path) -> None:
    start(tmp_path, "sh", "-c", "echo $PPID > watcher; sleep 30; exit 0".replace("watcher", f"{tmp_path}/watcher"))
    while not (tmp_path / "watcher").exists():
        time.sleep(0.1)
    os.kill(int((tmp_path / "watcher").read_text()), signal.SIGKILL)
    answer = ended(tmp_path)
    assert answer["command_state"] == "lost"
    assert "rc" not in answer


def test_one_that_does_not_end_is_ended_at_its_limit_without_a_status(tmp_path: Path) -> None:
    start(tmp_path, "sleep", "60", seconds=1)
    answer = ended(tmp_path)
    assert (answer["command_state"], answer["rc"]) == ("ended", None)
