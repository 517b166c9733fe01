"""One request of a server, within a limit of bytes and of time, and without telling secrets. Python 2.7 and 3, standard library only.

A server that sends a byte a minute satisfies every timeout of a single read; so a timer closes the connection.
"""

import base64
import socket
import ssl

from . import processes

try:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # novermin
    from urllib.error import HTTPError  # novermin
    from urllib.parse import unquote, urlsplit, urlunsplit  # novermin
    from urllib.request import (  # novermin
        AbstractHTTPHandler,
        HTTPHandler,
        HTTPRedirectHandler,
        HTTPSHandler,
        ProxyHandler,
        Request,
        build_opener,
    )
except ImportError:  # Python 2.7
    from urllib import unquote  # novermin

    from httplib import HTTPConnection, HTTPException, HTTPSConnection  # novermin  # noqa: F401 (for downloads)
    from urllib2 import (  # novermin
        AbstractHTTPHandler,
        HTTPError,  # noqa: F401 (the same)
        HTTPHandler,
        HTTPRedirectHandler,
        HTTPSHandler,
        ProxyHandler,
        Request,
        build_opener,
    )
    from urlparse import urlsplit, urlunsplit  # novermin

CHUNK = 1 << 20
SILENCE = 60  # seconds without a byte


class DownloadError(Exception):
    """What was answered instead of the file. status: of HTTP, if it had one. sha256: of the bytes, if they are other ones."""

    def __init__(self, text, final=False, status=None, sha256=None):
        Exception.__init__(self, text)
        self.final, self.status, self.sha256 = final, status, sha256


# --- addresses -----------------------------------------------------------------------------------------------------


def without_secrets(url):
    """The address as it may be shown: no user, no password, no query. A path is not changed."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")) if parts.netloc else url


def server_of(url):
    """Scheme, host and port: what a login is given to."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def login_header(user, password):
    text = "%s:%s" % (user, password)
    return "Basic " + base64.b64encode(text if isinstance(text, bytes) else text.encode("utf-8")).decode("ascii")


# --- one request ---------------------------------------------------------------------------------------------------

_contexts = {}  # type: dict


def trust(bundle):
    """The context for this CA bundle; empty for the system's."""
    if bundle not in _contexts:
        try:
            _contexts[bundle] = ssl.create_default_context(cafile=bundle or None)
        except (IOError, OSError) as error:  # ssl.SSLError is one
            reason = "it has none" if isinstance(error, ssl.SSLError) else error.strerror
            raise DownloadError(
                "%s must be a file with certificates in PEM format on this host, but: %s" % (bundle, reason), True
            )
    return _contexts[bundle]


class Redirects(HTTPRedirectHandler):
    """One to another server is refused, or followed without the login; urllib would send it there. elsewhere: None refuses all."""

    def __init__(self, elsewhere):
        self.elsewhere = elsewhere

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if self.elsewhere is None:
            return None
        same_server = server_of(newurl) == server_of(req.get_full_url())
        if not same_server and not self.elsewhere:
            server = "%s://%s" % (urlsplit(newurl).scheme, urlsplit(newurl).netloc.rpartition("@")[2])
            raise DownloadError("a redirect to another server (%s), which is not followed" % server, True)
        code = 307 if code == 308 else code  # what Python 2.7 and 3.6 know
        following = HTTPRedirectHandler.redirect_request(self, req, fp, code, msg, headers, newurl)
        if following is not None:
            following.headers.pop("Proxy-authorization", None)  # the proxy's handler sets it again
            if not same_server:
                following.headers.pop("Authorization", None)
        return following

    http_error_308 = HTTPRedirectHandler.http_error_302


class Watch(object):
    """Ends every connection that it watches when the time is over."""

    def __init__(self, seconds):
        self.sockets = []  # copies: if the server announces the end, Python 2.7 closes its own while it still reads
        self.late = False
        self.timer = processes.Timer(seconds, self.end)

    def add(self, connection):
        self.sockets.append(socket.fromfd(connection.fileno(), connection.family, socket.SOCK_STREAM))
        if self.late:
            self.end()

    def end(self):
        self.late = True
        for sock in self.sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except (IOError, OSError):
                continue  # not connected any more

    def close(self):
        self.timer.cancel()
        for sock in self.sockets:
            sock.close()


def _connections(kind, watch, **settings):
    """A class of connections for urllib. 2.7 has `context` since 2.7.9, and RHEL 7's 2.7.5 by a backport."""

    class Connection(kind):
        def __init__(self, host, **more):
            more.update(settings)
            kind.__init__(self, host, **more)

        def __setattr__(self, name, value):
            self.__dict__[name] = value
            if name == "sock" and value is not None and watch is not None:
                watch.add(value)  # before a proxy answers, and before the handshake

    return Connection


class _Http(HTTPHandler):
    def __init__(self, watch):
        AbstractHTTPHandler.__init__(self)
        self.watch = watch

    def http_open(self, req):
        return self.do_open(_connections(HTTPConnection, self.watch), req)


class _Https(HTTPSHandler):
    def __init__(self, watch, ca):
        AbstractHTTPHandler.__init__(self)  # HTTPSHandler's reads the system's certificates
        self.watch, self.ca = watch, ca

    def https_open(self, req):
        return self.do_open(_connections(HTTPSConnection, self.watch, context=trust(self.ca)), req)


def open_url(url, headers=None, ca=None, proxied=False, elsewhere=False, silence=None, watch=None):
    """The answer of the server; user and password in the address become a header.

    ca: CA bundle for https; empty for the system's. proxied: with the proxies of the environment. elsewhere: a redirect to another
    server is followed, without the login.
    """
    headers = dict(headers or {})
    parts = urlsplit(url)
    login, _, host = parts.netloc.rpartition("@")
    if login:
        user, _, password = login.partition(":")
        headers["Authorization"] = login_header(unquote(user), unquote(password))
        url = urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    handlers = [Redirects(elsewhere), _Http(watch), _Https(watch, ca)] + ([] if proxied else [ProxyHandler({})])
    return build_opener(*handlers).open(Request(url, headers=headers), timeout=silence or SILENCE)


def copy(answer, sink, limit, each):
    """Write the answer to `sink`; its size. At most limit + 1 bytes are read; each(chunk) is called after every one.

    EOFError if the answer ends before its announced size.
    """
    size = 0
    announced = answer.headers.get("Content-Length") or ""
    while size <= limit:
        chunk = answer.read(min(CHUNK, limit + 1 - size))
        if not chunk:
            break
        sink.write(chunk)
        size += len(chunk)
        each(chunk)
    if size <= limit and announced.isdigit() and size < int(announced):
        raise EOFError("the answer ended after %d of %s bytes" % (size, announced))
    sink.flush()
    return size
