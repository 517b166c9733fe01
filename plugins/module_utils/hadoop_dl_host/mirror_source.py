"""Where an environment's wheels come from: the project's own mirror, or a package index (PEP 503) of the site's. Python 2.7 and 3.

Every file is compared with the lock, so neither is trusted. A login is sent to the index's server alone, and shown nowhere.
"""

import io
import os
import re

from ansible.module_utils.six.moves.urllib.parse import unquote, urljoin, urlsplit

from . import connections, downloads, processes
from .environment_packages import Refused

LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"']+)["']""", re.IGNORECASE)
PAGE_LIMIT = 10 * 1000 * 1000  # bytes of an index page
INDEX = "/simple"  # the address of a package index ends so


def source(url, ca, timeout, login=None):
    """The Source at this address; one that ends with /simple is a package index. login: user and password."""
    kind = Index if url.rstrip("/").endswith(INDEX) else Source
    return kind(url, ca, timeout, login)


def linked(page, base):
    """File name -> address of every link of a page."""
    addresses = {}
    for link in LINK.findall(page):
        address = urljoin(base, link.replace("&amp;", "&").partition("#")[0])
        addresses[unquote(urlsplit(address).path.rpartition("/")[2])] = address
    return addresses


class Source(object):
    """The mirror, for one installation."""

    def __init__(self, url, ca, timeout, login=None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refused("mirror_url must be an http or https address. Correct it in the inventory.")
        if "@" in parts.netloc:
            raise Refused(
                "mirror_url must not contain a user or password: it would be visible in logs. Serve the mirror without a login. "
                "Correct it in the inventory."
            )
        if login and login.get("user") and parts.scheme != "https":
            raise Refused(
                "An address with a login must begin with https://, but %s does not: anybody could read the password. Let the "
                "server use https." % url
            )
        self.root, self.ca, self.timeout = url.rstrip("/") + "/", ca, timeout
        self.login = None
        if login and login.get("user"):
            self.login = downloads.login_header(login["user"], login.get("password", ""))
        self.url = self.root + "wheels/"
        self.end = processes.clock() + timeout

    def page(self, url, end):
        """The page's text."""
        sink = io.BytesIO()
        _, size = downloads.receive(url, sink, PAGE_LIMIT, end, self.ca, self.login)
        if size > PAGE_LIMIT:
            raise downloads.DownloadError("a page of more than %d bytes" % PAGE_LIMIT, True)
        return sink.getvalue().decode("utf-8", "replace")

    def address(self, entry):
        return self.url + entry["file"]

    def check(self, entries):
        """Every file of the lock must be on the mirror; all that are missing are reported at once."""
        try:
            page = self.page(self.url, self.end)
        except downloads.DownloadError as problem:
            raise Refused(self.silent(self.url, problem))
        links = linked(page, self.url)
        missing_files = sorted(entry["file"] for entry in entries if entry["file"] not in links)
        if missing_files:
            raise Refused(
                "%d files of the lock are required, but %s lists %d files without %s. Fill the mirror: ansible-playbook site.yml "
                "--tags always,mirror" % (len(entries), self.url, len(links), ", ".join(missing_files))
            )

    def fetch(self, entry, directory):
        """One file of the lock, verified; at most one byte more than the lock's size is read."""
        path = os.path.join(directory, entry["file"])
        address = self.address(entry)
        with downloads.create(path) as sink:
            try:
                sha256, size = downloads.receive(address, sink, entry["size"], self.end, self.ca, self.login)
            except downloads.DownloadError as problem:
                raise Refused(self.silent(address, problem))
        if (sha256, size) != (entry["sha256"], entry["size"]):
            os.unlink(path)
            prefix = "more than " if size > entry["size"] else ""
            raise Refused(
                "Every file must have the sha256 of the lock. %s on the mirror %s has other bytes (expected %s, %d bytes; got "
                "%s, %s%d bytes). Nothing of it was installed and the active environment is unchanged. Let the mirror check and "
                "fetch it again: ansible-playbook site.yml -e apply=all --tags always,mirror"
                % (entry["file"], self.url, entry["sha256"], entry["size"], sha256, prefix, min(size, entry["size"]))
            )
        return path

    def silent(self, url, problem):
        return (
            "The mirror must serve %s but the answer was: %s. Check mirror_url, that the mirror host serves (systemctl status "
            "deeplearning-mirror there) and that its port is open. The active environment is unchanged."
            % (url, problem)
        )


class Index(Source):
    """A package index as Artifactory, Nexus, Pulp and devpi serve it: simple/PROJECT/ links to the project's files."""

    def __init__(self, url, ca, timeout, login=None):
        Source.__init__(self, url, ca, timeout, login)
        self.url = self.root
        self.addresses = {}

    def check(self, entries):
        missing_files = []
        for entry in entries:
            page = self.url + entry["project"] + "/"
            try:
                links = linked(self.page(page, self.end), page)
            except downloads.DownloadError as problem:
                if problem.status != 404:
                    raise Refused(self.silent(page, problem))
                links = {}
            if entry["file"] in links:
                self.addresses[entry["file"]] = links[entry["file"]]
            else:
                missing_files.append(entry["file"])
        if missing_files:
            raise Refused(
                "%d files of the lock are required, but the index %s does not list %s. Take them into it."
                % (len(entries), self.url, ", ".join(sorted(missing_files)))
            )
        server = connections.server_of(self.url)
        other_files = sorted(name for name, url in self.addresses.items() if connections.server_of(url) != server)
        if other_files:
            raise Refused(
                "The index %s must have the files itself, but its links to %s are of another server (%s). Let it keep what it "
                "fetches." % (self.url, ", ".join(other_files), urlsplit(self.addresses[other_files[0]]).hostname)
            )

    def address(self, entry):
        if entry["file"] not in self.addresses:
            self.check([entry])
        return self.addresses[entry["file"]]

    def silent(self, url, problem):
        hint = "Check mirror_index_url"
        if problem.status in (401, 403):
            hint = "Check user and password in mirror_login"
        return "The index must serve %s but the answer was: %s. %s. The active environment is unchanged." % (
            url,
            problem,
            hint,
        )
