"""One management server over HTTP(S), with Python's standard library: every wait has a limit, every failure is one sentence without secrets.

Ansible's open_url is not used: before a request it connects once more to check the certificate, and that has no time limit.
"""

import base64
import http.client
import http.cookiejar
import json
import queue
import re
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from ansible.module_utils.hadoop_dl_host.connections import without_secrets

from hadoop_dl.data.terminal import PARAGRAPH, one_line

T = TypeVar("T")
LARGEST = 256 << 20  # bytes of an answer; a thousand hosts in full view have about 10 MB
BUSY = (429, 503)
LONGEST_MESSAGE = 200


class ManagerError(Exception):
    """The request, the response, and what to do; one or two sentences without secrets, printable whatever the server sent."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message, PARAGRAPH))


class AccessRefused(ManagerError):
    """The user or password is wrong, or the user may not do this."""


class Unavailable(ManagerError):
    """No answer, or one that asks to try later."""


@dataclass(frozen=True)
class Login:
    """User and password, or a token for a gateway that takes bearer tokens. Shown nowhere."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    def header(self) -> str:
        if self.token:
            return f"Bearer {self.token}"
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")

    def removed_from(self, text: str) -> str:
        """The text with every secret of this login replaced."""
        for secret in (self.password, self.token, self.header().partition(" ")[2]):
            text = text.replace(secret, "…") if secret else text
        return text


@dataclass(frozen=True)
class Limits:
    """Seconds: without a byte, and for all requests of a Server."""

    silence: float = 30.0
    total: float = 600.0


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer that names where to ask: credentials must not follow to another server."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Server:
    """Requests to one server. `product` is its name in messages; `settings` names where its address and login are set."""

    def __init__(
        self,
        product: str,
        url: str,
        login: Login,
        *,
        ca: str = "",
        plain_http: bool = False,
        limits: Limits | None = None,
        settings: str = "the inventory",
    ) -> None:
        self.product, self.login, self.settings = product, login, settings
        self.url = checked_url(product, url)
        if self.url.startswith("http:") and not plain_http and not is_this_machine(self.url):
            raise ManagerError(
                f"{self} must be asked over https, because a login over http can be read on the way. Use its https address, or "
                f"set plain_http in {settings} to true."
            )
        self.limits = limits or Limits()
        self.end = time.monotonic() + self.limits.total
        self.headers = {"Accept": "application/json", "User-Agent": "hadoop-deeplearning"}
        context = trusted(product, ca) if self.url.startswith("https:") else None
        handlers: list[urllib.request.BaseHandler] = [
            NoRedirect(),
            # One session on the server, not one per request.
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
        ]
        if context:
            handlers.append(urllib.request.HTTPSHandler(context=context))
        else:
            handlers.append(urllib.request.ProxyHandler({}))  # a proxy would read the login
        self.opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, **query: str) -> Any:
        """The answer as JSON."""
        text = self.text(path, query)
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            self.fail_on_text(path, text)

    def text(self, path: str, query: Mapping[str, str] | None = None) -> str:
        """The answer's text."""
        url = self.url + path + ("?" + urllib.parse.urlencode(query) if query else "")
        code, headers, data = self.once(url)
        text = data.decode("utf-8", "replace")
        if code >= 300:
            self.fail_on_status(url, code, headers.get("Location"), text)
        return text

    def once(self, url: str) -> tuple[int, Mapping[str, str], bytes]:
        """One request and its answer, or an error about what came instead."""
        seconds = round(self.end - time.monotonic(), 1)
        if seconds <= 0:
            raise Unavailable(
                f"{self.named(url)} must answer everything within {self.limits.total:g} s, but did not. "
                "Check its load, and run again."
            )
        headers = {**self.headers, "Authorization": self.login.header()}
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 (checked_url permits http and https only)
        try:
            return within(seconds, lambda: self.exchange(request, min(self.limits.silence, seconds)))
        except TimeoutError:
            raise Unavailable(
                f"{self.named(url)} must answer within {seconds:g} s and never be silent for {self.limits.silence:g} s, but did not. "
                "Check that server and the network, and run again."
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(self.login.removed_from(self.trouble(url, error))) from None

    def exchange(self, request: urllib.request.Request, silence: float) -> tuple[int, Mapping[str, str], bytes]:
        try:
            answer = self.opener.open(request, timeout=silence)
        except urllib.error.HTTPError as error:
            answer = error  # also an answer
        with answer:
            data = answer.read(LARGEST + 1)
            missing_bytes = getattr(answer, "length", None)  # None after an error: its text is for messages only
            if len(data) > LARGEST:
                raise ValueError(f"the answer is larger than {LARGEST >> 20} MB")
            if missing_bytes:
                raise http.client.IncompleteRead(data, missing_bytes)
            return answer.status, answer.headers, data

    def trouble(self, url: str, error: Exception) -> str:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        server_name = self.named(url)
        if isinstance(reason, ssl.SSLCertVerificationError):
            return (
                f"{server_name} has a certificate that is not trusted ({reason.verify_message}). User and password were not sent. "
                f"Set the CA that signed it as ca in {self.settings}, and the host name as in the certificate."
            )
        if isinstance(reason, ssl.SSLError):
            return f"{server_name} must speak TLS, but does not ({reason.reason or reason}). Check scheme and port in {self.settings}."
        if isinstance(reason, http.client.IncompleteRead):
            return f"{server_name} closed the connection in the middle of its answer. Run again; if it stays so, look at its log."
        if isinstance(reason, http.client.HTTPException):
            return f"{server_name} must speak HTTP, but does not ({type(reason).__name__}). Check scheme and port in {self.settings}."
        cause = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
        return f"{server_name} cannot be reached: {cause}. Check that it runs, its address in {self.settings}, and proxy variables."

    def fail_on_status(self, url: str, code: int, location: str | None, text: str) -> NoReturn:
        server_name, detail = self.named(url), self.told(text)
        account = f"the user {self.login.user}" if self.login.user else "the token"
        if code == 401:
            raise AccessRefused(
                f"{server_name} refuses {account}: wrong user or password (HTTP 401). Correct it in {self.settings}."
            )
        if code == 403:
            raise AccessRefused(
                f"{server_name} does not let {account} do this (HTTP 403{detail}). Give it the rights in {self.product}, or use another user."
            )
        if code == 404:
            raise ManagerError(
                f"{server_name} has nothing there (HTTP 404{detail}). Correct the name or address in {self.settings}."
            )
        if code in BUSY:
            raise Unavailable(f"{server_name} is busy (HTTP {code}{detail}). Run again when it answers.")
        if code < 400:
            place = without_secrets(urllib.parse.urljoin(url, location)) if location else "no address"
            raise ManagerError(
                f"{server_name} redirects to {place} (HTTP {code}), where user and password were not sent. "
                f"If that is {self.product}, set this address in {self.settings}."
            )
        raise ManagerError(f"{server_name} answers with HTTP {code}{detail}. Look at the log of {self.product}.")

    def fail_on_text(self, path: str, text: str) -> NoReturn:
        server_name = self.named(self.url + path)
        if re.match(r"\s*<", text):
            raise ManagerError(
                f"{server_name} must answer with JSON, but answers with a web page, such as a login page. Correct the address in {self.settings}."
            )
        if re.match(r"\s*[\[{]", text):
            raise ManagerError(f"{server_name} must answer with JSON, but the answer is incomplete. Run again.")
        raise ManagerError(
            f"{server_name} must answer with JSON, but does not. Correct the address in {self.settings}."
        )

    def told(self, text: str) -> str:
        """The server's own message, short and without secrets."""
        try:
            message = json.loads(text).get("message")
        except (ValueError, AttributeError, RecursionError):
            return ""
        line = " ".join(self.login.removed_from(str(message or "")).split()).rstrip(".")
        return f": {line[:LONGEST_MESSAGE]}" if line else ""

    def __str__(self) -> str:
        return self.named(self.url)

    def named(self, url: str) -> str:
        return f"{self.product} at {without_secrets(url)}"


def checked_url(product: str, url: str) -> str:
    """The server's address without a slash at the end; it carries no user, password or query."""
    try:
        parts = urllib.parse.urlsplit(str(url))
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises ValueError for a port that is none
    except ValueError:
        good = False
    if not good or any(character.isspace() for character in url):
        raise ManagerError(f"The address of {product} must be http://HOST:PORT or https://HOST:PORT, but is not.")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ManagerError(
            f"The address of {product} must have no user, password or query, but has one. Set user and password by themselves."
        )
    return str(url).rstrip("/")


def is_this_machine(url: str) -> bool:
    """Whether nothing leaves this machine, as with a tunnel."""
    return urllib.parse.urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def trusted(product: str, ca: str) -> ssl.SSLContext:
    """Certificates are always checked: against this CA file alone, or against the system's."""
    if not ca:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=str(Path(ca).expanduser()))
    except (OSError, ssl.SSLError) as error:
        reason = "it has no certificate in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise ManagerError(
            f"The CA of {product} must be a file with PEM certificates, but {ca} cannot be used: {reason}."
        ) from None


def within(seconds: float, function: Callable[[], T]) -> T:
    """What function() returns or raises, or TimeoutError: a server that sends a byte now and then keeps its thread, not us."""
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def work() -> None:
        try:
            answers.put((function(), None))
        except BaseException as error:  # raised again by the caller
            answers.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    try:
        value, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if error is not None:
        raise error
    return value  # type: ignore[return-value]
