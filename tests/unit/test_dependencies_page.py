"""docs/develop/dependencies.md: its table of known advisories is about what the locks have, and names stacks without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hadoop_dl.data import advisories
from hadoop_dl.data.stacks import load_stack

REPOSITORY = Path(__file__).resolve().parents[2]
LOCKS = {path.stem: path.read_text(encoding="utf-8") for path in REPOSITORY.glob("stacks/locks/*.txt")}
NAMES = {"TensorFlow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")}


def rows() -> list[list[str]]:
    text = (
        (REPOSITORY / "docs/develop/dependencies.md").read_text(encoding="utf-8").partition("## What stacks install")[2]
    )
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
    table_versions = set(versions.split(", "))
    assert table_versions <= set().union(*(locked(package, lock) for lock in LOCKS))
    for stack in re.findall(r"`([^`]+)`", stacks):
        assert (REPOSITORY / "stacks" / f"{stack}.yml").is_file()
        for lock in [name for name in LOCKS if name == stack or re.fullmatch(rf"{re.escape(stack)}-py[\d.]+", name)]:
            assert not locked(package, lock) & table_versions


def test_the_report_knows_what_the_table_has() -> None:
    table_versions = {row[0].partition(" ")[0].lower(): set(row[1].split(", ")) for row in rows()}
    reported_versions = {name: set(versions) for name, versions in advisories.ADVISED.items()}
    assert {name: reported_versions[name] for name in table_versions} == table_versions
    assert reported_versions.keys() - table_versions.keys() == {"tensorflow-cpu", "tensorflow-gpu"}


def test_the_report_names_a_stack_with_known_advisories() -> None:
    stack = load_stack("tf1.15-cpu-py36-el8")
    [note] = advisories.notes(f"{stack.name}-{stack.lock().digest}")
    assert note.startswith("tf1.15-cpu-py36-el8 has known advisories: ")
    assert "tensorflow 1.15.5" in note
    newer_stack = load_stack("tf2.21-cpu-py311")
    assert advisories.notes(f"{newer_stack.name}-{newer_stack.lock().digest}") == []
    assert advisories.notes(f"{stack.name}-0123456789ab") == advisories.notes("../../etc") == advisories.notes("") == []
