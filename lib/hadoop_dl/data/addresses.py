"""Checks of the mirror's inputs: addresses, directories. Pure functions; the plan refuses by them."""

import posixpath
import re
from collections.abc import Mapping
from typing import Any

HTTP = re.compile(r"https?://[^\s/@?#]+(/[^\s@?#]*)?")  # without user, password and query

# Directories of the system and of the cluster. A directory of this project must be below one of SHARED, but not below PRIVATE.
SHARED = {"/", "/data", "/export", "/media", "/mnt", "/opt", "/srv", "/var", "/var/lib", "/var/www", "/var/www/html"}
PRIVATE = (
    *("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr"),
    *("/opt/cloudera", "/opt/deeplearning", "/opt/hadoop", "/opt/mapr", "/opt/spark"),
    *("/var/cache", "/var/lib/docker", "/var/lib/dpkg", "/var/lib/rpm", "/var/log", "/var/run", "/var/spool"),
    *("/tmp", "/var/tmp"),  # noqa: S108 (refused)
)


def mirror_index_problem(url: str, login: Mapping[str, str]) -> str:
    """Why hosts cannot use this package index with this login; empty if they can. It shows no password."""
    if set(login) - {"user", "password"} or bool(login.get("user")) != bool(login.get("password")):
        return "mirror_login must have user and password and nothing else. Set both, or neither."
    if login.get("user") and not url:
        return "mirror_login is for mirror_index_url, but that is not set. Set mirror_index_url: the mirror's own server asks for no login."
    if login.get("user") and not url.startswith("https://"):
        return "mirror_index_url must begin with https://, because a password is sent there. Let the index serve https, or use one without a login."
    return ""


def own_directory_problem(name: str, root: Any) -> str:
    """Why this cannot be a directory that this project fills and removes; empty if it can."""
    advice = f"Set {name} to a directory that nothing else uses, such as /srv/deeplearning-mirror."
    if not isinstance(root, str) or not root.startswith("/"):
        return f"{name} must be an absolute path, but it is {root!r}. {advice}"
    path = posixpath.normpath("/" + root.lstrip("/"))
    if path in SHARED:
        return f"{name} must be a directory of this project alone, but {path} is shared with others. {advice}"
    for private in PRIVATE:
        if path == private or path.startswith(private + "/"):
            return f"{name} must not be in {private}, but it is {path}. {advice}"
    return ""
