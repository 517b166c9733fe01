"""docs/reliability.md: every fault has a promise and a test, and the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "docs/reliability.md").read_text(encoding="utf-8")
REFERENCE = re.compile(r"`(…(?=::)|(?:long/)?test_\w+\.py)(?:::(\w+))?`")
SCENARIOS = re.compile(r"molecule ((?:`\w+`(?:, | and )?)+)")


def rows() -> list[list[str]]:
    """The cells of every fault."""
    lines = [line for line in TEXT.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row != ["fault", "promise", "test"] and set(row[0]) != set("-|")]


def references() -> list[tuple[str, str]]:
    """(file, test) of every test that the page names; … stands for the file that was named last, test "" for a whole file."""
    found: list[tuple[str, str]] = []
    for file, test in REFERENCE.findall(TEXT):
        found.append((found[-1][0] if file == "…" else file, test))
    return found


def scenarios() -> set[str]:
    return {name for names in SCENARIOS.findall(TEXT) for name in re.findall(r"\w+", names)}


@pytest.mark.parametrize(("file", "test"), references())
def test_every_test_that_the_page_names_exists(file: str, test: str) -> None:
    path = REPOSITORY / "tests" / file if file.startswith("long/") else REPOSITORY / "tests/unit" / file
    assert path.is_file(), file
    assert not test or f"def {test}(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_every_scenario_that_the_page_names_exists(name: str) -> None:
    assert (REPOSITORY / "molecule" / name / "molecule.yml").is_file()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_every_fault_has_a_promise_and_a_test(row: list[str]) -> None:
    assert len(row) == 3, row
    assert all(row)
    assert REFERENCE.search(row[2]) or SCENARIOS.search(row[2]), row


def test_the_page_is_read() -> None:
    assert len(rows()) > 70
    assert len([test for _, test in references() if test]) > 100
    assert len(scenarios()) >= 3
