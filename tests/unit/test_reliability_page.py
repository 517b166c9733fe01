"""The pages about faults: each part with faults names the tests that cause them, and these files and scenarios exist."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = ("docs/reference/reliability.md", "docs/develop/host_faults.md", "docs/develop/untrusted.md")


def exists(reference: str) -> bool:
    if reference.startswith("molecule/"):
        return (REPOSITORY / reference / "molecule.yml").is_file()
    return (REPOSITORY / "tests" / ("" if reference.startswith("long/") else "unit") / reference).is_file()


@pytest.mark.parametrize("page", PAGES)
def test_every_part_with_faults_names_tests_that_exist(page):
    parts = re.split(r"(?m)^## ", (REPOSITORY / page).read_text(encoding="utf-8"))
    for part in (part for part in parts if "\n- **" in part):
        named = re.search(r"(?ms)^Tests: (.+?)\.$", part)
        assert named, part.partition("\n")[0]
        assert [name for name in re.findall(r"`([^`]+)`", named[1]) if not exists(name)] == []
