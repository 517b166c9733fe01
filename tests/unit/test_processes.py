"""Programs on hosts, with the Pythons of hosts: whatever they do, their caller goes on."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.hadoop_dl_host import processes
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from waiting import until

IMPORT = f"{WITHOUT_ANSIBLE}from {processes.__package__} import processes as p\n"


@pytest.fixture(params=HOST_PYTHONS)
def python(request: pytest.FixtureRequest) -> str:
    return request.param


def printed(python: str, statements: str) -> list[str]:
    """What a program prints that has `processes` as p."""
    words = [python, "-c", IMPORT + statements, UTILITIES]
    process = subprocess.run(words, capture_output=True, text=True, timeout=50, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def ask(python: str, expression: str) -> tuple[Any, float]:
    """The value of an expression over `processes`, and the seconds that it took."""
    program = (
        f"import json, time; start = time.time(); value = {expression}; print(json.dumps([value, time.time() - start]))"
    )
    value, seconds = json.loads(printed(python, program)[-1])
    return value, seconds


def test_the_answer_has_status_output_and_cause(python):
    value, _ = ask(python, "p.run(['/bin/sh', '-c', 'echo out; echo said >&2; exit 3'], 30)")
    assert value == [3, "out", "said", False, "/bin/sh -c echo out; echo said >&2; exit 3 ended with status 3: said"]
    assert ask(python, "p.run(['/bin/pwd'], 30)")[0] == [0, "/", "", False, None]
    value, _ = ask(python, "p.run(['/no/such/program'], 30)")
    assert value == [127, "", "", False, "/no/such/program cannot be run: No such file or directory"]


def test_a_program_that_does_not_end_is_ended_with_its_children(python, tmp_path):
    pid = tmp_path / "pid"
    value, seconds = ask(python, f"p.run(['/bin/sh', '-c', 'echo begun; sleep 60 & echo $! > {pid}; wait'], 3)")
    assert value[:2] == [None, "begun"]
    assert value[3] is True
    assert value[4].endswith("did not end within 3 s")
    assert seconds < 20
    state = Path(f"/proc/{pid.read_text().strip()}/stat")
    # The kernel ends it when it is its turn; whoever adopted it may not have looked yet.
    until(lambda: not state.exists() or state.read_text().split()[2] == "Z", 10)


def test_a_child_that_keeps_the_pipe_open_holds_nobody(python):
    value, seconds = ask(python, "p.run(['/bin/sh', '-c', 'echo done; sleep 60 & exit 0'], 30)")
    assert value == [0, "done", "", False, None]
    assert seconds < 20


def test_a_child_in_a_session_of_its_own_holds_nobody(python):
    """As a program in the kernel's D state: the signal does not end what holds the pipe."""
    value, seconds = ask(python, "p.run(['/bin/sh', '-c', 'setsid sleep 40 & sleep 60'], 0.5)")
    assert value[0] is None
    assert seconds < 20


def test_a_program_is_read_without_a_thread(python):
    """A child that is forked while a thread ends may wait for a lock of the C library forever."""
    statement = "setattr(__import__('threading').Thread, 'start', None)"
    assert ask(python, f"{statement} or p.run(['/bin/echo', 'out'], 30)")[0][:2] == [0, "out"]


def test_an_endless_output_keeps_a_bounded_memory(python):
    value, seconds = ask(python, "len(p.run(['/bin/cat', '/dev/zero'], 1).output) <= p.LARGEST + p.CHUNK")
    assert value is True
    assert seconds < 20


def test_a_question_that_hangs_is_abandoned(python):
    """As statvfs on a dead NFS server: a child asks, and its standard output is not that of the one who waits."""
    statements = (
        "import time\n"
        "print(p.limited(lambda: {'a': 1}, 30) == {'a': 1})\n"
        "try:\n    p.limited(lambda: time.sleep(60), 0.5)\nexcept p.Late as late:\n    print(late)\n"
    )
    start = time.monotonic()
    assert printed(python, statements) == ["True", "no answer within 0.5 s"]
    assert time.monotonic() - start < 20


def test_a_failure_in_a_child_is_reported_to_the_parent():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        processes.limited(lambda: 1 // 0, 30)


def test_a_child_that_crashes_is_a_failure_with_its_signal(python):
    """As a library of a driver that does not fit its module."""
    statements = (
        "import os\n"
        "try:\n    p.limited(lambda: os.kill(os.getpid(), 11), 30)\nexcept RuntimeError as error:\n    print(error)\n"
    )
    assert printed(python, statements) == ["the process that asked was ended by signal 11"]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a program to another user")
def test_root_runs_the_programs_of_others_as_their_owner(tmp_path):
    program = tmp_path / "hadoop"
    program.write_text("#!/bin/sh\nid -u\n")
    program.chmod(0o755)
    assert processes.foreign([str(program)]) is None
    assert processes.unprivileged([str(program)]) is None
    os.chown(program, 65534, 65534)
    tmp_path.chmod(0o755)
    assert processes.foreign([str(program)]) == (str(program), 65534)
    assert processes.unprivileged([str(program)]) == 65534
    assert processes.run(["/usr/bin/id", "-u"], 30, user=65534).output == "65534"
    os.chown(program, 0, 0)
    program.chmod(0o757)
    assert processes.unprivileged([str(program)]) == processes.account("nobody")[1]
