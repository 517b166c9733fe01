"""Hosts fetch from a mirror that goes wrong, with each Python that hosts have: every download ends in time, with the reason."""

from __future__ import annotations

import hashlib
import json
import subprocess
import time

import pytest
from faulty_server import LOGIN, Index
from interpreters import AS_ON_A_HOST, HOST_PYTHONS, UTILITIES

CONTENT = bytes(range(256)) * 2000
NAME = "six-1.17.0-py2.py3-none-any.whl"
FETCH = """
import io, json
try:
    answer = mirror_download.fetch(
        sys.argv[2], io.BytesIO(), int(sys.argv[3]), processes.clock() + 2, sleep=lambda seconds: None)
except mirror_download.DownloadProblem as problem:
    answer = str(problem)
print(json.dumps(answer))
"""


def fetch(python: str, index: Index, *faults: str) -> object:
    """(sha256, size) as a list, or the reason."""
    index.files[NAME] = CONTENT
    index.faults[NAME] = list(faults)
    command = [
        python,
        "-B",
        "-c",
        AS_ON_A_HOST + FETCH,
        UTILITIES,
        f"{index.url}/wheels/{NAME}",
        str(len(CONTENT)),
    ]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert time.monotonic() - began < 6
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("trickle", "not complete in the time allowed"),
        ("hang", "not complete in the time allowed"),
        ("truncate", f"the answer ended after {len(CONTENT) // 2} of {len(CONTENT)} bytes"),
        ("404", "status 404"),
        ("503", "status 503"),
        ("redirect", "a redirect to another server"),
        ("around", "more than 3 redirects"),
    ],
)
def test_a_download_ends_in_time_with_the_reason(index, python, fault, reason):
    assert reason in str(fetch(python, index, *[fault] * 9))


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize(
    ("fault", "size"), [("endless", len(CONTENT) + 1), ("login", len(LOGIN)), ("flip", len(CONTENT))]
)
def test_other_bytes_are_seen_and_at_most_one_too_many_is_read(index, python, fault, size):
    """Who fetches compares them with the lock."""
    sha256, found = fetch(python, index, fault)
    assert found == size
    assert sha256 != hashlib.sha256(CONTENT).hexdigest()


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_two_faults_and_then_the_file(index, python):
    assert fetch(python, index, "503", "truncate") == [hashlib.sha256(CONTENT).hexdigest(), len(CONTENT)]
