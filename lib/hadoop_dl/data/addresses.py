"""Checks of the mirror's index. Pure functions; the plan refuses by them."""

import re
from collections.abc import Mapping

HTTP = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")  # without user, password and query


def mirror_index_problem(url: str, login: Mapping[str, str]) -> str:
    """Why hosts cannot use this package index with this login; empty if they can. It shows no password."""
    if set(login) - {"user", "password"} or bool(login.get("user")) != bool(login.get("password")):
        return "mirror_login must have user and password and nothing else. Set both, or neither."
    if login.get("user") and not url:
        return "mirror_login is for mirror_index_url, but that is not set. Set mirror_index_url: the mirror's own server asks for no login."
    if login.get("user") and not url.startswith("https://"):
        return "mirror_index_url must begin with https://, because a password is sent there. Let the index serve https, or use one without a login."
    return ""
