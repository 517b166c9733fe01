# -*- coding: utf-8 -*-
"""Download a file whose sha256 is known onto a host: within a time, a size and the free space, from one server. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import glob
import hashlib
import os
import re

from ansible.module_utils.six.moves.urllib.error import HTTPError
from ansible.module_utils.six.moves.urllib.parse import urljoin, urlsplit, urlunsplit
from ansible.module_utils.urls import open_url

from . import processes, whole_files

CHUNK = 1 << 20
LARGEST = 16 << 30  # bytes, if the size is not known; NVIDIA's largest installer has 6 GB
KEPT_FREE = 512 << 20  # bytes that a download leaves to the file system's other users
REDIRECTS = 5
SILENCE = 60  # seconds without a byte


class DownloadError(Exception):
    """What is required, what was found and what to do next. sha256: of the bytes, if they are other ones."""

    sha256 = None


def without_secrets(url):
    """The address as it may be shown: no user, no password, no query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def open_here(url, ca, proxied):
    """The answer of this server. A redirect to another server is refused: what serves a host is chosen by the site."""
    first = urlsplit(url)
    for _ in range(REDIRECTS):
        try:
            return open_url(
                url, timeout=SILENCE, use_proxy=proxied, ca_path=ca, follow_redirects="none", decompress=False
            )
        except HTTPError as error:
            target = error.headers.get("Location")
            if error.code not in (301, 302, 303, 307, 308) or not target:
                raise
            target = urljoin(url, target)
            parts = urlsplit(target)
            if (parts.scheme, parts.hostname, parts.port) != (first.scheme, first.hostname, first.port):
                raise DownloadError(
                    "%s must deliver the file itself, but it redirects to %s. Nothing was fetched from there. Set the address to a "
                    "server that delivers it." % (without_secrets(url), without_secrets(target))
                )
            url = target
    raise DownloadError(
        "%s must deliver the file, but it redirects in a loop. Correct that server." % without_secrets(url)
    )


def copy(url, path, size, ca, proxied):
    """Write the answer to path; {"sha256", "size"}, or {"problem"}."""
    most = size or LARGEST
    digest, have = hashlib.sha256(), 0
    try:
        answer = open_here(url, ca, proxied)
        with open(path, "wb") as handle:
            while have <= most:
                space = os.statvfs(path)
                if space.f_bavail * space.f_frsize < KEPT_FREE:
                    return {
                        "problem": "%s must fit into %s and leave %d MB free, but the file system is full after %d MB. Free some space "
                        "and run again." % (without_secrets(url), os.path.dirname(path), KEPT_FREE >> 20, have >> 20)
                    }
                chunk = answer.read(min(CHUNK, most + 1 - have))
                if not chunk:
                    break
                have += len(chunk)
                digest.update(chunk)
                handle.write(chunk)
            handle.flush()
            os.fsync(handle.fileno())
    except DownloadError as problem:
        return {"problem": str(problem)}
    except Exception as error:  # every kind of network trouble, by whatever the libraries below raise
        return {
            "problem": "%s is required, but it could not be fetched: %s. Check that it is served (curl -I %s)."
            % (without_secrets(url), str(error).replace(url, without_secrets(url)), without_secrets(url))
        }
    if have > most:
        return {
            "problem": "%s must have %s bytes, but it has more. Nothing was installed. Check what that server delivers."
            % (without_secrets(url), "%d" % size if size else "at most %d" % LARGEST)
        }
    return {"sha256": digest.hexdigest(), "size": have, "head": repr(head(path))}


def head(path):
    with open(path, "rb") as handle:
        return handle.read(64)


def fetch(url, path, sha256, size=0, seconds=3600, ca=None, proxied=False, mode=0o600):
    """Have the file at path, or raise DownloadError and leave what was there. Only the right bytes get this name."""
    part = "%s.part-%d" % (path, os.getpid())
    for other in glob.glob(glob_escape(path) + ".part-*"):
        if not whole_files.is_being_written(other):
            os.unlink(other)
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        try:
            found = processes.limited(lambda: copy(url, part, size, ca, proxied), seconds)
        except processes.Late:
            raise DownloadError(
                "%s must arrive within %d s, but only %d bytes did. Check the network and that server, then run again."
                % (without_secrets(url), seconds, os.path.getsize(part))
            )
        if "problem" in found:
            raise DownloadError(found["problem"])
        if found["sha256"] != sha256:
            page = (
                " It is a web page, such as a login page."
                if re.search(r"<(!doctype|html|\?xml)", found["head"], re.I)
                else ""
            )
            problem = DownloadError(
                "%s must have the sha256 %s, but it has %s (%d bytes).%s It was not used."
                % (without_secrets(url), sha256, found["sha256"], found["size"], page)
            )
            problem.sha256 = found["sha256"]
            raise problem
        os.chmod(part, mode)
        os.rename(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


def glob_escape(path):
    return re.sub(r"([*?[])", r"[\1]", path)
