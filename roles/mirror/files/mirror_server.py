"""Serve the mirror's folders over HTTP(S), read-only. Python 3.6 and later, standard library only; started with -I by systemd.

Python's own http.server serves one connection at a time on 3.6, waits for idle ones without end, and shows every file
below its directory. Here no connection holds another: each has its thread, their number and every wait have a limit.
"""

import argparse
import contextlib
import html
import http.server
import ipaddress
import os
import posixpath
import re
import socket
import socketserver
import ssl
import sys
import threading
import time
import urllib.parse

FOLDERS = ("wheels", "files", "simple", "rpm", "deb")
MANIFEST = "manifest.json"  # the role writes it into a directory that is a mirror's; it is not served
THREADS = 256
PER_CLIENT = 32  # of them for one client, so that one that reads slowly leaves the others theirs
REQUEST_SECONDS = 20  # for a request to arrive; an idle connection ends then
CHUNK_SECONDS = 60  # for each chunk to leave
CHUNK = 256 * 1024
PAGE = "index.html"
LARGEST_PATH = 4096
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 (what an empty --bind means)


class Refused(Exception):
    """Why the server does not start."""


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, root, context=None):
        self.root = os.path.realpath(root)
        self.context = context
        self.clients = {}  # client: its connections, the oldest first
        self.deadlines = {}  # connection: when it must have made progress
        self.guard = threading.Lock()
        host = address[0] or ("::" if socket.has_ipv6 else EVERY_ADDRESS)
        try:
            self.listen((host, address[1]))
        except OSError:
            if address[0] or host != "::":
                raise
            self.listen((EVERY_ADDRESS, address[1]))  # a kernel without IPv6
        threading.Thread(target=self.end_late_connections, daemon=True).start()

    def listen(self, address):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        http.server.HTTPServer.__init__(self, address, Handler)

    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, self.server_address[0] != "::")
        socketserver.TCPServer.server_bind(self)  # HTTPServer would ask the name service for this host's name
        self.server_name, self.server_port = self.server_address[:2]

    def process_request(self, request, client_address):
        if not self.admitted(client_of(client_address[0]), request):
            try:
                request.setblocking(False)
                request.send(b"HTTP/1.1 503 Too many connections\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                pass
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread can be started
            self.leave(client_of(client_address[0]), request)
            raise

    def admitted(self, client, connection):
        """Take a connection for this client. If all are used, the client that has the most gives one to a client that has fewer."""
        with self.guard:
            own = self.clients.get(client, [])
            if len(own) >= PER_CLIENT:
                return False
            if sum(map(len, self.clients.values())) >= THREADS:
                most = max(self.clients.values(), key=len)
                if len(most) <= len(own) + 1:
                    return False
                end(most.pop(0))
            self.clients[client] = own + [connection]
            return True

    def leave(self, client, connection):
        with self.guard:
            self.clients[client] = [other for other in self.clients.get(client, []) if other is not connection]
            if not self.clients[client]:
                del self.clients[client]

    def process_request_thread(self, request, client_address):
        client = client_of(client_address[0])
        try:
            self.expect(request, REQUEST_SECONDS)
            if self.context:  # here, because a client may take its time to greet
                request.settimeout(REQUEST_SECONDS)
                request = self.encrypted(client, request)
                self.expect(request, REQUEST_SECONDS)
                request.do_handshake()
            super().process_request_thread(request, client_address)
        except OSError as error:
            say("%s: %s" % (client_address[0], error))
            self.shutdown_request(request)
        finally:
            with self.guard:
                self.deadlines.pop(request, None)
            self.leave(client, request)

    def encrypted(self, client, plain):
        """The same connection, which its plain socket no longer is."""
        connection = self.context.wrap_socket(plain, server_side=True, do_handshake_on_connect=False)
        with self.guard:
            self.deadlines.pop(plain, None)
            own = self.clients.get(client, [])
            if plain not in own:
                connection.close()
                raise OSError("it gave its connection to another client")
            own[own.index(plain)] = connection
        return connection

    def expect(self, connection, seconds):
        """The connection must make progress within this time."""
        with self.guard:
            self.deadlines[connection] = time.monotonic() + seconds

    def end_late_connections(self):
        """A client that sends a byte now and then never lets a socket's own timeout pass."""
        while True:
            time.sleep(1)
            now = time.monotonic()
            with self.guard:
                late = [connection for connection, end in self.deadlines.items() if end < now]
            for connection in late:
                end(connection)

    def handle_error(self, request, client_address):
        """A client that goes away is no news; anything else is one line, not a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            say("%s: %s: %r" % (client_address[0], type(error).__name__, error))


def client_of(address):
    """Who counts as one client: an address of IPv4, a network of IPv6: its hosts choose their addresses in it."""
    number = ipaddress.ip_address(address.partition("%")[0])
    number = getattr(number, "ipv4_mapped", None) or number
    return number.packed[:8]


def end(connection):
    with contextlib.suppress(OSError):  # it has ended
        connection.shutdown(socket.SHUT_RDWR)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "deeplearning-mirror", ""
    timeout = REQUEST_SECONDS

    def handle_one_request(self):
        self.server.expect(self.connection, REQUEST_SECONDS)
        super().handle_one_request()

    def do_GET(self):
        self.answer(True)

    def do_HEAD(self):
        self.answer(False)

    def answer(self, with_body):
        path = self.place()
        if path is None:
            self.send_error(404)
        elif os.path.isdir(path) and not urllib.parse.urlsplit(self.path).path.endswith("/"):
            self.start(301, 0, Location=urllib.parse.quote(posixpath.basename(path)) + "/")
        elif os.path.isdir(path) and os.path.isfile(os.path.join(path, PAGE)):
            self.file(os.path.join(path, PAGE), with_body)
        elif os.path.isdir(path):
            page = self.page(path)
            self.start(200, len(page), Content_Type="text/html; charset=utf-8")
            if with_body:
                self.send([page])
        else:
            self.file(path, with_body)

    def place(self):
        """The file or directory that is asked for; None for everything outside the folders, hidden, or not there."""
        if len(self.path) > LARGEST_PATH:
            return None
        url_path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        parts = [part for part in url_path.split("/") if part not in ("", ".")]  # apt asks for DIRECTORY/./FILE
        if not parts:
            return self.server.root
        if parts[0] not in FOLDERS or any(part.startswith(".") or "\0" in part for part in parts):
            return None
        folder = os.path.realpath(os.path.join(self.server.root, parts[0]))
        path = os.path.realpath(os.path.join(self.server.root, *parts))
        if os.path.dirname(folder) != self.server.root or not (path + "/").startswith(folder + "/"):
            return None  # a link that leaves the folder
        return path if os.path.isfile(path) or os.path.isdir(path) else None

    def page(self, path):
        """Links to what a folder has; pip reads them."""
        names = FOLDERS if path == self.server.root else [n for n in os.listdir(path) if not n.startswith(".")]
        lines = []
        for name in sorted(name for name in names if os.path.exists(os.path.join(path, name))):
            end = "/" if os.path.isdir(os.path.join(path, name)) else ""
            lines.append('<a href="%s">%s</a><br>\n' % (urllib.parse.quote(name) + end, html.escape(name) + end))
        return ("<!DOCTYPE html>\n<html><body>\n%s</body></html>\n" % "".join(lines)).encode("utf-8", "replace")

    def file(self, path, with_body):
        with open(path, "rb") as handle:
            status = os.fstat(handle.fileno())
            kind = "text/html; charset=utf-8" if path.endswith(".html") else "application/octet-stream"
            headers = {"Content_Type": kind, "Accept_Ranges": "bytes"}
            headers["Last_Modified"] = self.date_time_string(int(status.st_mtime))
            byte_range = self.asked(status.st_size)
            begin, end = byte_range or (0, status.st_size)
            if begin >= end and byte_range:
                self.start(416, 0, Content_Range="bytes */%d" % status.st_size)
                return
            if byte_range:
                headers["Content_Range"] = "bytes %d-%d/%d" % (begin, end - 1, status.st_size)
            self.start(206 if byte_range else 200, end - begin, **headers)
            if with_body:
                handle.seek(begin)
                self.send(self.chunks(handle, end - begin))

    def asked(self, size):
        """Begin and end of the bytes that are asked for; None for all of them, and for what is no single range."""
        match = re.match(r"bytes=(\d*)-(\d*)$", self.headers.get("Range", "").strip())
        if not match or not any(match.groups()) or "If-Range" in self.headers:
            return None
        first, last = match.groups()
        begin = int(first) if first else max(0, size - int(last))
        return begin, min(size, int(last) + 1) if first and last else size

    def chunks(self, handle, count):
        while count > 0:
            chunk = handle.read(min(CHUNK, count))
            if not chunk:
                self.close_connection = True  # the file became shorter: the client must see that something is missing
                return
            count -= len(chunk)
            yield chunk

    def start(self, code, length, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def send(self, chunks):
        for chunk in chunks:
            self.server.expect(self.connection, CHUNK_SECONDS)
            self.connection.settimeout(CHUNK_SECONDS)
            self.wfile.write(chunk)
        self.connection.settimeout(REQUEST_SECONDS)

    def log_message(self, form, *arguments):
        say("%s %s" % (self.client_address[0], form % arguments))


def say(line):
    """One line for the journal; what clients send cannot make two of it. Before 3.9 Python buffers this output."""
    sys.stderr.write("".join(c if c.isprintable() else "?" for c in line) + "\n")
    sys.stderr.flush()


def tls(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if hasattr(context, "minimum_version"):  # Python 3.7 and later
        context.minimum_version = ssl.TLSVersion.TLSv1_2  # novermin
    else:
        context.options |= ssl.OP_NO_SSLv2 | ssl.OP_NO_SSLv3 | ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1
    context.load_cert_chain(certificate, key)
    return context


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Serve a mirror's folders.")
    parser.add_argument("--root", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--bind", default="", help="an address of this host; all of them if it is empty")
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    options = parser.parse_args(arguments)
    try:
        if not os.path.isfile(os.path.join(options.root, MANIFEST)):
            raise Refused(
                "%s must be a directory that the role mirror filled, but it has no %s. Run the role."
                % (options.root, MANIFEST)
            )
        context = tls(options.certificate, options.key) if options.certificate else None
        server = Server((options.bind, options.port), options.root, context)
    except (Refused, OSError) as problem:  # ssl.SSLError is one
        sys.exit("mirror_server: %s" % problem)
    say("serving %s on port %d" % (options.root, server.server_address[1]))
    server.serve_forever()


if __name__ == "__main__":
    main()
