"""The documents: short pages, lines and cells, and every plugin's documentation can be read. lint checks their links."""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from hadoop_dl_dev import site

REPOSITORY = Path(__file__).resolve().parents[2]
LISTED = subprocess.run(["git", "ls-files", "*.md"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
DOCUMENTS = LISTED.stdout.split()
PAGES = [name for name in DOCUMENTS if name.startswith(("docs/", "roles/", "molecule/", "demo/"))]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short_and_its_lines_and_cells_are_too(name):
    """Prose has 100 characters, a cell 80, both without the targets of links; code and definitions of links have any length."""
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 250
    prose = re.sub(r"(?ms)^ *```.*?^ *```$|^    .*?$|^\[[^]]+\]: .*?$", "", text)
    long_parts = []
    for line in re.sub(r"\]\([^)]*\)", "]", prose).splitlines():
        cells = line.startswith("|")
        parts, limit = (line.strip("|").split("|"), 80) if cells else ([line], 100)
        long_parts += [part for part in parts if len(part.strip()) > limit]
    assert not long_parts


def test_twenty_tasks_are_at_most_three_clicks_from_the_first_page():
    clicks = {REPOSITORY / "docs/index.md": 0}
    for page in (queue := list(clicks)):
        for other in site.linked(REPOSITORY, page):
            if other not in clicks:
                clicks[other] = clicks[page] + 1
                queue.append(other)
    list_of_tasks = REPOSITORY / "docs/develop/testing.md"
    tasks = re.findall(
        r"^\|.*\]\(([^)#]+)(#.*)?\) \|$", list_of_tasks.read_text(encoding="utf-8").partition("## Twenty")[2], re.M
    )
    assert len(tasks) == 20
    paths = [(site.target(REPOSITORY, list_of_tasks, path), bool(heading)) for path, heading in tasks]
    assert [path for path, heading in paths if path not in clicks or clicks[path] + heading > 3] == []


OPTION_KEYS = {"description", "type", "default", "choices", "required", "elements", "no_log"}
KEYS = OPTION_KEYS | {"returned", "sample", "contains"}


@pytest.mark.parametrize("path", sorted(REPOSITORY.glob("plugins/modules/*.py")), ids=lambda path: path.stem)
def test_every_module_has_documentation_that_ansible_doc_reads_in_whole_sentences(path):
    """A comma ends a text without quotes, and the rest becomes a key; a colon makes a mapping of it. ansible-doc shows neither."""
    documents = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.Assign([ast.Name("DOCUMENTATION" | "EXAMPLES" | "RETURN" as name)], ast.Constant(text)):
                documents[name] = yaml.safe_load(text)
                if name == "DOCUMENTATION" and documents[name].get("options"):  # hosts have no PyYAML
                    assert json.loads(text) == documents[name]
    assert documents["DOCUMENTATION"]["module"] == path.stem
    options = documents["DOCUMENTATION"].get("options", {}) | documents.get("RETURN", {})
    assert {option: values.keys() - KEYS for option, values in options.items() if values.keys() - KEYS} == {}
    texts = documents["DOCUMENTATION"]["description"]
    for values in options.values():
        texts = texts + (values["description"] if isinstance(values["description"], list) else [values["description"]])
    assert [text for text in texts if not isinstance(text, str)] == []
