"""make docs: the site is whole without a network, and the same sources are the same bytes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import browser
import pytest

from hadoop_dl_dev import site

REPOSITORY = Path(__file__).resolve().parents[2]


def build(directory: Path, seed: str) -> Path:
    command = [str(Path(sys.executable).parent / "mkdocs"), "build", "--strict", "--site-dir", str(directory)]
    variables = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "1764000000"}
    completed = subprocess.run(
        command, cwd=REPOSITORY, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return directory


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"), "1")


def test_the_same_sources_are_the_same_bytes(built, tmp_path):
    second = build(tmp_path, "2")
    first_files, second_files = (
        {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (built, second)
    )
    assert first_files.keys() == second_files.keys()
    assert [name for name, content in first_files.items() if content != second_files[name]] == []


@pytest.mark.parametrize("name", site.TABLES)
def test_a_page_of_data_has_its_tables_and_the_repository_says_how_to_get_them(built, name):
    page = (built / name.removeprefix("docs/")).with_suffix(".html").read_text(encoding="utf-8")
    assert page.count("<table>") >= len(re.findall(r"^\| ?---", site.TABLES[name](), re.MULTILINE)) > 0
    assert "<code>make docs</code>" not in page
    assert "`make docs` writes the table" in (REPOSITORY / name).read_text(encoding="utf-8")


def test_a_page_loads_nothing_from_another_server(built):
    for path in built.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|iframe)[^>]* src=\"?([^\" >]+)", path.read_text(encoding="utf-8"))
        loaded += re.findall(r"<link rel=\"?stylesheet[^>]* href=\"?([^\" >]+)", path.read_text(encoding="utf-8"))
        assert [address for address in loaded if "//" in address] == [], path


def test_the_search_finds_a_page_that_was_opened_as_a_file(built, tmp_path):
    document = browser.opened(f"{(built / 'operate/gpu.html').as_uri()}?q=deeplearning_additional_stacks", tmp_path)
    assert re.search(r'<a href="[^"]*/operate/stacks.html', document)


def test_lists_are_those_of_the_repository():
    """Python-Markdown wants four columns, and a blank line before an item that follows a second paragraph."""
    page = "1. One:\n\n       code\n\n   More.\n2. Two:\n   - a\n     b\n\nEnd.\n\n```yaml\n- name: x\n  y: z\n```\n"
    assert site.indented(page) == (
        "1. One:\n\n        code\n\n    More.\n\n2. Two:\n    - a\n        b\n\nEnd.\n\n```yaml\n- name: x\n  y: z\n```\n"
    )
