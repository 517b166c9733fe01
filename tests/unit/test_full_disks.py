"""What modules report on a file system without bytes or inodes, or that is read-only: real small ones."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from ansible.module_utils import basic
from host_modules import run
from test_bazel import executable
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
    return {"archive": packed, "place": str(path / "cudnn-8"), "sha256": sha256, "root": str(root / "deeplearning")}


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


class Ended(Exception):
    """A module ended, with this result."""


def run_here(monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The module in this process, so that something can happen while it works."""
    monkeypatch.setattr(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode())

    def end(_: basic.AnsibleModule, **result: Any) -> NoReturn:
        raise Ended(result)

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", lambda module, **result: end(module, failed=True, **result))
    try:
        importlib.import_module(name).main()
    except Ended as ended:
        return dict(ended.args[0])
    raise AssertionError("the module did not end")


def exhaust(path: Path) -> None:
    with contextlib.suppress(OSError):
        (path / "inodes").mkdir()
        for number in range(os.statvfs(path).f_favail):
            (path / "inodes" / str(number)).touch()


def spark_in(folder: Path, path: Path, name: str) -> dict[str, Any]:
    packed, sha256 = archive(
        folder / name, "pyspark-9", "deps/bin/spark-submit", "deps/jars/a.jar", "lib/pyspark.zip", name
    )
    return {
        "url": f"file://{packed}",
        "sha256": sha256,
        "path": str(path / "it"),
        "downloads": str(folder),
        "root": str(path),
    }


def archive_in(folder: Path, path: Path, name: str) -> dict[str, Any]:
    packed, sha256 = archive(folder / name, "cudnn", "lib/libcudnn.so.8", name)
    return {"archive": packed, "place": str(path / "it"), "sha256": sha256, "root": str(path)}


def bazel_in(folder: Path, path: Path, name: str) -> dict[str, Any]:
    (folder / name).mkdir()
    with executable(folder / name / "bazel", "0.26.1").open("ab") as handle:
        handle.write(b"\0" * len(name))
    return {"root": str(path), "version": "0.26.1", "program": str(folder / name / "bazel"), "source": "binary"}


# Each module, and the function that it calls when it has begun to write.
MIDDLE = {
    "spark_home": (spark_in, "shutil.copyfileobj"),
    "unpacked_archive": (archive_in, "unpacked_archive.run"),
    "bazel_program": (bazel_in, "shutil.copyfile"),
}


def files(path: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(path)): one.read_bytes()
        for one in path.rglob("*")
        if one.is_file() and one.name not in (".lock", "full") and "inodes" not in one.parts
    }


@pytest.mark.parametrize("fault", ["no space", "no inodes", "read-only"])
@pytest.mark.parametrize("module", MIDDLE)
def test_a_disk_that_goes_wrong_in_the_middle_leaves_what_was_there(
    tmp_path: Path, small: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, module: str, fault: str
) -> None:
    path = small("size=40m,nr_inodes=300")
    arguments, begun = MIDDLE[module]
    older, newer = arguments(tmp_path, path, "older"), arguments(tmp_path, path, "newer-one")
    assert run(module, **older)["changed"]
    before = files(path)
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(path)], check=True)
        found = run(module, **newer)
    else:
        owner, _, function = begun.rpartition(".")
        goes_on = getattr(importlib.import_module(owner), function)

        def meanwhile(*given: Any, **more: Any) -> Any:
            (fill if fault == "no space" else exhaust)(path)
            return goes_on(*given, **more)

        with monkeypatch.context() as patch:
            patch.setattr(begun, meanwhile)
            found = run_here(patch, module, newer)
    assert found["failed"]
    expected = (
        "Read-only file system"
        if fault == "read-only"
        else r"No space left on device.* \(\S+ has \d+ MB and \d+ inodes free\)"
    )
    assert re.search(expected, found["msg"], re.DOTALL), found["msg"]
    assert files(path) == before
    heal(path)
    shutil.rmtree(path / "inodes", ignore_errors=True)
    assert run(module, **newer)["changed"]
    assert files(path) != before
    assert {name.name for name in path.iterdir()} <= {".lock", "it", "0.26.1"}
