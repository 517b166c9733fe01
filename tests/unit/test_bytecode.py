"""Bytecode is made while wheels are unpacked: of every source, of its last content, and by nothing that outlives the module."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import bytecode, processes
from interpreters import AS_ON_A_HOST, HOST_PYTHONS, UTILITIES

SITE = "lib/python3/site-packages"
COMPILE = """
import json
from ansible.module_utils.hadoop_dl_host import bytecode
tree, scratch, python = sys.argv[2:]
def run(argv):
    answer = processes.run(argv, 60)
    return answer.status, answer.output or answer.error
with bytecode.Compiler(python, tree, scratch, 2, run) as compiler:
    for paths in json.load(sys.stdin):
        compiler.add(paths)
"""


def run(argv: list[str]) -> tuple[int | None, str]:
    answer = processes.run(argv, 60)
    return answer.status, answer.output or answer.error


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree" / SITE).mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    return tmp_path / "tree"


def source(tree: Path, name: str, text: str = "x = 1\n") -> str:
    path = tree / SITE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"{SITE}/{name}"


def compiler(tree: Path, run=run) -> bytecode.Compiler:  # a function
    return bytecode.Compiler(sys.executable, str(tree), str(tree.with_name("scratch")), 2, run)


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_every_source_gets_its_bytecode(tree: Path, python: str) -> None:
    names = [f"package/module_{number}.py" for number in range(450)] + ["ümläut.py", "other grammar.py"]
    paths = [source(tree, name, "print 1 2\n" if name.startswith("other") else "x = 1\n") for name in names]
    batches = [paths[:300], ["bin/script.py", f"{SITE}/data.txt"], paths[300:]]
    command = [python, "-B", "-c", AS_ON_A_HOST + COMPILE, UTILITIES, tree, tree.with_name("scratch"), python]
    subprocess.run(command, input=json.dumps(batches), text=True, check=True, timeout=120)
    compiled_names = {path.name.split(".")[0] for path in tree.rglob("*.pyc")}
    assert compiled_names == {Path(name).stem for name in names} - {"other grammar"}
    assert list(tree.with_name("scratch").iterdir()) == []


def test_sources_are_compiled_before_the_last_one_is_written(tree: Path) -> None:
    start_event = threading.Event()

    def notice(argv: list[str]) -> tuple[int | None, str]:
        if "compileall" in argv:
            start_event.set()
        return 0, "True"

    with compiler(tree, notice) as compilation:
        compilation.add([f"{SITE}/module_{number}.py" for number in range(bytecode.FEWEST)])
        assert start_event.wait(20)


def test_a_path_of_two_wheels_is_compiled_from_what_stays(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow compiler of the first wheel read the path before the second one wrote it, and ends after the second one's."""
    monkeypatch.setattr(bytecode, "FEWEST", 1)
    start_event, texts = threading.Event(), {}

    def compile_slowly(argv: list[str]) -> tuple[int | None, str]:
        if "compileall" in argv:
            [path] = Path(argv[-1]).read_text().splitlines()
            text = Path(path).read_text()
            if "first" in text:
                start_event.set()
                time.sleep(1)
            texts[path] = text
        return 0, "True"

    path = source(tree, "shared.py", "owner = 'first'\n")
    with compiler(tree, compile_slowly) as compilation:
        compilation.expect([path])
        compilation.add([path])
        assert start_event.wait(20)
        compilation.expect([path])
        compilation.add([source(tree, "shared.py", "owner = 'second'\n")])
    assert texts == {str(tree / path): "owner = 'second'\n"}


def test_a_compiler_that_dies_is_reported_where_the_work_ends(tree: Path) -> None:
    calls = []

    def die(argv: list[str]) -> tuple[int | None, str]:
        calls.append(argv)
        return (-9, "Killed") if "compileall" in argv else (0, "True")

    def work() -> None:
        with compiler(tree, die) as compilation:
            for number in range(20):
                compilation.add([f"{SITE}/module_{number}_{index}.py" for index in range(bytecode.FEWEST)])

    with pytest.raises(bytecode.NotCompiled, match="status -9: Killed"):
        work()
    assert len([argv for argv in calls if "compileall" in argv]) <= 2


def test_nothing_is_compiled_any_more_once_the_block_was_left_by_a_failure(tree: Path) -> None:
    commands = []

    def slow(argv: list[str]) -> tuple[int | None, str]:
        commands.append(argv)
        time.sleep(0.3)
        commands.remove(argv)
        return 0, "True"

    def work() -> None:
        with compiler(tree, slow) as compilation:
            compilation.add([f"{SITE}/module_{number}.py" for number in range(5000)])
            time.sleep(0.1)
            raise ValueError("a wheel had other bytes")

    with pytest.raises(ValueError, match="other bytes"):
        work()
    assert commands == []
    time.sleep(0.5)
    assert commands == []
