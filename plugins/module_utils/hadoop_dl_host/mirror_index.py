# -*- coding: utf-8 -*-
"""The package index and the web, asked patiently and without telling secrets. Python 3.6 and later, standard library only."""

import base64
import functools
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
import urllib.request

MAVEN_CENTRAL = "https://repo1.maven.org/maven2"
DEFAULT_INDEX = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
TIMEOUT = 60  # seconds without a byte
LARGEST_PAGE = 64 << 20  # bytes
ATTEMPTS = 5  # in a row, without a byte gained
RETRIED = (408, 425, 429, 500, 502, 503, 504)


class MirrorError(Exception):
    """What is needed, what was found and what to do next."""


class _Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.links = []

    def handle_starttag(self, tag, attrs):
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.links.append(href)


def parse_index(body, content_type, base):
    """The files of a project page, PEP 691 JSON or PEP 503 HTML: name, url, sha256 (None: not told), size (or None)."""
    if "json" in content_type:
        return [
            {
                "name": file["filename"],
                "url": urllib.parse.urljoin(base, file["url"]),
                "sha256": file.get("hashes", {}).get("sha256"),
                "size": file.get("size"),
            }
            for file in json.loads(body)["files"]
        ]
    parser = _Links()
    parser.feed(body)
    found = []
    for link in parser.links:
        url, _, fragment = urllib.parse.urljoin(base, link).partition("#")
        match = re.match(r"sha256=([0-9a-f]{64})$", fragment)
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        if name.endswith((".whl", ".tar.gz", ".zip", ".tgz", ".tar.bz2", ".egg")):
            found.append({"name": name, "url": url, "sha256": match.group(1) if match else None, "size": None})
    return found


def index_address(index_url=None):
    return (index_url or os.environ.get("PIP_INDEX_URL") or DEFAULT_INDEX).rstrip("/")


def through_maven_mirror(url):
    """The address at the site's own copy of Maven Central, where MAVEN_CENTRAL_URL names one."""
    copy = os.environ.get("MAVEN_CENTRAL_URL", "").rstrip("/")
    return copy + url[len(MAVEN_CENTRAL) :] if copy and url.startswith(MAVEN_CENTRAL + "/") else url


def without_secrets(url):
    """The address as it may be shown: no user, no password, no query."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


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


def server_of(url):
    """Scheme, host and port: what a login is given to."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def with_login_of(index_url, url):
    """The address with the index's login, where it is on the index's server; other servers never see the login."""
    login = login_of(index_url)
    if not login or login_of(url) or server_of(url) != server_of(index_url):
        return url
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=login + "@" + parts.netloc))


def secrets_of(variables):
    """What must not appear in any output: logins and queries of addresses, and the whole value where it is no address."""
    found = set()
    for name, value in variables.items():
        parts = urllib.parse.urlsplit(value)
        if parts.scheme in ("http", "https", "socks5") or name.lower() in ("http_proxy", "https_proxy"):
            login = value.rpartition("@")[0].rpartition("//")[2] if "@" in value else ""
            password = login.partition(":")[2]
            found.update((login, password, urllib.parse.unquote(password), parts.query))
        elif not value.startswith("/") and name.lower() != "no_proxy":
            found.add(value)
    return found - {""}


class SameServerLogin(urllib.request.HTTPRedirectHandler):
    """A redirect to another server is followed without the login; urllib would send it there."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None:
            following.headers.pop("Proxy-authorization", None)  # the proxy's handler sets it again
            if server_of(newurl) != server_of(req.full_url):
                following.headers.pop("Authorization", None)
        return following


@functools.lru_cache(maxsize=None)
def trust(bundle):
    return ssl.create_default_context(cafile=bundle or None)


def hosts_trust(bundle):
    """As trust, for the CA bundle that hosts are given; empty for the system's."""
    try:
        return trust(bundle)
    except (IOError, OSError) as error:  # ssl.SSLError is one
        reason = "it has none" if isinstance(error, ssl.SSLError) else error.strerror
        raise MirrorError(
            "%s (mirror_ca) must be a file with certificates in PEM format on this host, but: %s. Put the CA bundle there."
            % (bundle, reason)
        ) from error


def open_url(url, headers=None, host_ca=None):
    """Open with the CA and the proxies that pip would use; user and password in the address become a header.

    host_ca: as hosts open it, without a proxy and with this CA bundle; empty for the system's.
    """
    headers = dict(headers or {})
    parts = urllib.parse.urlsplit(url)
    if "@" in parts.netloc:
        login, _, host = parts.netloc.rpartition("@")
        headers["Authorization"] = "Basic " + base64.b64encode(urllib.parse.unquote(login).encode()).decode()
        url = urllib.parse.urlunsplit((parts.scheme, host, parts.path, parts.query, ""))
    if parts.scheme not in ("http", "https"):
        raise MirrorError("An address with http or https is required, but %s is none." % without_secrets(url))
    bundle = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE")
    context = None
    if parts.scheme == "https":
        context = trust(bundle) if host_ca is None else hosts_trust(host_ca)
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  (the scheme is checked above)
    handlers = [SameServerLogin()] + ([urllib.request.HTTPSHandler(context=context)] if context else [])
    handlers += [] if host_ca is None else [urllib.request.ProxyHandler({})]
    return urllib.request.build_opener(*handlers).open(request, timeout=TIMEOUT)


def patiently(what, url, action, pause=time.sleep, ca="SSL_CERT_FILE in mirror_environment"):
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
                    % (what, without_secrets(url), error.code, error.reason, hint)
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
                    % (what, without_secrets(url), getattr(error, "reason", error), ca)
                ) from error
            last = str(getattr(error, "reason", error)) or type(error).__name__
            if "Tunnel connection failed: 407" in last:
                raise MirrorError(
                    "%s is required, but the proxy in front of %s answers 407. Give the proxy's user and password in "
                    "mirror_environment." % (what, without_secrets(url))
                ) from error
            gained = getattr(error, "gained", False)
        failures = 1 if gained else failures + 1
        if failures >= ATTEMPTS:
            raise MirrorError(
                "%s is required, but %s did not deliver it in %d attempts (last: %s). Check network, proxy and DNS of this "
                "host (mirror_environment), then run the same command again: it continues."
                % (what, without_secrets(url), ATTEMPTS, last)
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
    url = "%s/%s/" % (index_address(index_url), re.sub(r"[-_.]+", "-", project).lower())
    with _pages_guard:
        if url in _pages:
            return _pages[url]

    def read():
        with open_url(url, {"Accept": ACCEPT}, host_ca) as answer:
            return page_of(answer, url), answer.headers.get("Content-Type", ""), answer.geturl()

    named = {} if host_ca is None else {"ca": "mirror_ca"}
    body, content_type, address = patiently("The index page of " + project, url, read, pause, **named)
    try:
        found = parse_index(body, content_type, address)
    except (ValueError, KeyError, TypeError):
        found = []
    if not found:
        raise MirrorError(
            "The index page of %s is required, but %s answers something that lists no files (it begins %r). A login page or "
            "a captive portal answers like this: log in, or set the proxy in mirror_environment."
            % (project, without_secrets(url), body.strip()[:60])
        )
    found = [dict(offer, url=with_login_of(url, offer["url"])) for offer in found]
    with _pages_guard:
        _pages[url] = found
    return found


def find_offer(artifact, index_url=None, pause=time.sleep, host_ca=None):
    """The index's file with the artifact's sha256; a file of that name with other bytes is refused."""
    listed = offers(artifact["project"], index_url, pause, host_ca)
    for offer in listed:
        if offer["sha256"] == artifact["sha256"]:
            return offer
    for offer in listed:
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
        % (artifact["name"], without_secrets(index_address(index_url)), len(listed), artifact["project"])
    )
