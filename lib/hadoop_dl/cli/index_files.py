"""Which file of a package index is the one that pip would take."""

import re
from collections.abc import Iterable
from typing import Any

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

from hadoop_dl.data.locks import canonicalize_name

Offer = dict[str, Any]  # a file as an index lists it: name, url, sha256, size or None, requires_python


def platform_tags(python: str, glibc: str) -> list[Tag]:
    """The wheel tags of a CPython on x86_64 Linux with that glibc, best first."""
    major, minor = (int(part) for part in python.split("."))
    platforms = []
    for number in range(int(glibc.split(".")[1]), 4, -1):
        platforms.append(f"manylinux_2_{number}_x86_64")
        legacy = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}.get(number)
        platforms += [f"{legacy}_x86_64"] if legacy else []
    platforms.append("linux_x86_64")
    # Distributions build Python 2.7 with 4-byte characters: cp27mu.
    abis = ["cp27mu"] if major == 2 else None
    tags = list(cpython_tags((major, minor), abis=abis, platforms=platforms))
    tags += compatible_tags((major, minor), interpreter=f"cp{major}{minor}", platforms=platforms)
    return tags


def choose_file(offers: Iterable[Offer], project: str, version: str, tags: list[Tag]) -> Offer | None:
    """The file that pip would take: the wheel whose tag comes first, else the sdist."""
    rank = {tag: number for number, tag in enumerate(tags)}
    best: tuple[int, Offer] | None = None
    for offer in offers:
        name = offer["name"]
        try:
            if name.endswith(".whl"):
                normalized, release, _, wheel_tags = parse_wheel_filename(name)
                file_project = str(normalized)
                place = min((rank[tag] for tag in wheel_tags if tag in rank), default=-1)
            elif name.endswith((".tar.gz", ".zip")):
                file_project, release = parse_sdist(name, project)
                place = len(tags)
            else:
                continue
        except ValueError:  # eggs, and names older than the rules for names
            continue
        if place < 0 or file_project != canonicalize_name(project) or release != Version(version):
            continue
        if best is None or place < best[0]:
            best = (place, offer)
    return best[1] if best else None


def parse_sdist(name: str, project: str) -> tuple[str, Version]:
    """Project and version of an sdist's name; older names have a dash inside the version (functools32-3.2.3-2)."""
    stem = re.sub(r"\.(tar\.gz|zip)$", "", name)
    if canonicalize_name(stem).startswith(canonicalize_name(project) + "-"):
        return canonicalize_name(project), Version(stem[len(project) + 1 :])
    file_project, version = parse_sdist_filename(name)
    return str(file_project), version


def version_of(name: str, project: str) -> str:
    """The version in a file's name; empty for a file that is neither wheel nor source distribution of the project."""
    try:
        if name.endswith(".whl"):
            return str(parse_wheel_filename(name)[1])
        return str(parse_sdist(name, project)[1]) if name.endswith((".tar.gz", ".zip")) else ""
    except ValueError:  # eggs, and names older than the rules for names
        return ""
