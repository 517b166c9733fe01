"""The versions of bazel that the role bazel installed below a directory, by their marks, and what an executable of bazel is. Python 2.7 and 3.

A version is ROOT/VERSION/bin/bazel with ROOT/VERSION/.deeplearning.json, which is written with it: no mark, not managed by this project.
"""

import contextlib
import io
import os
import re
import zipfile

from . import atomic_files, environment_tree, processes

MARK = ".deeplearning.json"
WORK = ".deeplearning"  # the directory of a compilation while it runs; nothing else below the root changes
PROGRAM = "bin/bazel"
SECONDS = 60  # for ldd and rpm


def read_mark(place):
    """What the mark of a version says; None if there is none that can be read."""
    return environment_tree.read_json(os.path.join(place, MARK)) or None


def versions(root):
    """Each version by its name: its mark, whether this project installed it, and whether it is complete."""
    version_marks = {}
    for name in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        place = os.path.join(root, name)
        if name.startswith(".") or not re.match(r"\d", name):
            continue
        mark = read_mark(place)
        program = os.path.join(place, PROGRAM)
        complete = bool(mark) and os.path.isfile(program) and atomic_files.sha256_of(program) == mark.get("program")
        version_marks[name] = dict(mark or {}, managed=mark is not None, complete=complete)
    return version_marks


def leftovers(root):
    """Paths that killed or failed compilations left: their directory, and logs of versions that are not installed."""
    work = os.path.join(root, WORK)
    names = sorted(os.listdir(work)) if os.path.isdir(work) else []
    source_versions = [name.split("-")[1] for name in names if re.match(r"source-\d", name)]
    logs = [(version, os.path.join(root, "bootstrap-%s.log" % version)) for version in source_versions]
    paths = [log for version, log in logs if os.path.isfile(log) and not os.path.lexists(os.path.join(root, version))]
    return paths + ([work] if os.path.isdir(work) else [])


def label(program):
    """The version that is built into an executable of bazel, or None. Its server is in a zip archive behind its own code.

    Debian's and a compiled one say "4.2.3- (@non-git)".
    """
    try:
        with contextlib.closing(zipfile.ZipFile(program)) as archive:
            names = archive.namelist()
            if "build-label.txt" in names:
                return text(archive.read("build-label.txt"))
            if "A-server.jar" not in names:
                return None
            with contextlib.closing(zipfile.ZipFile(io.BytesIO(archive.read("A-server.jar")))) as server:
                properties = text(server.read("build-data.properties"))
    except (zipfile.BadZipfile, IOError, OSError, KeyError):
        return None
    match = re.search(r"^build\.label=(.*)$", properties, re.M)
    return match.group(1).strip() if match else None


def packaged(program):
    """The version of Debian's package (bazel-bootstrap) that an executable belongs to: it has its server in /usr/share/bazel and no version of its own."""
    owner = processes.run(["dpkg-query", "--search", program], SECONDS)
    name = owner.output.partition(":")[0] if owner.status == 0 else ""
    answer = processes.run(["dpkg-query", "--show", "--showformat", "${Version}", name], SECONDS) if name else None
    match = re.match(r"(?:\d+:)?(\d+(?:\.\d+)*)", answer.output) if answer and answer.status == 0 else None
    return match.group(1) if match else None


def text(content):
    return content.decode("utf-8", "replace").strip()


def problem(program, version):
    """Why this file cannot be bazel of this version on this host, as a clause; None if it can. Root asks, so the file does not run."""
    program_version = label(program)
    if program_version is None:
        return "it is no executable of bazel (no server is in it)"
    if re.match(r"\d+(\.\d+)*", program_version) and re.match(r"\d+(\.\d+)*", program_version).group() != version:
        return "it is bazel %s" % program_version
    answer = processes.run(["ldd", program], SECONDS, dict(os.environ, LC_ALL="C"))
    symbols = sorted(set(re.findall(r"version `([^']+)' not found|(\S+) => not found", answer.output + answer.error)))
    if symbols:
        return "this host has no %s" % ", ".join(symbol or library for symbol, library in symbols)
    return None
