"""What is piped into hosts: packed out of modules, run by root, with sudo and with su."""

import json
import os
import re
import resource
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import ansible_programs
import pytest

from hadoop_dl.hosts import host_script, memory
from hadoop_dl.hosts.actions import ScriptAction

HAS_PYTHON = any(Path(place).exists() for place in host_script.INTERPRETERS)
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not HAS_PYTHON or not Path("/bin/su").exists(),
    reason="su without a password needs root, and a host's Python in its usual place",
)


def ansible_as_root(action: str, arguments: str) -> dict[str, Any]:
    """The result of one task on this machine, as root through su."""
    become = ("-b", "--become-method", "su", "-e", "ansible_connection=local")
    completed = ansible_programs.run(
        *("ansible", "localhost", "-i", "localhost,", "-m", action, "-a", arguments, *become),
        ANSIBLE_LOAD_CALLBACK_PLUGINS="1",
        ANSIBLE_STDOUT_CALLBACK="ansible.builtin.json",
        PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    output: dict[str, Any] = json.loads(re.sub(r"^[^{]*", "", completed.stdout))
    return output["plays"][0]["tasks"][0]["hosts"]["localhost"]


@needs_root
def test_the_reader_works_through_su():
    """su reads its password where a piped script would come: the script goes through a file, as Ansible's modules do."""
    result = ansible_as_root("host_facts", "")
    assert result["facts"]["architecture"] == os.uname().machine


@needs_root
def test_the_suite_is_answered_through_ansibles_own_become(tmp_path):
    arguments = json.dumps({"expectation": {"environment": "/nowhere"}, "directory": str(tmp_path)})
    result = ansible_as_root("suite_facts", arguments)
    assert result["file"] == str(tmp_path / "answers/localhost.json")
    assert json.loads(Path(result["file"]).read_text())["exists"] is False


def test_one_command_carries_the_script(tmp_path):
    command = host_script.one_command('import json, sys, os\nprint(json.dumps({"here": os.getcwd()}))\n')
    completed = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert host_script.parse(0, completed.stdout, completed.stderr) == {"here": "/"}


@pytest.mark.parametrize(
    ("status", "output", "error", "words"),
    [
        (127, "", "no-python\n", "Python 2.7 or 3 is required"),
        (255, "", "Connection closed by 192.0.2.1", "Connection closed"),
        (1, "", "sudo: sorry, you must have a tty to run sudo", "exit status 1, 'sudo: sorry, you must have a tty"),
        (0, '{"late": "no answer within 120 s"}', "", "no answer within 120 s"),
        (0, '{"a":' * 100_000 + "1" + "}" * 100_000, "", "it answered JSON that is nested too deeply"),
        (0, "x" * (9 << 20), "", "it answered 9 MB, at most 8 MB are read"),
    ],
)
def test_a_host_that_does_not_answer_is_described(status, output, error, words):
    with pytest.raises(host_script.NoAnswer, match=re.escape(words)):
        host_script.parse(status, output, error)


@pytest.mark.parametrize("status", [1, 255])
def test_what_a_host_said_last_is_one_line_of_limited_length(status):
    with pytest.raises(host_script.NoAnswer) as error:
        host_script.parse(status, "", "first\n" + "\x1b[2Jx" * 1_000_000)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400


def test_a_number_of_any_length_is_read():
    value = host_script.parse(0, '{"small": 253402300799, "long": ' + "9" * 5000 + ', "infinite": 1e400}', "")
    assert value == {"small": 253402300799, "long": float("inf"), "infinite": float("inf")}


def test_an_answer_that_takes_too_much_memory_ends_and_the_limit_with_it():
    before = resource.getrlimit(resource.RLIMIT_AS)
    with pytest.raises(MemoryError), memory.bounded(64 << 20):
        bytearray(1 << 30)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with memory.bounded(0):
        assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_an_answer_that_takes_too_much_memory_is_described(monkeypatch):
    class Action(ScriptAction):  # type: ignore[misc]
        def __init__(self) -> None:
            self._connection = types.SimpleNamespace(transport="ssh")

        def run(self, *_: object) -> None:
            raise NotImplementedError

        def _is_pipelining_enabled(self, *_: object) -> bool:
            return True

        def _low_level_execute_command(self, *_: object, **__: object) -> dict[str, Any]:
            return {"rc": 0, "stdout": "x" * (1 << 30)}

    monkeypatch.setattr(memory, "MORE", 64 << 20)
    with pytest.raises(host_script.NoAnswer, match="it answered more than fits into"):
        Action().run_script("")


def test_a_host_cannot_write_to_the_operators_terminal():
    answer = json.dumps({"os": {"name": "\x1b[2JRHEL"}, "hostname": "a\x07", "lines": ["one\ntwo\x9b"]})
    value = host_script.parse(0, answer, "")
    assert value == {"os": {"name": "\ufffd[2JRHEL"}, "hostname": "a\ufffd", "lines": ["one\ntwo\ufffd"]}
