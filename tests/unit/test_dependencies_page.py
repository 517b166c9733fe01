"""docs/dependencies.md: its table of known advisories is about what the locks have, and names stacks without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
LOCKS = {path.stem: path.read_text(encoding="utf-8") for path in REPOSITORY.glob("stacks/locks/*.txt")}
NAMES = {"TensorFlow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")}


def rows() -> list[list[str]]:
    text = (REPOSITORY / "docs/dependencies.md").read_text(encoding="utf-8").partition("## What stacks install")[2]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line[:2] == "| "]
    return cells[1:]


def locked(package: str, lock: str) -> set[str]:
    """The versions of a package in one lock."""
    return {
        version
        for name in NAMES.get(package, (package.split(" ")[0],))
        for version in re.findall(rf"(?im)^{re.escape(name)}==(\S+) ", LOCKS[lock])
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_the_table_is_about_what_the_locks_have(row: list[str]) -> None:
    package, versions, _, stacks = row
    listed = set(versions.split(", "))
    assert listed <= set().union(*(locked(package, lock) for lock in LOCKS))
    for stack in re.findall(r"`([^`]+)`", stacks):
        assert (REPOSITORY / "stacks" / f"{stack}.yml").is_file()
        for lock in [name for name in LOCKS if name == stack or re.fullmatch(rf"{re.escape(stack)}-py[\d.]+", name)]:
            assert not locked(package, lock) & listed


def test_the_table_is_read() -> None:
    assert len(rows()) == 9
