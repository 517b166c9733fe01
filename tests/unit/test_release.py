"""make release: what is no release."""

from pathlib import Path

import pytest
from clones import clone, git, with_changes

from hadoop_dl_dev import release


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_changes(tmp_path_factory.mktemp("release") / "tree")


def test_a_tree_with_changes_is_refused(tree, tmp_path):
    work_tree = clone(tree, tmp_path / "tree")
    (work_tree / "site.yml").write_text("---\n[]\n", encoding="utf-8")
    (work_tree / "new").touch()
    with pytest.raises(release.Refused, match="2 files differ from it, such as (site.yml|new)"):
        release.make(work_tree, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_a_version_without_its_section_of_the_changelog_is_refused(tree, tmp_path):
    work_tree = clone(tree, tmp_path / "tree")
    project = (work_tree / "pyproject.toml").read_text(encoding="utf-8")
    (work_tree / "pyproject.toml").write_text(release.VERSION.sub('version = "99.0.0"', project), encoding="utf-8")
    git(work_tree, "commit", "--quiet", "--all", "--message", "a new version")
    with pytest.raises(release.Refused, match=r"must have the section '## 99.0.0 \(YYYY-MM-DD\)'"):
        release.make(work_tree, tmp_path / "output")
    assert not (tmp_path / "output").exists()
