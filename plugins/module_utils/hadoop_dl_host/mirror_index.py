"""The package index and the web, asked patiently and without telling secrets. Python 3.6 and later, standard library only."""

import html.parser
import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse

from . import downloads, processes
from .connections import server_of, without_secrets
from .lockfile import canonical

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
DEFAULT_INDEX = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
BUNDLES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")  # the variables that name a CA bundle, as for pip
LARGEST_PAGE = 64 << 20  # bytes
ATTEMPTS = 5  # in a row, without a byte gained
RETRIED = (408, 425, 429, 500, 502, 503, 504)


class MirrorError(Exception):
    """What is needed, what was found and what to do next."""


def within(seconds, work, late):
    """What work() answers, from a child process: a server that sends a byte now and then satisfies the timeout of every read.

    late: the sentence if it does not end.
    """

    def answer():
        try:
            return {"answer": work()}
        except MirrorError as problem:
            return {"problem": str(problem)}

    try:
        message = processes.limited(answer, seconds)
    except processes.Late:
        message = {"problem": late}
    if "problem" in message:
        raise MirrorError(message["problem"])
    return message["answer"]


class _Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "a" and attributes.get("href"):
            self.links.append((attributes["href"], attributes.get("data-requires-python")))


def parse_index(body, content_type, base):
    """The files of a project page, PEP 691 JSON or PEP 503 HTML: name, url, sha256 (None: not told), size (or None), Requires-Python (empty: any)."""
    if "json" in content_type:
        return [
            {
                "name": file["filename"],
                "url": urllib.parse.urljoin(base, file["url"]),
                "sha256": file.get("hashes", {}).get("sha256"),
                "size": file.get("size"),
                "requires_python": file.get("requires-python") or "",
            }
            for file in json.loads(body)["files"]
        ]
    parser = _Links()
    parser.feed(body)
    files = []
    for link, requires_python in parser.links:
        url, _, fragment = urllib.parse.urljoin(base, link).partition("#")
        match = re.match(r"sha256=([0-9a-f]{64})$", fragment)
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        if name.endswith((".whl", ".tar.gz", ".zip", ".tgz", ".tar.bz2", ".egg")):
            sha256 = match.group(1) if match else None
            offer = {"name": name, "url": url, "sha256": sha256, "size": None}
            files.append(dict(offer, requires_python=requires_python or ""))
    return files


def index_address(index_url=None):
    return (index_url or os.environ.get("PIP_INDEX_URL") or DEFAULT_INDEX).rstrip("/")


def through_maven_mirror(url):
    """The address at the site's own copy of Maven Central, where MAVEN_CENTRAL_URL names one."""
    copy = os.environ.get("MAVEN_CENTRAL_URL", "").rstrip("/")
    return copy + url[len(MAVEN_CENTRAL) :] if copy and url.startswith(MAVEN_CENTRAL + "/") else url


def login_of(url):
    """user:password of an address; empty if it has none."""
    return urllib.parse.urlsplit(url).netloc.rpartition("@")[0]


def with_login(url, login):
    """The address with this user and password in it, for the functions here, which show none of it."""
    if not url or not login or not login.get("user"):
        return url
    parts = urllib.parse.urlsplit(url)
    quoted = [urllib.parse.quote(str(login.get(key) or ""), safe="") for key in ("user", "password")]
    return urllib.parse.urlunsplit(parts._replace(netloc="%s@%s" % (":".join(quoted), parts.netloc)))


def with_login_of(index_url, url):
    """The address, with the index's login if it is on the index's server; other servers never see the login."""
    login = login_of(index_url)
    if not login or login_of(url) or server_of(url) != server_of(index_url):
        return url
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=login + "@" + parts.netloc))


def secrets_of(variables):
    """What must not appear in any output: logins and queries of addresses, and the whole value if it is no address."""
    secrets = set()
    for name, value in variables.items():
        parts = urllib.parse.urlsplit(value)
        if parts.scheme in ("http", "https", "socks5") or name.lower() in ("http_proxy", "https_proxy"):
            login = value.rpartition("@")[0].rpartition("//")[2] if "@" in value else ""
            password = login.partition(":")[2]
            secrets.update((login, password, urllib.parse.unquote(password), parts.query))
        elif not value.startswith("/") and name.lower() != "no_proxy":
            secrets.add(value)
    return secrets - {""}


def open_url(url, headers=None, host_ca=None):
    """Open with the CA and the proxies that pip would use; user and password in the address become a header.

    host_ca: as hosts open it, without a proxy and with this CA bundle; empty for the system's.
    """
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise MirrorError("An address with http or https is required, but %s is none." % without_secrets(url))
    ca, variable = host_ca, "mirror_ca"
    if host_ca is None:
        variable = next((name for name in BUNDLES if os.environ.get(name)), BUNDLES[-1])
        ca = os.environ.get(variable, "")
    try:
        return downloads.open_url(url, headers, ca, proxied=host_ca is None, elsewhere=True)
    except downloads.DownloadError as problem:  # about the CA bundle: redirects are followed
        raise MirrorError("%s. Correct %s." % (problem, variable)) from problem


def patiently(title, url, action, pause=time.sleep, ca="SSL_CERT_FILE in mirror_environment"):
    """Run action() until it succeeds; give up after ATTEMPTS failures in a row that gained nothing. ca: where its CA bundle is named.

    action returns normally, or raises; it may carry `gained` on the exception when bytes arrived before it.
    """
    failures = 0
    while True:
        try:
            return action()
        except urllib.error.HTTPError as error:
            if error.code not in RETRIED:
                hint = {
                    401: "Give the index's user and password in PIP_INDEX_URL.",
                    403: "Find out from whoever runs the index or proxy why it refuses.",
                    404: "Check the index's address, or take the artifact into it.",
                    407: "Give the proxy's user and password in mirror_environment.",
                }.get(error.code, "Contact whoever runs the index.")
                raise MirrorError(
                    "%s is required, but %s answers %s %s. %s"
                    % (title, without_secrets(url), error.code, error.reason, hint)
                ) from error
            last = "%s %s" % (error.code, error.reason)
            gained = False
        except (
            urllib.error.URLError,
            http.client.HTTPException,
            socket.timeout,
            ssl.SSLError,
            ConnectionError,
            EOFError,
        ) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(getattr(error, "reason", error)):
                raise MirrorError(
                    "%s is required, but the certificate of %s is not trusted (%s). Name the CA bundle with %s."
                    % (title, without_secrets(url), getattr(error, "reason", error), ca)
                ) from error
            last = str(getattr(error, "reason", error)) or type(error).__name__
            if "Tunnel connection failed: 407" in last:
                raise MirrorError(
                    "%s is required, but the proxy in front of %s answers 407. Give the proxy's user and password in "
                    "mirror_environment." % (title, without_secrets(url))
                ) from error
            gained = getattr(error, "gained", False)
        failures = 1 if gained else failures + 1
        if failures >= ATTEMPTS:
            raise MirrorError(
                "%s is required, but %s did not deliver it in %d attempts (last: %s). Check network, proxy and DNS of this "
                "host (mirror_environment), then run the same command again: it continues."
                % (title, without_secrets(url), ATTEMPTS, last)
            )
        pause(min(30, 2 ** (failures - 1)))


def page_of(answer, url):
    """The text of a page; PyPI's longest have a few MB."""
    body = answer.read(LARGEST_PAGE + 1)
    if len(body) > LARGEST_PAGE:
        raise MirrorError(
            "A page of at most %d MB is required, but %s sends more. Check the index's address."
            % (LARGEST_PAGE >> 20, without_secrets(url))
        )
    return body.decode("utf-8", "replace")


_pages = {}  # type: dict
_pages_guard = threading.Lock()


def offers(project, index_url=None, pause=time.sleep, host_ca=None):
    """What the index lists for a project; host_ca as in open_url."""
    url = "%s/%s/" % (index_address(index_url), canonical(project))
    with _pages_guard:
        if url in _pages:
            return _pages[url]

    def read():
        with open_url(url, {"Accept": ACCEPT}, host_ca) as answer:
            return page_of(answer, url), answer.headers.get("Content-Type", ""), answer.geturl()

    options = {} if host_ca is None else {"ca": "mirror_ca"}
    body, content_type, address = patiently("The index page of " + project, url, read, pause, **options)
    try:
        listing = parse_index(body, content_type, address)
    except (ValueError, KeyError, TypeError):
        listing = []
    if not listing:
        raise MirrorError(
            "The index page of %s is required, but %s answers something that lists no files (it begins %r). A login page or "
            "a captive portal answers like this: log in, or set the proxy in mirror_environment."
            % (project, without_secrets(url), body.strip()[:60])
        )
    listing = [dict(offer, url=with_login_of(url, offer["url"])) for offer in listing]
    with _pages_guard:
        _pages[url] = listing
    return listing


def find_offer(artifact, index_url=None, pause=time.sleep, host_ca=None):
    """The index's file with the artifact's sha256; a file of that name with other bytes is refused."""
    files = offers(artifact["project"], index_url, pause, host_ca)
    for offer in files:
        if offer["sha256"] == artifact["sha256"]:
            return offer
    for offer in files:
        if offer["name"] == artifact["name"]:
            if offer["sha256"] is None:  # an index without hashes: the download itself is checked
                return offer
            raise MirrorError(
                "%s with sha256 %s is required, but the index offers other bytes under that name (sha256 %s). Nothing was "
                "fetched. Do not use that index before this is explained."
                % (artifact["name"], artifact["sha256"], offer["sha256"])
            )
    raise MirrorError(
        "%s is required, but %s lists %d files of %s without it. Use an index that has it: PIP_INDEX_URL in mirror_environment."
        % (artifact["name"], without_secrets(index_address(index_url)), len(files), artifact["project"])
    )
