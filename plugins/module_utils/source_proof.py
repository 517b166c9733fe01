# -*- coding: utf-8 -*-
"""Show that a wheel contains nothing but its source distribution's own files. Python 2.7 and 3, standard library only.

The sha256 of a source distribution is the lock's; that of a wheel which the mirror built from it is not. So a host compares
the two, file by file: what it installs then are bytes of the lock, and neither the mirror nor the network is trusted.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import hashlib
import json
import re
import stat
import tarfile
import zipfile
import zlib

from ansible.module_utils import wheel_files

MB = 1 << 20
CONTENT = 1024 * MB  # bytes of what is in a source distribution
MEMBERS = 20000
CHUNK = 1 << 20
PREFIXES = ("", "src/", "lib/")  # where a source distribution has its packages
PURE = "-none-any.whl"
LARGEST = 256 * MB  # bytes of a wheel
# What a build writes about a project, and nothing imports. Scripts are written from entry_points.txt, which is compared.
WRITTEN = ("METADATA", "WHEEL", "RECORD", "top_level.txt", "namespace_packages.txt", "dependency_links.txt", "zip-safe")
WRITTEN += ("metadata.json", "DESCRIPTION.rst", "entry_points.txt")
BROKEN = (
    tarfile.TarError,
    zipfile.BadZipfile,
    zlib.error,
    EOFError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    KeyError,
)


class NotShown(Exception):
    """Why a wheel is not shown to be made of its source alone, as a clause."""


def show(wheel_path, source_path, site):
    """Return where every file of the wheel is the source's, at the same place; else raise NotShown. site: as of wheel_files.Wheel."""
    if not wheel_path.endswith(PURE):
        raise NotShown("it has compiled code")
    try:
        source = files_of(source_path)
        wheel = wheel_files.Wheel(wheel_path, site, "")
        with contextlib.closing(zipfile.ZipFile(wheel_path)) as archive:
            members = dict(
                (place, digest_of(archive.open(info)))
                for info in wheel.members
                for place in [wheel.destinations.get(info.filename)]
                if place
            )
    except BROKEN as problem:
        raise NotShown("it cannot be read (%s)" % problem)
    except wheel_files.WheelProblem as problem:
        raise NotShown("it is no proper wheel: %s" % problem.args[0].rstrip("."))
    information = "%s/%s/" % (site, wheel.information)
    code = dict((place, digest) for place, digest in members.items() if not place.startswith(information))
    about = dict((place[len(information) :], digest) for place, digest in members.items() if place not in code)
    compare(code, source, site)
    for name, digest in sorted(about.items()):
        if name not in WRITTEN and digest not in source.values():
            raise NotShown("its source has no %s" % name)
    if points(wheel.points) != points(text_of_points(source_path, source)):
        raise NotShown("its scripts are not those that its source states")


def listed(manifest, source_sha256, python):
    """Path, sha256 and size of the wheel of this source for this Python in a mirror's manifest.json; NotShown without one."""
    place = re.compile(r"^built/%s/%s/[A-Za-z0-9_.!+-]+%s\Z" % (re.escape(python), source_sha256, re.escape(PURE)))
    try:
        rows = json.loads(manifest)["artifacts"]
        found = sorted((path, row["sha256"], row["size"]) for path, row in rows.items() if place.match(path))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotShown("the mirror's manifest cannot be read")
    if len(found) != 1 or not isinstance(found[0][2], int) or not 0 < found[0][2] <= LARGEST:
        raise NotShown("the mirror has no wheel of it for Python %s" % python)
    return found[0]


def compare(code, source, site):
    """Refuse files that the source does not have at that place, and packages that lack some of their modules."""
    outside = sorted(place for place in code if not place.startswith(site + "/"))
    if outside:
        raise NotShown("it has files outside of site-packages (%s)" % outside[0])
    own = dict((place[len(site) + 1 :], digest) for place, digest in code.items())
    if not own:
        raise NotShown("it has no file")
    others = {}
    for prefix in PREFIXES:
        others[prefix] = sorted(name for name in own if source.get(prefix + name) != own[name])
        if not others[prefix]:
            break
    else:
        raise NotShown("its source does not have its %s" % min(others.values(), key=len)[0])
    packages = set(name.rpartition("/")[0] for name in own if name.endswith(".py")) - set([""])
    for name in sorted(source):
        directory = name[len(prefix) :].rpartition("/")[0]
        if (
            name.startswith(prefix)
            and name.endswith(".py")
            and directory in packages
            and name[len(prefix) :] not in own
        ):
            raise NotShown("it lacks %s of its source" % name)


def digest_of(handle):
    digest = hashlib.sha256()
    with contextlib.closing(handle) as source:
        for chunk in iter(lambda: source.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


# --- source distributions -------------------------------------------------------------------------------------------


def files_of(path):
    """Path below its one directory -> sha256 of every regular file."""
    found, total = {}, 0
    with opened(path) as archive:
        for name, size, read in archive:
            total += size
            if total > CONTENT or len(found) >= MEMBERS:
                raise NotShown("its source has more than %d files or %d MB" % (MEMBERS, CONTENT // MB))
            parts = [part for part in name.split("/") if part != "."]
            if len(parts) > 1 and ".." not in parts:
                found["/".join(parts[1:])] = digest_of(read())
    return found


@contextlib.contextmanager
def opened(path):
    """(name, size, function that opens it) of every regular file, of a tar or a zip archive."""
    if path.endswith(".zip"):
        with contextlib.closing(zipfile.ZipFile(path)) as archive:
            infos = [info for info in archive.infolist() if not info.filename.endswith("/")]
            infos = [info for info in infos if stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)]
            yield ((text(info.filename), info.file_size, lambda info=info: archive.open(info)) for info in infos)
    else:
        with contextlib.closing(tarfile.open(path)) as archive:  # novermin
            infos = (info for info in archive if info.isfile())
            yield ((text(info.name), info.size, lambda info=info: archive.extractfile(info)) for info in infos)


def text_of_points(path, source):
    """entry_points.txt, as whoever made the source distribution wrote it; empty without one."""
    names = [name for name in source if re.match(r"^((src|lib)/)?[^/]+\.egg-info/entry_points\.txt$", name)]
    if len(names) != 1:
        return ""
    with opened(path) as archive:
        for name, size, read in archive:
            if name.partition("/")[2] == names[0] and size < MB:
                with contextlib.closing(read()) as handle:
                    return handle.read().decode("utf-8", "replace")
    return ""


def points(content):
    """Every entry of entry_points.txt with its section, without spaces and order."""
    found, section = set(), ""
    for line in content.splitlines():
        line = re.sub(r"\s+", "", line)
        if line.startswith("["):
            section = line
        elif line and line[0] not in "#;":
            found.add((section, line))
    return found


def text(name):
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
