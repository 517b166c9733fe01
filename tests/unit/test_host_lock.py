"""The lock that every changing module of a host takes, with real processes, on each Python that hosts have."""

import os
import stat
import subprocess
import sys
import time

import pytest
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock, HostLocked
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE

HOLD = """
import sys, time
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock
with HostLock("TensorFlow into demo-1", 5, sys.argv[2]) as lock:
    print("held")
    sys.stdout.flush()
    time.sleep(60)
"""
LEAVE_A_CHILD = """
import subprocess, sys
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock
with HostLock("a daemon", 5, sys.argv[2]) as lock:
    child = subprocess.Popen(["sleep", "30"], close_fds=False, preexec_fn=lock.inherit if sys.argv[3] == "inherit" else None)
    print(child.pid)
    sys.stdout.flush()
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
"""


def start(python: str, program: str, *arguments: str) -> subprocess.Popen[str]:
    command = [python, "-B", "-c", WITHOUT_ANSIBLE + program, UTILITIES, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture(params=HOST_PYTHONS)
def holder(request, tmp_path):
    process = start(request.param, HOLD, str(tmp_path))
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()


def test_a_second_run_waits_no_longer_than_it_is_told_and_names_the_holder(holder, tmp_path):
    start_time = time.monotonic()
    with pytest.raises(HostLocked) as error, HostLock("Spark", 1, str(tmp_path)):
        pass
    assert 0.9 < time.monotonic() - start_time < 3
    words = f"TensorFlow into demo-1 (process {holder.pid}) has held {tmp_path}/.lock for more than 1 s"
    assert words in str(error.value)


def test_a_clock_that_is_set_neither_ends_nor_lengthens_the_wait(holder, tmp_path, monkeypatch):
    times = iter([1e9, 5e9, 0.0] + [1e12] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(times))
    start_time = time.monotonic()
    with pytest.raises(HostLocked), HostLock("Spark", 1, str(tmp_path)):
        pass
    assert 0.9 < time.monotonic() - start_time < 3


def test_a_killed_holder_holds_nothing(holder, tmp_path):
    holder.kill()
    holder.wait()
    with HostLock("Spark", 1, str(tmp_path)):
        pass


def test_only_root_can_open_it_also_where_an_older_version_left_it_readable(tmp_path):
    (tmp_path / ".lock").touch(mode=0o644)
    with HostLock("Spark", 1, str(tmp_path)):
        assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_local_user_cannot_hold_it(tmp_path):
    tmp_path.chmod(0o755)
    with HostLock("Spark", 1, str(tmp_path)):
        pass
    program = f"import os; os.setuid(65534); os.open({str(tmp_path / '.lock')!r}, os.O_RDONLY)"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "PermissionError" in completed.stderr


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "other").write_text("mine")
    (tmp_path / ".lock").symlink_to("other")
    with pytest.raises(OSError, match="symbolic links"), HostLock("Spark", 1, str(tmp_path)):
        pass
    assert (tmp_path / "other").read_text() == "mine"


def test_everybody_can_enter_the_directory_that_it_makes(tmp_path):
    mask = os.umask(0o077)
    try:
        with HostLock("Spark", 1, str(tmp_path / "opt" / "deeplearning")):
            pass
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "opt" / "deeplearning").stat().st_mode) == 0o755


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize("way", ["inherit", "ordinary"])
def test_a_child_of_a_killed_run_holds_it_only_if_it_was_told_to(python, way, tmp_path):
    process = start(python, LEAVE_A_CHILD, str(tmp_path), way)
    child = int(process.stdout.readline())
    process.wait()
    try:
        if way == "inherit":
            with pytest.raises(HostLocked, match="a daemon"), HostLock("Spark", 0, str(tmp_path)):
                pass
        else:
            with HostLock("Spark", 0, str(tmp_path)):
                pass
    finally:
        os.kill(child, 9)
