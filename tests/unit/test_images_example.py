"""examples/images: the TensorFlowOnSpark form of the plain program, and its README, which shows the difference."""

import difflib
from pathlib import Path

DIRECTORY = Path(__file__).parents[2] / "examples/images"


def code(name: str) -> list[str]:
    return (DIRECTORY / name).read_text(encoding="utf-8").partition('\n"""\n')[2].splitlines()


def test_fewer_than_ten_lines_make_the_plain_program_one_for_the_cluster():
    changed_lines = [line for line in difflib.unified_diff(code("plain.py"), code("tfos.py"), lineterm="", n=0)][2:]
    assert 0 < sum(line.startswith("+") and line != "+" for line in changed_lines) < 10
    diff = "".join(f"    {line}\n" for line in changed_lines if line[0] in "+-" and line != "+")
    assert diff in (DIRECTORY / "README.md").read_text(encoding="utf-8"), f"its README must show:\n{diff}"
