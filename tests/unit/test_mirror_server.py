"""The mirror's server, as a process, on the Pythons of mirror hosts: what it serves, what it refuses, and that nobody holds it."""

import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import python_files
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from interpreters import python
from mirror_process import CONTENT, SERVER, WHEEL, Mirror, running
from waiting import until


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "mirror"
    for name, content in {
        f"wheels/{WHEEL}": CONTENT,
        "wheels/.hidden": b"hidden",
        "files/a b.tar.gz": b"spark",
        "rpm/repodata/repomd.xml": b"<repomd/>",
        "manifest.json": b"{}",
        ".staging/part": b"part",
        "private/key": b"key",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "outside").write_text("outside")
    (root / "wheels/link.whl").symlink_to(tmp_path / "outside")
    (root / "wheels/inside.whl").symlink_to(WHEEL)
    return root


PYTHONS = [python("3.6"), pytest.param(sys.executable, id="controller")]


@pytest.fixture(params=PYTHONS)
def mirror(request: pytest.FixtureRequest, root: Path) -> Iterator[Mirror]:
    with running(request.param, root, change="REQUEST_SECONDS=2;CHUNK_SECONDS=2;THREADS=8") as server:
        yield server


def test_files_and_pages_are_served(mirror):
    status, body, headers = mirror.ask(f"/wheels/{WHEEL}")
    assert (status, body) == (200, CONTENT)
    assert "Content-Encoding" not in headers
    assert mirror.ask("/files/a%20b.tar.gz")[1] == b"spark"
    assert mirror.ask("/rpm/repodata/repomd.xml")[1] == b"<repomd/>"
    status, page, _ = mirror.ask("/wheels/")
    assert re.findall(r'href="([^"]+)"', page.decode()) == ["inside.whl", "link.whl", WHEEL]
    assert mirror.ask("/wheels")[0] == 301
    assert re.findall(r'href="([^"]+)"', mirror.ask("/")[1].decode()) == ["files/", "rpm/", "wheels/"]
    assert mirror.ask(f"/wheels/{WHEEL}", "HEAD")[:2] == (200, b"")
    assert mirror.ask(f"/wheels/./{WHEEL}")[:2] == (200, CONTENT)  # as apt asks


OUTSIDE = (
    *(
        "/manifest.json",
        "/private/key",
        "/.staging/part",
        "/wheels/.hidden",
        "/wheels/link.whl",
        "/nothing",
    ),
    *("/wheels/../private/key", "/wheels/%2e%2e/private/key", "/wheels/..%2fprivate/key", "//etc/passwd"),
    *("/wheels//../../../../etc/passwd", "/wheels/%00", "/" + "a" * 5000, "/wheels/" + "a" * 300),
)


def test_nothing_else_is_served(mirror):
    assert {path: mirror.ask(path)[0] for path in OUTSIDE} == dict.fromkeys(OUTSIDE, 404)


def test_ranges_resume_a_download(mirror):
    path, size = f"/wheels/{WHEEL}", len(CONTENT)
    status, body, headers = mirror.ask(path, Range=f"bytes={size - 100}-")
    assert (status, body) == (206, CONTENT[-100:])
    assert headers["Content-Range"] == f"bytes {size - 100}-{size - 1}/{size}"
    assert mirror.ask(path, Range="bytes=0-0")[:2] == (206, CONTENT[:1])
    assert mirror.ask(path, Range="bytes=-7")[:2] == (206, CONTENT[-7:])
    assert mirror.ask(path, Range=f"bytes={size}-")[0] == 416
    assert mirror.ask(path, Range="bytes=0-1,5-6")[:2] == (200, CONTENT)
    assert mirror.ask(path, Range="lines=1-2")[:2] == (200, CONTENT)


def test_nothing_can_be_written(mirror):
    assert [mirror.ask("/wheels/new.whl", method)[0] for method in ("PUT", "POST", "DELETE")] == [501] * 3


def test_an_idle_connection_stops_nobody_and_ends(mirror):
    connection = mirror.open()
    start = time.monotonic()
    assert mirror.ask(f"/wheels/{WHEEL}")[0] == 200
    assert time.monotonic() - start < 2
    assert connection.recv(1) == b""  # ended by the server, before the test's own limit of 10 s


def test_a_client_that_sends_a_byte_now_and_then_is_ended(mirror):
    connection = mirror.open()
    start = time.monotonic()
    while time.monotonic() - start < 12:
        try:
            connection.sendall(b"X")
        except OSError:
            break
        time.sleep(0.1)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("reads", [0, 1024])
def test_a_client_that_reads_nothing_or_a_little_now_and_then_is_ended(mirror, reads):
    (mirror.root / "files/large").write_bytes(b"x" * 30_000_000)
    connection = mirror.open()
    connection.sendall(b"GET /files/large HTTP/1.1\r\nHost: x\r\n\r\n")
    threads = Path(f"/proc/{mirror.process.pid}/task")
    until(lambda: len(list(threads.iterdir())) == 3)
    until(lambda: len(connection.recv(reads)) + len(list(threads.iterdir())) == reads + 2)  # who accepts and watches
    connection.close()


def test_more_connections_than_threads_are_refused_at_once_and_served_later(mirror):
    connections = [mirror.open(f"127.0.1.{number}") for number in range(8)]  # nobody has more than another
    until(lambda: mirror.ask("/wheels/")[0] == 503)
    for connection in connections:
        connection.close()
    until(lambda: mirror.ask("/wheels/")[0] == 200)


@pytest.mark.parametrize("addresses", [1, 8])
@pytest.mark.parametrize("interpreter", PYTHONS)
def test_addresses_that_read_slowly_leave_connections_to_others(root, interpreter, addresses):
    """Eight have all connections that there are: those of who has most end for who has fewer."""
    (root / "files/large").write_bytes(b"x" * 30_000_000)
    with running(interpreter, root) as mirror:  # with its own limits
        connections = [mirror.open(f"127.0.1.{number}") for number in range(addresses) for _ in range(32)]
        for connection in connections:
            connection.sendall(b"GET /files/large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        assert mirror.open("127.0.1.0").recv(12) == b"HTTP/1.1 503"
        assert [mirror.ask(f"/wheels/{WHEEL}", source="127.0.0.2")[:2] for _ in range(40)] == [(200, CONTENT)] * 40
        for connection in connections:
            connection.close()
        until(lambda: mirror.ask("/wheels/", source="127.0.1.0")[0] == 200)  # its connections count no longer


def test_who_counts_as_one_client():
    server = python_files.load(SERVER)
    same = [("10.0.0.1", "::ffff:10.0.0.1"), ("2001:db8::1", "2001:db8::ffff:1"), ("fe80::1%eth0", "fe80::2")]
    assert [server.client_of(one) == server.client_of(other) for one, other in same] == [True] * 3
    assert len({server.client_of(one) for one in ("10.0.0.1", "10.0.0.2", "2001:db8::1", "2001:db8:0:1::1")}) == 4


def test_twenty_clients_at_once_get_every_byte(root):
    with running(sys.executable, root) as mirror, ThreadPoolExecutor(20) as clients:
        answers = list(clients.map(mirror.ask, [f"/wheels/{WHEEL}"] * 20))
    assert [content for _, content, _ in answers] == [CONTENT] * 20


@pytest.mark.parametrize("place", ["/", "/home", "missing"])
def test_a_directory_that_is_no_mirror_is_refused(place):
    command = [sys.executable, "-I", str(SERVER), f"--root={place}", "--port=0"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert completed.returncode == 1
    assert completed.stderr == (
        f"mirror_server: {place} must be a directory that the role mirror filled, but it has no manifest.json. Run the role.\n"
    )


@pytest.mark.parametrize("interpreter", PYTHONS)
def test_it_serves_tls_and_a_silent_client_stops_nobody(root, certificates, interpreter):
    options = (f"--certificate={certificates}/server.crt", f"--key={certificates}/server.key")
    context = ssl.create_default_context(cafile=str(certificates / "server.ca"))
    with running(interpreter, root, *options) as mirror, mirror.open():
        url = f"https://localhost:{mirror.port}/wheels/{WHEEL}"
        with urllib.request.urlopen(url, context=context, timeout=10) as answer:
            assert answer.read() == CONTENT


def test_systemd_replaces_nothing_in_the_path_of_the_mirror():
    role = SERVER.parents[1]
    values = {"mirror_root": "/srv/50%m of $HOME", "mirror_python": "/usr/bin/python3", "ansible_managed": "Ansible"}
    for name in ("vars/main.yml", "defaults/main.yml"):
        values = yaml.safe_load((role / name).read_text()) | values
    template = (role / "templates/deeplearning-mirror.service.j2").read_text()
    unit = Templar(loader=DataLoader(), variables=values).template(template)
    [command] = re.findall("^ExecStart=(.*)$", unit, re.MULTILINE)
    assert command == (
        "/usr/bin/python3 -I /usr/local/lib/deeplearning-mirror/mirror_server.py "
        "'--root=/srv/50%%m of $$HOME' --port=8900 --bind="
    )
