"""Download a file or a page within a limit of bytes and of time, and without telling secrets. Python 2.7 and 3, standard library only."""

import errno
import hashlib
import netrc
import os
import re
import ssl
import time

from . import atomic_files, processes
from .connections import (
    SILENCE,
    DownloadError,
    HTTPError,
    HTTPException,
    HTTPRedirectHandler,
    Watch,
    copy,
    login_header,
    open_url,
    trust,
    urlsplit,
    without_secrets,
)

LARGEST = 16 << 30  # bytes, if the size is not known; NVIDIA's largest installer has 6 GB
KEPT_FREE = 512 << 20  # bytes that a download of a file leaves to the file system's other users
TRIES = 3
PAUSE = 1  # seconds before the second try; before the third it is twice that
FINAL = (401, 403, 404, 407, 410)  # another try would answer the same
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
LATE = "not complete in the time allowed"


def netrc_header(url):
    """The login that the user's ~/.netrc, or the file of NETRC, has for this server; None without one."""
    try:
        credentials = netrc.netrc(os.environ.get("NETRC")).authenticators(urlsplit(url).hostname or "")
    except (IOError, OSError, netrc.NetrcParseError):
        return None
    return login_header(credentials[0], credentials[2]) if credentials and credentials[0] and credentials[2] else None


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
    display_url, part = without_secrets(url), atomic_files.own_name(path + ".part")
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
