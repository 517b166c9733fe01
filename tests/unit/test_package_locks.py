"""Who holds a lock of rpm or dnf: a real process with a real POSIX lock (flock does nothing there), or its number in a file."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import package_locks

HOLD = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / ".rpm.lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield path, process.pid
        process.kill()


def test_the_process_that_holds_it_is_named_with_its_command(held):
    path, pid = held
    assert package_locks.holder((str(path),), ()).startswith(f"process {pid} ({sys.executable} -c import fcntl")
    assert package_locks.holder((str(path),), ()).endswith(f" holds {path}")


@pytest.mark.parametrize(("state", "named"), [("lives", True), ("was killed", False)])
def test_the_process_of_dnfs_own_file_is_named_while_it_lives(held, tmp_path, state, named):
    path, pid = held
    file = tmp_path / "metadata_lock.pid"
    file.write_text(str(pid if state == "lives" else 2**22 + 1))
    sentence = package_locks.holder((), (str(tmp_path / "*_lock.pid"),))
    assert sentence.endswith(f" holds {file}") is named
    assert bool(sentence) is named


def test_another_file_and_a_missing_one_are_free(held, tmp_path):
    (tmp_path / "other").touch()
    assert package_locks.holder((str(tmp_path / "other"), str(tmp_path / "missing")), ()) == ""
