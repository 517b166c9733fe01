# -*- coding: utf-8 -*-
"""Fetch from the mirror within a limit of bytes and of time, without a proxy. Python 2.7 and 3, standard library only.

A server that sends a byte a minute satisfies every timeout of a single read; so a timer closes the connection.
"""

from __future__ import absolute_import, division, print_function

import base64
import errno
import hashlib
import io
import os
import socket
import ssl
import time

from . import processes

try:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # novermin
    from urllib.parse import urljoin, urlsplit  # novermin
except ImportError:  # Python 2.7
    from httplib import HTTPConnection, HTTPException, HTTPSConnection  # novermin
    from urlparse import urljoin, urlsplit  # novermin

CHUNK = 1 << 18
READ_TIMEOUT = 60  # seconds without any byte
PAGE_LIMIT = 10 * 1000 * 1000  # bytes of an index page
REDIRECTS = 3
TRIES = 3


class DownloadProblem(Exception):
    """What the mirror answered instead of the file; `final` if another try would answer the same. status: of HTTP, if it had one."""

    def __init__(self, text, final=False, status=None):
        Exception.__init__(self, text)
        self.final, self.status = final, status


def url_problem(url):
    """None for an address that can be fetched from; else what is wrong with it. It never repeats a password."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "mirror_url must be an http or https address."
    if "@" in parts.netloc:
        return "mirror_url must not contain a user or password: it would be visible in logs. Serve the mirror without a login."
    return None


def login_of(login):
    """The header's value for a mapping with user and password; None without one."""
    if not login or not login.get("user"):
        return None
    text = "%s:%s" % (login["user"], login.get("password", ""))
    return "Basic " + base64.b64encode(text if isinstance(text, bytes) else text.encode("utf-8")).decode("ascii")


def is_same_server(one, other):
    """Whether two addresses have scheme, host and port in common: only there a login is sent."""
    return server_of(one) == server_of(other)


def server_of(url):
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def fetch(url, sink, limit, end, ca=None, sleep=time.sleep, login=None):
    """Write the answer to the binary file `sink`; its sha256 and size. At most limit + 1 bytes are read, until `end`.

    login: as of login_of; redirects to another server are refused, so that no other one gets it.
    """
    for attempt in range(1, TRIES + 1):
        try:
            return _fetch(url, sink, limit, end, ca, login)
        except DownloadProblem as problem:
            if problem.final or attempt == TRIES or processes.clock() >= end:
                raise
        sleep(attempt)
        sink.seek(0)
        sink.truncate()
    return None


def _fetch(url, sink, limit, end, ca, login):
    headers = {"Accept-Encoding": "identity"}
    if login:
        headers["Authorization"] = login
    for _ in range(REDIRECTS + 1):
        parts = urlsplit(url)
        connection = _connection(parts, end, ca)
        late = []
        sockets = []  # copies: if the server announces the end, Python 2.7 closes its own while it still reads
        timer = processes.Timer(end - processes.clock(), lambda sockets=sockets, late=late: _close(sockets, late))
        try:
            connection.connect()
            sockets.append(socket.fromfd(connection.sock.fileno(), connection.sock.family, socket.SOCK_STREAM))
            if late:
                raise DownloadProblem("no connection in the time allowed", True)
            target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
            connection.request("GET", target, headers=headers)
            answer = connection.getresponse()
            if answer.status in (301, 302, 303, 307, 308):
                url = _redirected(url, answer.getheader("Location") or "")
                continue
            if answer.status != 200:
                final = answer.status in (401, 403, 404, 407, 410)
                raise DownloadProblem("status %d %s" % (answer.status, answer.reason), final, answer.status)
            return _copy(answer, sink, limit, late)
        except (IOError, OSError, ValueError, HTTPException) as error:
            if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO):
                raise  # of this host's disk
            if late or processes.clock() >= end:  # the connection's own limit may come before the timer
                raise DownloadProblem("not complete in the time allowed", True)
            raise DownloadProblem((str(error) or error.__class__.__name__) + _clock_hint(error))
        finally:
            timer.cancel()
            for one in [connection] + sockets:
                one.close()
    raise DownloadProblem("more than %d redirects" % REDIRECTS, True)


def _clock_hint(error):
    """A certificate is refused if the host's clock is wrong; Python 2.7 and 3.6 do not say for what a certificate is refused."""
    if not isinstance(error, ssl.SSLError) or "certificate verify failed" not in str(error).lower():
        return ""
    return " (this host's clock shows %s UTC; correct it, or the certificate)" % time.strftime(
        "%Y-%m-%d %H:%M", time.gmtime()
    )


def _close(sockets, late):
    late.append(True)
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except (IOError, OSError):
            continue  # not connected any more


def _connection(parts, end, ca):
    timeout = min(READ_TIMEOUT, max(0.1, end - processes.clock()))
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=ca)
        # 2.7 has `context` since 2.7.9, and RHEL 7's 2.7.5 by a backport.
        return HTTPSConnection(parts.hostname, parts.port, timeout=timeout, context=context)  # novermin
    return HTTPConnection(parts.hostname, parts.port, timeout=timeout)


def _redirected(url, location):
    found = urljoin(url, location)
    if not is_same_server(found, url):
        raise DownloadProblem("a redirect to another server (%s)" % urlsplit(found).netloc.rpartition("@")[2], True)
    return found


def _copy(answer, sink, limit, late):
    digest, size = hashlib.sha256(), 0
    promised = answer.getheader("Content-Length")
    while size <= limit:
        chunk = answer.read(min(CHUNK, limit + 1 - size))
        if not chunk:
            break
        digest.update(chunk)
        sink.write(chunk)
        size += len(chunk)
    if late:
        raise DownloadProblem("not complete in the time allowed (%d bytes arrived)" % size, True)
    if size <= limit and promised and promised.isdigit() and size < int(promised):
        raise DownloadProblem("the answer ended after %d of %s bytes" % (size, promised))
    sink.flush()
    return digest.hexdigest(), size


def fetch_page(url, end, ca=None, login=None):
    """An index page as text."""
    sink = io.BytesIO()
    _, size = fetch(url, sink, PAGE_LIMIT, end, ca, login=login)
    if size > PAGE_LIMIT:
        raise DownloadProblem("a page of more than %d bytes" % PAGE_LIMIT, True)
    return sink.getvalue().decode("utf-8", "replace")


def create(path):
    """A new file that only its owner can read or write."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
