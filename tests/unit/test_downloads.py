"""Downloads on hosts, from servers that go wrong: every one ends, in time, with a sentence, and only the right bytes get the name."""

import errno
import hashlib
import json
import os
import socketserver
import subprocess
import threading
import time
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import downloads
from faulty_server import LOGIN, Index
from host_modules import run
from interpreters import AS_ON_A_HOST, HOST_PYTHONS, UTILITIES
from other_processes import ended

CONTENT = bytes(range(256)) * 2000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
NAME = "spark-1.0.tar.gz"


def fetch(index: Index, directory: Path, fault: str = "", seconds: float = 20, size: int = len(CONTENT)) -> Path:
    index.files[NAME] = CONTENT
    index.faults[NAME] = [fault] * 9 if fault else []
    downloads.fetch(f"{index.url}/files/{NAME}", str(directory / NAME), SHA256, size, seconds)
    return directory / NAME


def test_the_right_bytes_arrive_closed_to_others(index, tmp_path):
    path = fetch(index, tmp_path)
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("trickle", r"could not be fetched: not complete in the time allowed"),
        ("endless", f"must have {len(CONTENT)} bytes, but it has more"),
        ("flip", f"must have the sha256 {SHA256}, but it has [0-9a-f]+ .*It was not used"),
        ("login", "It is a web page, such as a login page"),
        ("404", "could not be fetched: status 404.*curl -I"),
    ],
)
def test_a_server_that_goes_wrong_holds_no_host_and_leaves_nothing(index, tmp_path, fault, words):
    (tmp_path / NAME).write_text("what was there")
    start = time.monotonic()
    with pytest.raises(downloads.DownloadError, match=words):
        fetch(index, tmp_path, fault, seconds=1 if fault == "trickle" else 60)
    assert time.monotonic() - start < 40
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    assert (tmp_path / NAME).read_text() == "what was there"


def test_a_file_with_its_sha256_is_not_fetched_again(index, tmp_path):
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


def test_the_proxy_of_a_host_is_not_used_for_the_sites_mirror(index, tmp_path, monkeypatch):
    index.files[NAME] = CONTENT
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    arguments = {"url": f"{index.url}/files/{NAME}", "path": str(tmp_path / NAME), "sha256": SHA256}
    assert run("fetch_file", **arguments)["failed"] is True
    assert run("fetch_file", **arguments, use_proxy=False)["changed"] is True


def test_an_endless_answer_of_unknown_size_leaves_space_to_others(index, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "KEPT_FREE", 1 << 60)
    with pytest.raises(OSError, match="MiB must stay free") as caught:
        fetch(index, tmp_path, "endless", size=0)
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_of_this_host_that_cannot_be_read_is_not_the_servers_fault(tmp_path):
    with pytest.raises(downloads.DownloadError, match=f"{tmp_path}/ca.pem must be a file with certificates") as caught:
        downloads.fetch("https://127.0.0.1:9/spark", str(tmp_path / NAME), SHA256, ca=str(tmp_path / "ca.pem"))
    assert "curl" not in str(caught.value)


def test_a_password_in_the_address_is_not_shown(index, tmp_path):
    index.faults[NAME] = ["404"]
    address = index.url.replace("http://", "http://svc:canary@")
    with pytest.raises(downloads.DownloadError) as caught:
        downloads.fetch(f"{address}/files/{NAME}", str(tmp_path / NAME), SHA256)
    assert "canary" not in str(caught.value)


def test_a_part_of_a_killed_run_is_removed_and_that_of_a_running_one_stays(index, tmp_path):
    (tmp_path / f"{NAME}.part-{ended()}").write_text("old")
    (tmp_path / f"{NAME}.part-{os.getppid()}").write_text("another run")
    fetch(index, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([NAME, f"{NAME}.part-{os.getppid()}"])


FETCH = """
import io, json
downloads.PAUSE = 0
try:
    answer = downloads.receive(sys.argv[2], io.BytesIO(), int(sys.argv[3]), processes.clock() + 2)
except downloads.DownloadError as problem:
    answer = str(problem)
print(json.dumps(answer))
"""


def received(python: str, index: Index, *faults: str) -> object:
    """(sha256, size) as a list, or the reason."""
    index.files[NAME] = CONTENT
    index.faults[NAME] = list(faults)
    url = f"{index.url}/files/{NAME}"
    command = [python, "-B", "-c", AS_ON_A_HOST + FETCH, UTILITIES, url, str(len(CONTENT))]
    began = time.monotonic()
    completed = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert time.monotonic() - began < 6
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("trickle", "not complete in the time allowed"),
        ("hang", "not complete in the time allowed"),
        ("truncate", f"the answer ended after {len(CONTENT) // 2} of {len(CONTENT)} bytes"),
        ("404", "status 404"),
        ("503", "status 503"),
        ("redirect", "a redirect to another server (http://localhost:"),
        ("around", "redirects in a loop"),
    ],
)
def test_a_download_ends_in_time_with_the_reason(index, python, fault, reason):
    assert reason in str(received(python, index, *[fault] * 9))


class Endless(socketserver.StreamRequestHandler):
    """A proxy, or a server that speaks TLS: its answer never ends, and each read gets a byte."""

    def handle(self) -> None:
        proxy = self.rfile.peek(1)[:1] == b"C"  # CONNECT
        record = bytes([22, 3, 3, 64, 0]) + bytes([2, 0, 63, 0])  # of 16 KB, with the server's first answer
        content = b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10**4 if proxy else record + bytes(10**4)
        try:
            for begin in range(len(content)):
                self.wfile.write(content[begin : begin + 1])
                time.sleep(0.1)
        except OSError:
            return


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize("behind", ["proxy", "server"])
def test_a_connection_that_is_never_made_ends_in_time(python, behind):
    """No read of it waits long, so only the limit of the whole download ends it."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        url = f"https://{address if behind == 'server' else 'example.com'}/"
        proxies = {"https_proxy": f"http://{address}" if behind == "proxy" else "", "no_proxy": ""}
        command = [python, "-B", "-c", AS_ON_A_HOST + FETCH.replace("+ 2", "+ 2, proxied=True"), UTILITIES, url, "9"]
        environment = {**os.environ, **proxies}
        completed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=8, check=True)
        server.shutdown()
    assert json.loads(completed.stdout.splitlines()[-1]) == "not complete in the time allowed"


@pytest.mark.parametrize("python", HOST_PYTHONS)
@pytest.mark.parametrize(
    ("fault", "size"), [("endless", len(CONTENT) + 1), ("login", len(LOGIN)), ("flip", len(CONTENT))]
)
def test_other_bytes_are_seen_and_at_most_one_too_many_is_read(index, python, fault, size):
    """Who fetches compares them with the lock."""
    sha256, received_size = received(python, index, fault)
    assert received_size == size
    assert sha256 != SHA256


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_two_faults_and_then_the_file(index, python):
    assert received(python, index, "503", "truncate") == [SHA256, len(CONTENT)]


def test_the_login_of_netrc_is_sent_to_its_server_alone(index, tmp_path, monkeypatch):
    index.login = "svc:canary"
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login svc password canary\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    (tmp_path / "there").mkdir()
    assert fetch(index, tmp_path / "there").read_bytes() == CONTENT
    monkeypatch.setattr(index, "url", index.url.replace("127.0.0.1", "localhost"))
    fetch(index, tmp_path / "there")
    assert index.received[-1] == ("localhost", "")
