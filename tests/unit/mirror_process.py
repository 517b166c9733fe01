"""The mirror's server as a process on a free port of this machine."""

import http.client
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVER = Path(__file__).resolve().parents[2] / "roles/mirror/files/mirror_server.py"
WHEEL = "six-1.17.0-py2.py3-none-any.whl"
CONTENT = bytes(range(256)) * 5000


@dataclass
class Mirror:
    root: Path
    port: int
    process: subprocess.Popen[str]

    def ask(
        self, path: str, method: str = "GET", source: str = "127.0.0.1", **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10, source_address=(source, 0))
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body, dict(answer.getheaders())

    def open(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10, source_address=(source, 0))


@contextmanager
def running(interpreter: str, root: Path, *more: str, change: str = "") -> Iterator[Mirror]:
    """The server on a free port; `change` edits its limits, so that tests need not wait for them."""
    program = root.parent / "mirror_server.py"
    text = SERVER.read_text()
    for edit in filter(None, change.split(";")):
        name, value = edit.split("=")
        text, count = re.subn(rf"^{name} = [^#\n]*", f"{name} = {value} ", text, flags=re.M)
        assert count == 1
    program.write_text(text)
    command = [interpreter, "-I", str(program), f"--root={root}", "--port=0", "--bind=127.0.0.1", *more]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd="/")
    line = process.stderr.readline()
    if "on port" not in line:
        process.kill()  # it may run on, and its output would have no end
        pytest.fail(line + process.stderr.read())
    threading.Thread(target=process.stderr.read, daemon=True).start()
    try:
        yield Mirror(root, int(line.split()[-1]), process)
    finally:
        process.kill()
        process.wait()
