"""A package index on loopback that serves files well, or goes wrong as told: per file a list of faults, used up one per request."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from loopback import Quiet, served

LOGIN = b"<!DOCTYPE html><html><body>Please log in to the guest network</body></html>"


class Index:
    """`files` maps a name to its bytes; `faults` a name to what happens to the next requests for it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[str]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.form = "html"
        self.url = ""
        self.announced: dict[str, str] = {}  # sha256 that the index states, where it lies
        self.hidden: tuple[str, ...] = ()  # names that wheels/ does not list

        self.login = ""  # user:password that this server wants on its own name, 127.0.0.1
        self.received: list[tuple[str, str]] = []  # host name and login of every request
        self.meanwhile: Callable[[str], object] = lambda name: None  # what happens elsewhere when a file is asked for

    def artifact(self, name: str, content: bytes, folder: str = "wheels") -> dict[str, object]:
        self.files[name] = content
        project = name.split("-")[0]
        digest = hashlib.sha256(content).hexdigest()
        return {"folder": folder, "name": name, "project": project, "sha256": digest, "size": len(content)}

    def page(self, project: str) -> tuple[str, bytes]:
        names = [name for name in self.files if name.startswith(project + "-")]
        digests = {name: self.announced.get(name, hashlib.sha256(self.files[name]).hexdigest()) for name in names}
        if self.form == "json":
            rows = [{"filename": n, "url": f"../../files/{n}", "hashes": {"sha256": digests[n]}} for n in names]
            return "application/vnd.pypi.simple.v1+json", json.dumps({"files": rows}).encode()
        if self.form == "login":
            return "text/html", LOGIN
        links = "".join(f'<a href="../../files/{n}#sha256={digests[n]}">{n}</a><br/>' for n in names)
        return "text/html", f"<html><body>{links}</body></html>".encode()


class Handler(Quiet):
    index: Index
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        self.index.requests.append((self.path, self.headers.get("Range")))
        host = self.headers["Host"].partition(":")[0]
        login = base64.b64decode((self.headers.get("Authorization") or "").partition(" ")[2]).decode()
        self.index.received.append((host, login))
        if self.index.login and host == "127.0.0.1" and login != self.index.login:
            self.answer(401, b"who are you")
        elif self.path == "/wheels/":
            names = [name for name in self.index.files if name not in self.index.hidden]
            links = "".join(f'<a href="{name}">{name}</a>' for name in names)
            self.answer(200, f"<html><body>{links}</body></html>".encode(), Content_Type="text/html")
        elif parts[0] == "simple":
            kind, body = self.index.page(parts[1])
            if self.index.form == "trickle":
                self.without_end(body, 0.2)
            else:
                self.answer(200, body, Content_Type=kind)
        elif parts[-1] not in self.index.files:
            self.answer(404, b"no such file")
        else:
            self.file(parts[-1])

    def do_HEAD(self) -> None:
        """uv asks so whether it may read a part of a wheel; then it reads all of it."""
        self.index.requests.append((self.path, None))
        self.answer(405, b"")

    def file(self, name: str) -> None:
        faults = self.index.faults.get(name, [])
        fault = faults.pop(0) if faults else ""
        content = self.index.files[name]
        self.index.meanwhile(name)
        if fault == "503":
            return self.answer(503, b"busy")
        if fault == "404":
            return self.answer(404, b"gone")
        if fault == "login":
            return self.answer(200, LOGIN, Content_Type="text/html")
        if fault == "flip":
            content = content[:-1] + bytes([content[-1] ^ 255])
        if fault == "redirect":
            return self.answer(302, b"", Location=f"http://localhost:{self.server.server_address[1]}{self.path}")
        if fault == "around":
            return self.answer(302, b"", Location=self.path)
        if fault in ("trickle", "endless"):
            return self.without_end(content if fault == "trickle" else b"x" * 65536, 0.2 if fault == "trickle" else 0)
        if fault == "hang":
            time.sleep(3)
            self.close_connection = True
            return None
        byte_range = self.headers.get("Range")
        begin = int(byte_range.partition("=")[2].partition("-")[0]) if byte_range and fault != "norange" else 0
        headers = {"Content_Range": f"bytes {begin}-{len(content) - 1}/{len(content)}"} if begin or byte_range else {}
        if byte_range == "bytes=0-0" and fault != "norange":
            return self.answer(206, content[:1], Content_Range=f"bytes 0-0/{len(content)}")
        headers["Content_Length"] = str(len(content) - begin)
        keep = len(content) // 2 if fault == "truncate" else len(content)
        self.answer(206 if begin else 200, content[begin:keep], **headers)
        if fault == "truncate":
            self.close_connection = True
        return None

    def without_end(self, content: bytes, pause: float) -> None:
        """One byte after the other, or bytes for ever; until the client goes."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            for begin in range(10**9):
                self.wfile.write(content[begin : begin + 1] if pause else content)
                time.sleep(pause)
        except OSError:
            self.close_connection = True


@contextmanager
def serving(index: Index) -> Iterator[Index]:
    handler = type("BoundHandler", (Handler,), {"index": index})
    with served(handler) as index.url:
        yield index


class Files(Quiet, SimpleHTTPRequestHandler):
    """The files of a directory as they are."""


def serving_files(directory: Path) -> AbstractContextManager[str]:
    return served(partial(Files, directory=str(directory)))
