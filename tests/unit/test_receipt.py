"""receipt: readable by everybody, and replaced or refused in a sentence whatever is in its place."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import receipt


def test_a_strict_umask_closes_no_directory_to_users(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        receipt.write(str(tmp_path / "deeplearning/state/mirror.json"), "{}")
    finally:
        os.umask(before)
    for path in (tmp_path / "deeplearning", tmp_path / "deeplearning/state"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "deeplearning/state/mirror.json").stat().st_mode) == 0o644


def test_a_file_system_that_refuses_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "mirror.json").mkdir()  # a name that cannot be replaced by a file
    with pytest.raises(OSError, match="directory"):
        receipt.write(str(tmp_path / "mirror.json"), "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["mirror.json"]
