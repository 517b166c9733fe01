"""Downloads on hosts, from servers that go wrong: every one ends, in time, with a sentence, and only the right bytes get the name."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import downloads
from faulty_server import Index
from host_modules import run

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "spark-1.0.tar.gz"


def fetch(index: Index, directory: Path, fault: str = "", seconds: float = 20, size: int = len(CONTENT)) -> Path:
    index.files[NAME] = CONTENT
    index.faults[NAME] = [fault] * 9 if fault else []
    downloads.fetch(f"{index.url}/files/{NAME}", str(directory / NAME), SHA256, size, seconds)
    return directory / NAME


def test_the_right_bytes_arrive_closed_to_others(index: Index, tmp_path: Path) -> None:
    path = fetch(index, tmp_path)
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("trickle", r"must arrive within 1 s, but only \d+ bytes did. Check the network"),
        ("hang", "must arrive within 1 s|could not be fetched"),
        ("endless", f"must have {len(CONTENT)} bytes, but it has more"),
        ("truncate", "must have the sha256|could not be fetched"),
        ("flip", f"must have the sha256 {SHA256}, but it has [0-9a-f]+ .*It was not used"),
        ("login", "It is a web page, such as a login page"),
        ("redirect", r"must deliver the file itself, but it redirects to http://localhost:\d+/files"),
        ("around", "redirects in a loop"),
        ("404", "could not be fetched: HTTP Error 404.*curl -I"),
    ],
)
def test_a_server_that_goes_wrong_holds_no_host_and_leaves_nothing(
    index: Index, tmp_path: Path, fault: str, words: str
) -> None:
    (tmp_path / NAME).write_text("what was there")
    start = time.monotonic()
    with pytest.raises(downloads.DownloadError, match=words):
        fetch(index, tmp_path, fault, seconds=1 if fault in ("trickle", "hang") else 60)
    assert time.monotonic() - start < 40
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).read_text() == "what was there"


def test_a_file_with_its_sha256_is_not_fetched_again(index: Index, tmp_path: Path) -> None:
    """As Ansible runs the module: twice, then with another mode, then after a bit was lost."""
    index.files[NAME] = CONTENT
    arguments = {"url": f"{index.url}/files/{NAME}", "path": str(tmp_path / NAME), "sha256": SHA256}
    assert run("fetch_file", **arguments)["changed"] is True
    assert run("fetch_file", **arguments)["changed"] is False
    assert run("fetch_file", **arguments, permissions="0644")["changed"] is True
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644
    assert len(index.requests) == 1
    (tmp_path / NAME).write_bytes(CONTENT[:-1] + b"x")
    assert run("fetch_file", **arguments)["changed"] is True
    assert (tmp_path / NAME).read_bytes() == CONTENT


def test_the_proxy_of_a_host_is_not_used_for_the_sites_mirror(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.files[NAME] = CONTENT
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    arguments = {"url": f"{index.url}/files/{NAME}", "path": str(tmp_path / NAME), "sha256": SHA256}
    assert run("fetch_file", **arguments)["failed"] is True
    assert run("fetch_file", **arguments, use_proxy=False)["changed"] is True


def test_an_endless_answer_of_unknown_size_leaves_space_to_others(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(downloads, "KEPT_FREE", 1 << 60)
    with pytest.raises(downloads.DownloadError, match="the file system is full after 0 MB. Free some space"):
        fetch(index, tmp_path, "endless", size=0)


def test_a_password_in_the_address_is_not_shown(index: Index, tmp_path: Path) -> None:
    index.faults[NAME] = ["404"]
    address = index.url.replace("http://", "http://svc:canary@")
    with pytest.raises(downloads.DownloadError) as caught:
        downloads.fetch(f"{address}/files/{NAME}", str(tmp_path / NAME), SHA256)
    assert "canary" not in str(caught.value)


def test_a_part_of_a_killed_run_is_removed_and_that_of_a_running_one_stays(index: Index, tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / f"{NAME}.part-{dead.pid}").write_text("old")
    (tmp_path / f"{NAME}.part-{os.getppid()}").write_text("another run")
    fetch(index, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([NAME, f"{NAME}.part-{os.getppid()}"])
