"""Two runs on one host: what changes it waits for the other one, as processes of their own."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked
from host_modules import answer, run, start
from module_arguments import Arguments, placed_archive, placed_spark, receipt
from waiting import until


def locked_command(root: Path) -> Arguments:
    path = str(root / "installed")
    return {"purpose": "an installer", "argv": ["touch", path], "root": str(root / "deeplearning")}


def toolkit_files(root: Path) -> Arguments:
    (root / "cuda/bin").mkdir(parents=True)
    return {"path": str(root / "cuda"), "sha256": "ab" * 32, "state": "complete", "root": str(root / "deeplearning")}


MODULES: dict[str, tuple[Callable[[Path], Arguments], str]] = {
    "receipt": (receipt, "deeplearning/state/cuda.json"),
    "placed_tree": (placed_archive, "cuda/cudnn-8"),
    "locked_command": (locked_command, "installed"),
    "toolkit_files": (toolkit_files, "cuda/.deeplearning-runfile"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_that_changes_the_host_waits_for_its_turn(tmp_path, name):
    arguments, target = MODULES[name]
    with HostLock("TensorFlow into demo-1", 1, str(tmp_path / "deeplearning")):
        process = start(name, **arguments(tmp_path))
        time.sleep(2)
        assert process.poll() is None
        assert not (tmp_path / target).exists()
    assert answer(process)["changed"]
    assert (tmp_path / target).exists()


@pytest.mark.parametrize("arguments", [placed_archive, placed_spark])
def test_of_two_runs_that_unpack_one_archive_the_second_finds_it_done(tmp_path, arguments):
    inputs = arguments(tmp_path)
    processes = [start("placed_tree", **inputs) for _ in range(2)]
    answers = [answer(process) for process in processes]
    assert [entry["msg"] for entry in answers if entry.get("failed")] == []
    path = Path(inputs["path"])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_installer_holds_the_host_also_when_its_module_is_killed(tmp_path):
    """As after a reboot of the controller: the installer goes on, and a new run must not start a second one."""
    root = str(tmp_path / "deeplearning")
    script = f"echo $$ > {tmp_path}/pid; exec sleep 60"
    module = start("locked_command", purpose="the installer of CUDA 8.0", argv=["sh", "-c", script], root=root)
    pid = tmp_path / "pid"
    until(lambda: pid.exists() and pid.read_text().strip())
    module.kill()
    module.communicate()
    try:
        with pytest.raises(HostLocked, match=r"the installer of CUDA 8\.0"), HostLock("another run", 0, root):
            pass
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    with HostLock("another run", 5, root):
        pass


def test_an_installer_that_does_not_end_is_ended_and_named(tmp_path):
    result = run("locked_command", purpose="it", argv=["sleep", "60"], timeout=1, root=str(tmp_path))
    assert result["failed"]
    assert (result["rc"], result["cmd"]) == (124, ["sleep", "60"])
    assert "sleep 60 did not end within 1 s" in result["msg"]


def test_an_installer_answers_with_what_it_printed_and_where_it_ran(tmp_path):
    argv = ["sh", "-c", "pwd; echo why >&2; exit 3"]
    result = run("locked_command", purpose="it", argv=argv, directory=str(tmp_path), root=str(tmp_path))
    assert (result["failed"], result["rc"], result["stdout"], result["stderr"]) == (True, 3, str(tmp_path), "why")


def test_an_uninstaller_that_is_not_there_is_not_run(tmp_path):
    argv = ["touch", str(tmp_path / "ran")]
    assert not run("locked_command", purpose="it", argv=argv, removes="/nowhere", root=str(tmp_path))["changed"]
    assert not (tmp_path / "ran").exists()


def test_the_lock_goes_with_the_directory_that_has_nothing_else(tmp_path):
    root = tmp_path / "deeplearning"
    with HostLock("a run", 1, str(root)):
        assert run("prune_directories", paths=[str(root)])["removed"] == []  # who holds it still needs the directory
    assert run("prune_directories", paths=[str(root)], _ansible_check_mode=True)["removed"] == [str(root)]
    assert run("prune_directories", paths=[str(root)])["removed"] == [str(root)]
    assert not root.exists()


def test_who_waited_for_a_lock_that_was_removed_has_the_new_one(tmp_path):
    """A lock on a file without a name excludes nobody."""
    outcomes: list[bool] = []

    def wait() -> None:
        with HostLock("the second", 10, str(tmp_path)):
            completed = subprocess.run(["flock", "--nonblock", str(tmp_path / ".lock"), "true"], check=False)
            outcomes.append(completed.returncode != 0)

    with HostLock("the first", 1, str(tmp_path)) as lock:
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(1)
        lock.remove_if_alone()
    thread.join(10)
    assert outcomes == [True]
