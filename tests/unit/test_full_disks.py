"""What modules report on a file system without bytes or inodes, or that is read-only: real small ones."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from host_modules import run
from test_two_runs import archive, receipt, spark_home

NO_INODES = "size=40m,nr_inodes=4"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    path = tmp_path / "small"
    path.mkdir()

    def mount(options: str) -> Path:
        argv = ["mount", "-t", "tmpfs", "-o", options, "none", str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a small file system needs the right to mount: {done.stderr.strip()}")
        return path

    yield mount
    if path.is_mount():
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={path}/full", "bs=4096"], capture_output=True, check=False)


def heal(path: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw,size=100m,nr_inodes=0", str(path)], check=True)
    (path / "full").unlink(missing_ok=True)


def spark(root: Path, path: Path) -> dict[str, Any]:
    return {**spark_home(root), "path": str(path / "pyspark-9")}


def cudnn(root: Path, path: Path) -> dict[str, Any]:
    packed, sha256 = archive(root, "cudnn", "lib/libcudnn.so.8")
    return {"archive": packed, "path": str(path / "cudnn-8"), "sha256": sha256, "root": str(root / "deeplearning")}


@pytest.mark.parametrize(("module", "arguments"), [("spark_home", spark), ("unpacked_archive", cudnn)])
def test_a_file_system_without_inodes_is_refused_before_anything_is_unpacked(
    tmp_path: Path, small: Callable[[str], Path], module: str, arguments: Callable[[Path, Path], dict[str, Any]]
) -> None:
    """df shows room there, so the message must name what is missing."""
    path = small(NO_INODES)
    given = arguments(tmp_path, path)
    found = run(module, **given)
    assert found["failed"]
    assert f"{path} needs " in found["msg"]
    assert "inodes but has 3 free (df -i)" in found["msg"]
    assert list(path.iterdir()) == []
    heal(path)
    assert run(module, **given)["changed"]


def test_spark_is_not_fetched_where_its_size_does_not_fit(tmp_path: Path, small: Callable[[str], Path]) -> None:
    downloads = small("size=1m")
    given = {**spark_home(tmp_path), "downloads": str(downloads), "size": 300_000_000}
    found = run("spark_home", **given)
    assert f"{downloads} needs about 300 MB but has 1 MB free" in found["msg"]
    assert list(downloads.iterdir()) == []


@pytest.mark.parametrize("fault", ["no space", "no inodes", "read-only"])
def test_a_receipt_that_cannot_be_written_is_a_sentence_and_comes_later(
    tmp_path: Path, small: Callable[[str], Path], fault: str
) -> None:
    path = small({"no space": "size=64k", "no inodes": "size=1m,nr_inodes=3", "read-only": "size=1m"}[fault])
    (path / "state").mkdir()
    if fault == "no space":
        fill(path)
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)
    given = {**receipt(tmp_path), "state_directory": str(path / "state")}
    found = run("receipt", **given)
    assert found["failed"]
    assert found["msg"].startswith(f"The receipt {path}/state/cuda.json must be written, but that failed: ")
    assert list((path / "state").iterdir()) == []
    heal(path)
    assert run("receipt", **given)["changed"]
    assert not run("receipt", **given)["changed"]


@pytest.mark.parametrize("content", [b'{"component": "cu', b"\xff\xfe\x00torn", b""])
def test_a_torn_receipt_is_replaced_whatever_is_in_it(tmp_path: Path, content: bytes) -> None:
    given = receipt(tmp_path)
    state = Path(given["state_directory"])
    state.mkdir(parents=True)
    (state / "cuda.json").write_bytes(content)
    assert run("receipt", **given)["changed"]
    assert not run("receipt", **given)["changed"]
