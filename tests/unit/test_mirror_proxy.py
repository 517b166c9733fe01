"""The mirror host reaches its index through a proxy alone: a real one, which forwards HTTP, tunnels HTTPS (CONNECT), and may want a login."""

import base64
import hashlib
import http.client
import json
import select
import socket
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from ansible.module_utils.hadoop_dl_host import mirror_files, mirror_index
from ansible.module_utils.hadoop_dl_host.mirror_index import MirrorError
from faulty_server import Handler, Index
from host_modules import run
from loopback import Quiet, served

NAME = "pypi.invalid"  # no name service has it: only the proxy knows where it is
WHEEL = "numpy-1.16.6-py3-none-any.whl"
BIG = bytes(range(256)) * 20000  # 5 MB: several chunks
LOGIN = "svc:can/ary"
QUOTED = "svc:can%2Fary"


class Proxy(Quiet):
    """What squid does for a client: absolute addresses are fetched for it, CONNECT joins it to a server."""

    protocol_version = "HTTP/1.1"
    login = ""
    port = 0  # of the server that NAME is
    limits: Iterator[int] = repeat(1 << 60)  # bytes after which each tunnel or answer breaks
    seen: list[tuple[str, str]]

    def is_admitted(self) -> bool:
        expected = f"Basic {base64.b64encode(self.login.encode()).decode()}" if self.login else ""
        self.seen.append((self.command, self.path))
        if expected in ("", self.headers.get("Proxy-Authorization")):
            return True
        self.answer(407, b"", Proxy_Authenticate='Basic realm="proxy"')
        return False

    def do_GET(self) -> None:
        if not self.is_admitted():
            return
        parts = urlsplit(self.path)
        assert parts.hostname == NAME, "only requests of a proxy's client have the whole address"
        server = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
        server.request("GET", parts.path, headers=headers)
        answer = server.getresponse()
        body, limit = answer.read(), next(self.limits)
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:limit])
        self.close_connection = len(body) > limit
        server.close()

    def do_CONNECT(self) -> None:
        if not self.is_admitted():
            return
        assert self.path.rpartition(":")[0] == NAME
        self.send_response(200, "Connection established")
        self.end_headers()
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as server:
            remaining_bytes = next(self.limits)
            pair = {self.connection: server, server: self.connection}
            while remaining_bytes > 0:
                ready = select.select(list(pair), [], [], 20)[0]
                chunks = {connection: connection.recv(65536) for connection in ready}
                if not ready or not all(chunks.values()):
                    break
                for connection, content in chunks.items():
                    pair[connection].sendall(content)
                    remaining_bytes -= len(content) if connection is server else 0
        self.close_connection = True


class Way:
    """An index that only the proxy reaches."""

    def __init__(self, scheme: str, index: Index, proxy: type[Proxy], port: int, ca: str) -> None:
        self.scheme, self.index, self.proxy, self.port, self.ca = scheme, index, proxy, port, ca

    def environment(self, login: str = "") -> dict[str, str]:
        address = f"http://{login + '@' if login else ''}127.0.0.1:{self.port}"
        return {
            f"{self.scheme}_proxy": address,
            "PIP_INDEX_URL": f"{self.scheme}://{NAME}/simple",
            "SSL_CERT_FILE": self.ca,
        }


@pytest.fixture(params=["http", "https"])
def way(request: pytest.FixtureRequest, certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Way]:
    proxies = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
    for name in (*proxies, *map(str.upper, proxies), "PIP_CERT", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    mirror_index._pages.clear()
    index = Index()
    files = (certificates / "server.crt", certificates / "server.key") if request.param == "https" else ()
    with served(type("Bound", (Handler,), {"index": index}), *files) as address:
        handler = type("BoundProxy", (Proxy,), {"port": urlsplit(address).port, "seen": []})
        with served(handler) as proxy:
            yield Way(request.param, index, handler, urlsplit(proxy).port, str(certificates / "server.ca"))


def fetch(way: Way, root: Path, monkeypatch: pytest.MonkeyPatch, login: str = "", **others: str) -> list[str]:
    for name, value in {**way.environment(login), **others}.items():
        monkeypatch.setenv(name, value)
    artifact = way.index.artifact(WHEEL, BIG)
    return mirror_files.fetch_artifacts([artifact], str(root), pause=lambda seconds: None)


def test_page_and_file_come_through_the_proxy(way, tmp_path, monkeypatch):
    assert fetch(way, tmp_path, monkeypatch) == [WHEEL]
    assert hashlib.sha256((tmp_path / "wheels" / WHEEL).read_bytes()).digest() == hashlib.sha256(BIG).digest()
    commands = {command for command, _ in way.proxy.seen}
    assert commands == {"CONNECT" if way.scheme == "https" else "GET"}
    assert len(way.proxy.seen) == len(way.index.requests) == 2


def test_without_the_proxy_there_is_no_way(way, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", NAME)
    with pytest.raises(MirrorError, match="did not deliver it in 5 attempts"):
        fetch(way, tmp_path, monkeypatch)
    assert way.proxy.seen == []


def test_a_proxy_with_a_login(way, tmp_path, monkeypatch):
    way.proxy.login = LOGIN
    assert fetch(way, tmp_path, monkeypatch, QUOTED) == [WHEEL]
    assert {login for _, login in way.index.received} == {""}  # the index does not see it


@pytest.mark.parametrize("way", ["https"], indirect=True)
def test_the_login_of_the_index_is_inside_the_tunnel(way, tmp_path, monkeypatch):
    way.proxy.login = LOGIN
    fetch(way, tmp_path, monkeypatch, QUOTED, PIP_INDEX_URL=f"https://reader:other@{NAME}/simple")
    assert {login for _, login in way.index.received} == {"reader:other"}
    assert {path for _, path in way.proxy.seen} == {f"{NAME}:443"}


@pytest.mark.parametrize("login", ["", "svc:other"])
def test_a_login_that_the_proxy_refuses_is_told_at_once(way, tmp_path, monkeypatch, login):
    way.proxy.login = LOGIN
    with pytest.raises(MirrorError, match=r"407.*Give the proxy's user and password in mirror_environment") as error:
        fetch(way, tmp_path, monkeypatch, login)
    assert "other" not in str(error.value)
    assert len(way.proxy.seen) == 1
    assert way.index.requests == []


def test_a_download_that_the_proxy_breaks_continues(way, tmp_path, monkeypatch):
    way.proxy.limits = chain([1 << 60, 1 << 20], repeat(1 << 60))  # the page is whole
    assert fetch(way, tmp_path, monkeypatch) == [WHEEL]
    ranges = [header for path, header in way.index.requests if path.endswith(WHEEL)]
    assert ranges[0] is None
    assert ranges[1].startswith("bytes=")
    assert int(ranges[1][len("bytes=") : -1]) > 0


def test_a_proxy_that_is_not_there_is_told(way, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        way.port = free.getsockname()[1]
    with pytest.raises(MirrorError, match="Check network, proxy and DNS of this host"):
        fetch(way, tmp_path, monkeypatch)


def test_the_module_takes_the_proxy_from_mirror_environment(way, tmp_path):
    """As the role gives it: on standard input, and with nothing of it in the answer."""
    way.proxy.login = LOGIN
    artifact = way.index.artifact(WHEEL, BIG)
    arguments = {"root": str(tmp_path / "mirror"), "artifacts": [artifact], "timeout": 60}
    result = run("mirror_artifacts", **arguments, environment=way.environment(QUOTED))
    assert result["fetched"] == [WHEEL]
    arguments["root"] = str(tmp_path / "other")
    refusal = run("mirror_artifacts", **arguments, environment=way.environment("svc:wrong%2Fone"))
    assert "407" in refusal["msg"]
    for text in (json.dumps(result), json.dumps(refusal)):
        for secret in ("can/ary", "can%2Fary", "wrong/one", "wrong%2Fone"):
            assert secret not in text
