# -*- coding: utf-8 -*-
"""Wheels of source distributions: built by a user without rights, then checked as something that a stranger sent. Python 2.7 and 3.

The sha256 of a source distribution is the lock's, but its setup.py is a program. It runs in a cell (confinement), with
the tree's own pip, setuptools and wheel, which it can read. What it leaves is copied to root's directory, and unpacked
only if it is the wheel of that project and version, within limits, with files in places where root runs nothing.
"""

from __future__ import absolute_import, division, print_function

import contextlib
import os
import re
import shutil
import stat
import struct
import zipfile
import zlib

from ansible.module_utils import confinement, environment_tree, wheel_files
from ansible.module_utils import environment_packages as packages
from ansible.module_utils.environment_packages import Refused

CELL = "build"  # in a tree's state
SECONDS = 900  # for one build
MB = 1 << 20
LARGEST = 256 * MB  # bytes of a wheel
CONTENT = 1024 * MB  # bytes of what is in it
INFORMATION = 8 * MB  # bytes of one file of metadata, which is read at once
MEMBERS = 20000
LONGEST, PART = 1024, 255  # bytes of a path in the tree, and of one name
MEMBER = b"PK\x01\x02"  # before each name in a wheel's list of files
CHUNK = 1 << 20
NAME = re.compile(r"^(?P<project>[A-Za-z0-9_.]+)-(?P<version>[A-Za-z0-9_.!+]+)(-[A-Za-z0-9_.]+){3,4}\.whl\Z")
# The interpreter runs these at every start, also for root; a tree's own are made by the component pip.
AT_START = re.compile(r"^([^/]+\.pth|(sitecustomize|usercustomize)([./].*)?)\Z")
# Outside of site-packages; the directories of Python's own library are not among them.
OUTSIDE = re.compile(r"^(bin/(?!python)[^/]+|(include/site|share|etc)/.+)\Z")
BROKEN = (zipfile.BadZipfile, zipfile.LargeZipFile, zlib.error, struct.error)
BROKEN += (EOFError, ValueError, RuntimeError, NotImplementedError, KeyError)  # also: encrypted, of an unknown method


class NotTheWheel(Exception):
    """What a build left cannot be used; the text says what is wrong, as a clause."""


def cell_of(tree):
    return packages.state_file(tree, CELL)


def clear(tree):
    """Remove what a killed build left: its processes, then its directory."""
    try:
        confinement.clear(cell_of(tree))
    except confinement.NotConfined as problem:
        raise Refused("%s Then run the playbook again." % problem)


def build(entry, source, tree, target, seconds, others, more=()):
    """Path of the wheel in the new directory `target`, which is root's.

    entry: the lock's. source: its verified file. others: the paths (bytes) of the tree that other wheels have. more: variables.
    """
    os.mkdir(target, 0o700)
    try:
        with confinement.Cell(cell_of(tree)) as cell:
            output = os.path.join(cell.path, "wheels")
            run(entry, source, tree, cell, output, min(seconds, SECONDS), more)
            path = taken(output, cell.number, target)
        examined(path)
        admitted(path, entry, os.path.relpath(packages.site_packages(tree), tree), others)
        return path
    except NotTheWheel as problem:
        raise Refused(
            "%s was built, but %s. Nothing of it was installed. Check the stack's lock." % (entry["file"], problem)
        )
    except confinement.NotConfined as problem:
        raise Refused("%s is a source distribution, which is never built as root. %s" % (entry["file"], problem))


def run(entry, source, tree, cell, output, seconds, more):
    python = os.path.join(tree, "bin", "python")
    blocked = confinement.closed([python, tree])
    if blocked:
        raise confinement.NotConfined(
            "All users must be able to read %s, because one without rights builds it (chmod o+rx)." % blocked
        )
    given = os.path.join(cell.path, entry["file"])
    shutil.copyfile(source, given)
    os.chmod(given, 0o644)
    command = [python, "-m", "pip", "wheel", "--isolated", "--no-deps", "--no-index", "--no-build-isolation"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--no-input", "--wheel-dir", output, given]
    answer = cell.run(command, seconds, dict(variables(), **dict(more)))
    if answer.status != 0:
        status = "it did not end within %d s" % seconds if answer.late else "status %s" % answer.status
        raise Refused(
            "%s could not be built (%s): %s. Correct that, then run the playbook again."
            % (entry["file"], status, last_words(answer))
        )


def variables():
    """The same on every host, as far as it decides about the content of a wheel: debug information has pip's random path."""
    return packages.clean_variables(
        PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0", SOURCE_DATE_EPOCH="315532800", CFLAGS="-g0"
    )


def last_words(answer):
    text = "\n".join(part for part in (answer.output, answer.error) if part) or answer.problem
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("DEPRECATION")]
    return plain(" | ".join(lines[-6:]))


def plain(text):
    """Text of a stranger, for a terminal and for Python 2.7's messages."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in text)[-2000:]


# --- what a build left ----------------------------------------------------------------------------------------------


def taken(directory, owner, target):
    """Copy the only file of a directory to root's; nothing of the owner runs any more."""
    try:
        status = os.lstat(directory)
    except OSError:
        raise NotTheWheel("it left no wheel")
    if not stat.S_ISDIR(status.st_mode):
        raise NotTheWheel("it replaced the directory of its wheels")
    names = sorted(os.listdir(directory))
    if len(names) != 1:
        raise NotTheWheel(
            "it must leave one wheel but left %d: %s" % (len(names), ", ".join(shown(*names[:3])) or "none")
        )
    [name] = names
    if not NAME.match(name):
        raise NotTheWheel("it left %s, which is no name of a wheel" % shown(name)[0])
    path = os.path.join(directory, name)
    proper(os.lstat(path), name, owner)
    copied = os.path.join(target, name)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as source:
        proper(os.fstat(descriptor), name, owner)
        with os.fdopen(os.open(copied, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as sink:
            size, members, before = 0, 0, b""
            for chunk in iter(lambda: source.read(CHUNK), b""):
                size += len(chunk)
                members += (before + chunk).count(MEMBER)
                before = chunk[1 - len(MEMBER) :]
                if size > LARGEST:
                    raise NotTheWheel("%s is larger than %d MB" % (name, LARGEST // MB))
                if members > MEMBERS:  # before all their names are in memory
                    raise NotTheWheel("%s has more than %d files" % (name, MEMBERS))
                sink.write(chunk)
    return copied


def proper(status, name, owner):
    if not stat.S_ISREG(status.st_mode):
        raise NotTheWheel("%s is a link or something else than a file" % name)
    if status.st_uid != owner or status.st_nlink != 1:
        raise NotTheWheel("%s is another file of this host" % name)
    if status.st_size > LARGEST:
        raise NotTheWheel("%s is larger than %d MB" % (name, LARGEST // MB))


def shown(*names):
    return [plain(name)[:80] for name in names]


def examined(path):
    """Read all of a wheel once, within limits: what it says about its sizes is not known to be true."""
    name = os.path.basename(path)
    try:
        with contextlib.closing(zipfile.ZipFile(path)) as archive:
            members = archive.infolist()
            if len(set(info.filename for info in members)) != len(members):
                raise NotTheWheel("%s has two files of one name" % name)
            total = 0
            for info in members:
                information = ".dist-info/" in info.filename
                total += length(archive, info, INFORMATION if information else CONTENT - total, name)
    except BROKEN as problem:
        raise NotTheWheel("%s cannot be read: %s" % (name, problem))


def length(archive, info, limit, name):
    size = 0
    with contextlib.closing(archive.open(info)) as source:
        for chunk in iter(lambda: source.read(CHUNK), b""):
            size += len(chunk)
            if size > limit:
                raise NotTheWheel(
                    "%s has more in it than it may: %d MB, %d MB of metadata" % (name, CONTENT // MB, INFORMATION // MB)
                )
    return size


def identified(wheel, entry):
    """Refuse the wheel of another project or version."""
    name = wheel.file
    match, inside = NAME.match(name), wheel.information[: -len(".dist-info")].partition("-")
    for found in (match.group("project", "version"), wheel.identity(), (inside[0], inside[2])):
        if packages.canonical(found[0]) != entry["project"] or release(found[1]) != release(entry["version"]):
            raise NotTheWheel(
                "it must become %s %s but %s is of %s"
                % (entry["project"], entry["version"], name, " ".join(shown(*found)))
            )


def release(version):
    """A version as it is compared: 3.2.3-2, 3.2.3_2 and 3.2.3.post2 are one, as 1.0-rc1 and 1.0rc1, 2026.01 and 2026.1."""
    version = re.sub(r"^(\d[\d.]*)[-_](\d+)$", r"\1.post\2", version.strip().lower())
    version = re.sub(r"[-_.]+", ".", version)
    return re.sub(r"(^|\.)0+(?=\d)", r"\1", re.sub(r"\.(?=[a-z])|(?<=[a-z])\.", "", version))


def admitted(path, entry, site, others):
    """Refuse another wheel than the lock's, and files where root would run them or that belong to others."""
    try:
        wheel = wheel_files.Wheel(path, site, "")
        identified(wheel, entry)
        scripts = ["bin/" + script[0] for script in wheel.entry_points()]
    except wheel_files.WheelProblem as problem:
        raise NotTheWheel("its wheel is refused: %s" % plain(problem.args[0]).rstrip("."))
    places = sorted(wheel.destinations.values()) + scripts
    files = set(others) | set(place.encode("utf-8") for place in places)
    directories = set(directory for path in files for directory in above(path))
    for place in places:
        path = place.encode("utf-8")
        problem = misplaced(place, site, wheel.information)
        if problem is None and path in others:
            problem = "a file of another wheel"
        if problem is None and (path in directories or files.intersection(above(path))):
            problem = "a file in place of a directory"
        if problem is None and (len(path) > LONGEST or max(len(part) for part in path.split(b"/")) > PART):
            problem = "too long a name"
        if problem:
            raise NotTheWheel("its wheel has %s: %s" % (problem, shown(place)[0]))


def above(path):
    """Every directory of a relative path."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]


def misplaced(place, site, information):
    """What is wrong with a file at this place of the tree; None for nothing."""
    if not place.startswith(site + "/"):
        return None if OUTSIDE.match(place) else "a file outside of the places of a package"
    inside = place[len(site) + 1 :]
    first = inside.split("/")[0]
    if AT_START.match(inside):
        return "a file that Python runs whenever it starts"
    if environment_tree.is_bytecode(inside.encode("utf-8")):
        return "bytecode"
    if first.endswith((".dist-info", ".egg-info")) and first != information:
        return "metadata of another project"
    return None
