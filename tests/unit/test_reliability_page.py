"""tests/promises.txt: every fault on the pages about faults has tests there, and these tests and scenarios exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("docs/reference/reliability.md", "docs/develop/host_faults.md", "docs/develop/untrusted.md")


def promises() -> Iterator[tuple[str, str, str]]:
    """(page, fault, tests) of every line."""
    page = ""
    for line in (REPOSITORY / "tests/promises.txt").read_text(encoding="utf-8").splitlines():
        fault, _, tests = line.partition(" | ")
        page = line[2:] if line.startswith("# ") else page
        if tests:
            yield page, fault, tests


@pytest.mark.parametrize("page", PAGES)
def test_every_fault_has_a_line_with_tests(page: str) -> None:
    text = " ".join((REPOSITORY / page).read_text(encoding="utf-8").split())
    faults = [fault.rstrip(":,") for fault in re.findall(r" - \*\*(.+?)\*\*", text)]
    assert faults == [fault for listed, fault, _ in promises() if listed == page]
    assert len(faults) == len(set(faults)) > 40


@pytest.mark.parametrize("reference", sorted({name for _, _, tests in promises() for name in tests.split()}))
def test_every_test_that_is_named_exists(reference: str) -> None:
    file, _, test = reference.partition("::")
    if file.startswith("molecule/"):
        assert (REPOSITORY / file / "molecule.yml").is_file()
        return
    path = REPOSITORY / "tests" / (file if file.startswith("long/") else f"unit/{file}")
    assert path.is_file(), file
    assert not test or f"def {test}(" in path.read_text(encoding="utf-8")
