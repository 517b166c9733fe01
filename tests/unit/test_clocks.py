"""A host whose clock is a day off, or is set while something waits: waits keep their length, and messages name the clock.

The processes really see another time: other_clock.c is loaded before the C library. Files that they write have the time of this machine.
"""

import datetime
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faulty_server import Files, Index, serving
from interpreters import AS_ON_A_HOST, HOST_PYTHONS, UTILITIES
from loopback import served

HERE = Path(__file__).resolve().parent
DAY = 86400
# What each wait runs, and what it says at its end.
WAITS = {
    "the lock": """
try:
    with host_lock.HostLock("Spark", 2, sys.argv[2]):
        pass
except host_lock.HostLocked as problem:
    print(problem)
""",
    "a program": """
print(processes.run(["sleep", "40"], 2).problem)
""",
    "a download": """
import io
try:
    downloads.receive(sys.argv[2], io.BytesIO(), 10**6, processes.clock() + 2)
except downloads.DownloadError as problem:
    print(problem)
""",
}
SAID = {
    "the lock": "has held",
    "a program": "sleep 40 did not end within 2 s",
    "a download": "not complete in the time allowed",
}
FETCH = """
import io
downloads.PAUSE = 0
try:
    downloads.receive(sys.argv[2], io.BytesIO(), 10**6, processes.clock() + 20, sys.argv[3])
    print("fetched")
except downloads.DownloadError as problem:
    print(problem)
"""


@pytest.fixture(scope="session")
def other_clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("another clock for one process needs a C compiler (cc)")
    library = tmp_path_factory.mktemp("clock") / "other_clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, HERE / "other_clock.c", "-ldl"], check=True)
    return library


@pytest.fixture
def start(other_clock: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program with a clock that is off by the seconds in tmp_path/clock."""
    processes = []

    def start(python: str, program: str, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "LD_PRELOAD": str(other_clock), "OTHER_CLOCK": str(tmp_path / "clock")}
        command = [python, "-B", "-c", AS_ON_A_HOST + program, UTILITIES, *arguments]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def arguments(tmp_path: Path) -> Iterator[dict[str, str]]:
    """What each wait waits for: a lock that is held, nothing, and a server that sends a byte now and then."""
    index = Index()
    index.files["wheel"] = b"x" * 10000
    index.faults["wheel"] = ["trickle"] * 9
    with (tmp_path / ".lock").open("w") as lock_file, serving(index):
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        yield {"the lock": str(tmp_path), "a program": "", "a download": f"{index.url}/wheels/wheel"}


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["a day forward", "a day back"])
@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_keeps_its_length_when_the_clock_is_set(start, arguments, tmp_path, wait, jump, python):
    process = start(python, WAITS[wait], arguments[wait])
    began = time.monotonic()
    time.sleep(0.5)
    (tmp_path / "clock").write_text(str(jump))
    output, _ = process.communicate(timeout=15)
    assert SAID[wait] in output
    assert 1.5 < time.monotonic() - began < 5


@pytest.fixture
def url(certificates: Path) -> Iterator[str]:
    """Of a mirror whose certificate is valid from today on for two days."""
    with served(Files, certificates / "server.crt", certificates / "server.key") as address:
        yield address.replace("127.0.0.1", "localhost") + "/"


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize("clock", [-DAY, 3 * DAY], ids=["behind", "ahead"])
def test_a_certificate_that_the_clock_refuses_is_reported_with_the_clock(
    start, url, certificates, tmp_path, clock, python
):
    (tmp_path / "clock").write_text(str(clock))
    output, _ = start(python, FETCH, url, str(certificates / "server.ca")).communicate(timeout=30)
    clock_time = datetime.datetime.fromtimestamp(time.time() + clock, datetime.timezone.utc)
    assert "certificate verify failed" in output.lower()
    assert f"this host's clock shows {clock_time:%Y-%m-%d}" in output


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_a_clock_within_the_certificates_days_is_enough(start, url, certificates, tmp_path, python):
    (tmp_path / "clock").write_text(str(DAY))
    output, _ = start(python, FETCH, url, str(certificates / "server.ca")).communicate(timeout=30)
    assert output == "fetched\n"
