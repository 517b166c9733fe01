"""docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def references() -> list[tuple[str, str]]:
    """(file, test) of every test that the page names; … stands for the file that was named last, test "" for a whole file."""
    found: list[tuple[str, str]] = []
    text = (REPOSITORY / "docs/reliability.md").read_text(encoding="utf-8")
    for file, test in re.findall(r"`(…(?=::)|test_\w+\.py)(?:::(\w+))?`", text):
        found.append((found[-1][0] if file == "…" else file, test))
    return found


@pytest.mark.parametrize(("file", "test"), references())
def test_every_test_that_the_page_names_exists(file: str, test: str) -> None:
    path = REPOSITORY / "tests/unit" / file
    assert path.is_file(), file
    assert not test or f"def {test}(" in path.read_text(encoding="utf-8")


def test_the_page_names_tests() -> None:
    assert len([test for _, test in references() if test]) > 50
