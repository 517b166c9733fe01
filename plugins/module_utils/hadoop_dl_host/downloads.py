# -*- coding: utf-8 -*-
"""Download within a limit of bytes and of time, and without telling secrets. Python 2.7 and 3, standard library only.

A server that sends a byte a minute satisfies every timeout of a single read; so a timer closes the connection.
"""

from __future__ import absolute_import, division, print_function

import base64
import errno
import hashlib
import netrc
import os
import re
import socket
import ssl
import time

from . import processes, whole_files

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

    from httplib import HTTPConnection, HTTPException, HTTPSConnection  # novermin
    from urllib2 import (  # novermin
        AbstractHTTPHandler,
        HTTPError,
        HTTPHandler,
        HTTPRedirectHandler,
        HTTPSHandler,
        ProxyHandler,
        Request,
        build_opener,
    )
    from urlparse import urlsplit, urlunsplit  # novermin

CHUNK = 1 << 20
LARGEST = 16 << 30  # bytes, if the size is not known; NVIDIA's largest installer has 6 GB
KEPT_FREE = 512 << 20  # bytes that a download of a file leaves to the file system's other users
SILENCE = 60  # seconds without a byte
TRIES = 3
PAUSE = 1  # seconds before the second try; before the third it is twice that
FINAL = (401, 403, 404, 407, 410)  # another try would answer the same
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
LATE = "not complete in the time allowed"


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


def netrc_header(url):
    """The login that the user's ~/.netrc, or the file of NETRC, has for this server; None without one."""
    try:
        credentials = netrc.netrc(os.environ.get("NETRC")).authenticators(urlsplit(url).hostname or "")
    except (IOError, OSError, netrc.NetrcParseError):
        return None
    return login_header(credentials[0], credentials[2]) if credentials and credentials[0] and credentials[2] else None


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


# --- a file or a page, within its limits ---------------------------------------------------------------------------


def receive(url, sink, limit, end, ca=None, login=None, proxied=False, each=None):
    """Write the answer to the binary file `sink`; its sha256 and size. At most limit + 1 bytes are read, until `end` of the clock.

    login: a header's value. Redirects to another server are refused, so that no other one gets it.
    """
    attempt = 1
    while True:
        try:
            return _receive(url, sink, limit, end, ca, login, proxied, each)
        except DownloadError as problem:
            if problem.final or attempt == TRIES or processes.clock() >= end:
                raise
        time.sleep(attempt * PAUSE)
        attempt += 1
        sink.seek(0)
        sink.truncate()


def _receive(url, sink, limit, end, ca, login, proxied, each):
    digest = hashlib.sha256()

    def arrived(chunk):
        digest.update(chunk)
        if each is not None:
            each()

    seconds_left = max(0.1, end - processes.clock())
    watch = Watch(seconds_left)
    try:
        headers = {"Authorization": login} if login else {}
        answer = open_url(url, headers, ca, proxied, silence=min(SILENCE, seconds_left), watch=watch)
        try:
            if answer.getcode() not in (200, None):  # None: of a file
                raise DownloadError("status %d" % answer.getcode(), False, answer.getcode())
            size = copy(answer, sink, limit, arrived)
        finally:
            answer.close()
        if watch.late:
            raise DownloadError("%s (%d bytes arrived)" % (LATE, size), True)
        return digest.hexdigest(), size
    except HTTPError as error:
        if error.msg.startswith(HTTPRedirectHandler.inf_msg):
            raise DownloadError("redirects in a loop", True)
        raise DownloadError("status %d %s" % (error.code, error.msg), error.code in FINAL, error.code)
    except (IOError, OSError, ValueError, EOFError, HTTPException) as error:
        if getattr(error, "errno", None) in OF_THE_DISK:
            raise
        if watch.late or processes.clock() >= end:  # the connection's own limit may come before the timer
            raise DownloadError(LATE, True)
        reason = getattr(error, "reason", error)
        raise DownloadError((str(reason) or reason.__class__.__name__) + _clock_hint(reason))
    finally:
        watch.close()


def _clock_hint(error):
    """A certificate is refused if the host's clock is wrong; Python 2.7 and 3.6 do not say for what a certificate is refused."""
    if not isinstance(error, ssl.SSLError) or "certificate verify failed" not in str(error).lower():
        return ""
    return " (this host's clock shows %s UTC; correct it, or the certificate)" % time.strftime(
        "%Y-%m-%d %H:%M", time.gmtime()
    )


def fetch(url, path, sha256, size=0, seconds=3600, ca=None, proxied=False, mode=0o600):
    """Have the file at path, or raise DownloadError, or OSError of this host's disk, and leave what was there.

    Only the right bytes get this name.
    """
    display_url, part = without_secrets(url), whole_files.own_name(path + ".part")
    if urlsplit(url).scheme == "https":
        trust(ca)  # what is wrong with the bundle is no answer of the server

    def leave_space():
        space = os.statvfs(part)
        if space.f_bavail * space.f_frsize < KEPT_FREE:
            raise OSError(errno.ENOSPC, "%d MiB must stay free" % (KEPT_FREE >> 20), os.path.dirname(path))

    try:
        with create(part) as sink:
            login = None if "@" in urlsplit(url).netloc else netrc_header(url)
            try:
                digest, have = receive(
                    url, sink, size or LARGEST, processes.clock() + seconds, ca, login, proxied, leave_space
                )
            except DownloadError as problem:
                raise DownloadError(
                    "%s is required, but it could not be fetched: %s. Check that it is served (curl -I %s)."
                    % (display_url, str(problem).replace(url, display_url), display_url)
                )
            os.fsync(sink.fileno())
        if have > (size or LARGEST):
            raise DownloadError(
                "%s must have %s bytes, but it has more. Nothing was installed. Check what that server delivers."
                % (display_url, "%d" % size if size else "at most %d" % LARGEST)
            )
        if digest != sha256:
            with open(part, "rb") as handle:
                head = handle.read(64)
            page = re.search(b"<(!doctype|html|[?]xml)", head, re.I)
            raise DownloadError(
                "%s must have the sha256 %s, but it has %s (%d bytes).%s It was not used."
                % (display_url, sha256, digest, have, " It is a web page, such as a login page." if page else ""),
                sha256=digest,
            )
        os.chmod(part, mode)
        os.rename(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def create(path):
    """A new file that only its owner can read or write."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
