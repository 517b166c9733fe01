"""An HTTP server on loopback, for as long as a test needs it."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Quiet(BaseHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """The tests' output stays readable."""

    def answer(self, code: int, body: bytes, **headers: str) -> None:
        """headers: their names have _ for -."""
        self.send_response(code)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler], *certificate: Path) -> Iterator[str]:
    """The server's address. certificate: the files of the certificate and of its key, for https."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def trickling(pause: float = 0.1) -> Iterator[str]:
    """A server that sends the beginning of an answer, then a byte now and then, for ever. Its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def trickle(connection: socket.socket) -> None:
        try:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
            while not done.wait(pause):
                connection.sendall(b" ")
        except OSError:
            return
        finally:
            connection.close()

    def accept() -> None:
        while not done.is_set():
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=trickle, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        listener.close()
