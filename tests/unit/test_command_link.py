"""command_link: the link that lets every shell find a program, and what it never touches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import host_modules
import pytest

PROGRAM = "/opt/deeplearning/bin/tfos-submit"


def run(directory: Path, state: str = "present", check: bool = False) -> dict[str, Any]:
    arguments = {"program": PROGRAM, "directory": str(directory), "state": state}
    return host_modules.run("command_link", **arguments, _ansible_check_mode=check)


def test_the_link_is_created_once_and_removed_once(tmp_path: Path) -> None:
    link = tmp_path / "tfos-submit"
    assert run(tmp_path, check=True)["changed"]
    assert not link.is_symlink()
    assert [run(tmp_path)["changed"] for _ in range(2)] == [True, False]
    assert str(link.readlink()) == PROGRAM
    assert run(tmp_path, "absent", check=True)["changed"]
    assert link.is_symlink()
    assert [run(tmp_path, "absent")["changed"] for _ in range(2)] == [True, False]
    assert not link.is_symlink()


@pytest.mark.parametrize("kind", ["a file", "a directory", "a link to /opt/site/tfos-submit"])
def test_what_this_project_did_not_create_is_refused_and_stays(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tfos-submit"
    if kind == "a file":
        path.write_text("of the site")
    elif kind == "a directory":
        path.mkdir()
    else:
        path.symlink_to("/opt/site/tfos-submit")
    answer = run(tmp_path)
    assert answer["failed"]
    assert f"{path} must be a link to {PROGRAM} but is {kind}" in answer["msg"]
    assert not run(tmp_path, "absent")["changed"]
    assert path.is_symlink() or path.exists()


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    assert "No such file or directory" in run(tmp_path / "missing")["msg"]
