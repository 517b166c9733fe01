"""make release: what is no release, and what ansible-doc shows of the modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from clones import REPOSITORY, clone, git, with_changes

from hadoop_dl_dev import release

KEYS = set(
    [
        "description",
        "type",
        "default",
        "choices",
        "required",
        "elements",
        "returned",
        "sample",
        "suboptions",
        "contains",
    ]
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_changes(tmp_path_factory.mktemp("release") / "tree")


def test_a_tree_with_changes_is_refused(tree: Path, tmp_path: Path) -> None:
    work_tree = clone(tree, tmp_path / "tree")
    (work_tree / "site.yml").write_text("---\n[]\n", encoding="utf-8")
    (work_tree / "new").touch()
    with pytest.raises(release.Refused, match="2 files differ from it, such as (site.yml|new)"):
        release.make(work_tree, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_a_version_without_its_section_of_the_changelog_is_refused(tree: Path, tmp_path: Path) -> None:
    work_tree = clone(tree, tmp_path / "tree")
    project = (work_tree / "pyproject.toml").read_text(encoding="utf-8")
    (work_tree / "pyproject.toml").write_text(release.VERSION.sub('version = "99.0.0"', project), encoding="utf-8")
    git(work_tree, "commit", "--quiet", "--all", "--message", "a new version")
    with pytest.raises(release.Refused, match=r"must have the section '## 99.0.0 \(YYYY-MM-DD\)'"):
        release.make(work_tree, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def documented(path: Path) -> Iterator[tuple[str, Any]]:
    """DOCUMENTATION and RETURN of a module."""
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="DOCUMENTATION" | "RETURN" as name)], value=ast.Constant(value=text)):
                yield name, yaml.safe_load(text)


@pytest.mark.parametrize("path", sorted((REPOSITORY / "plugins/modules").glob("*.py")), ids=lambda path: path.stem)
def test_the_sentences_about_a_module_are_whole(path: Path) -> None:
    """A comma ends a text without quotes, and the rest becomes a key; a colon makes a mapping of it. ansible-doc shows neither."""
    documents = dict(documented(path))
    options = documents["DOCUMENTATION"].get("options", {}) | documents.get("RETURN", {})
    assert {option: values.keys() - KEYS for option, values in options.items() if values.keys() - KEYS} == {}
    texts = documents["DOCUMENTATION"]["description"]
    for values in options.values():
        texts = texts + (values["description"] if isinstance(values["description"], list) else [values["description"]])
    assert [text for text in texts if not isinstance(text, str)] == []
