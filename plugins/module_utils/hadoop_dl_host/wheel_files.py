"""Unpack a verified wheel into an environment, as pip does, and report every file with its sha256. Python 2.7 and 3.

The layout is the one of https://packaging.python.org/specifications/binary-distribution-format/ ; if that leaves a
choice (scripts, modes, bytecode in wheels), pip's behaviour. Bytecode is not made here: the environment's own Python does.
"""

import base64
import contextlib
import errno
import hashlib
import os
import re
import zipfile
import zlib

from . import atomic_files

CHUNK = 1 << 20
TIME = 315532800  # 1980-01-01, the earliest time that a wheel can have: every file of every environment is of that time
SHEBANG_LIMIT = 127  # bytes of the first line that an old kernel reads
INSTALLER = b"hadoop-deeplearning\n"
# A console script. Only the names are the wheel's: two lines that no file could hold, because they import what is not here.
SCRIPT = "from {module} import {name}\nif __name__ == '__main__': raise SystemExit({function}())\n"
# If the path is too long for the first line: sh runs the second one up to the #, and Python reads it as a text.
LONG_SHEBANG = "#!/bin/sh\n''':'; exec \"%s\" \"$0\" \"$@\" #'''\n"


class WheelProblem(Exception):
    """A wheel that cannot be installed; the text says why."""


class Wheel(object):
    """One wheel and where its members go. Paths are text, relative to the environment, with / between the parts."""

    def __init__(self, path, site, python):
        """site: the environment's site-packages, relative to it. python: the first line of scripts names it."""
        self.path, self.file, self.site, self.python = path, os.path.basename(path), site, python
        try:
            with contextlib.closing(zipfile.ZipFile(path)) as archive:
                self.members = [info for info in archive.infolist() if not info.filename.endswith("/")]
                names = dict((_text(info.filename), info) for info in self.members)
                self.information = self._information(names)
                self.metadata = self._read(archive, names, "METADATA")
                points = self._read(archive, names, "entry_points.txt")
                version = self._read(archive, names, "WHEEL")
        except (zipfile.BadZipfile, ValueError) as error:
            raise WheelProblem("%s is not a wheel: %s." % (self.file, error))
        if not re.search(r"(?m)^Wheel-Version: 1\.", version):
            raise WheelProblem("%s is of a wheel format other than 1." % self.file)
        self.data = self.information[: -len(".dist-info")] + ".data"
        self.entry_points = list(self._entry_points(points))
        self.destinations = {}
        for name, info in names.items():
            if not self._is_skipped(name, names):
                self.destinations[info.filename] = self._destination(name)

    def _information(self, names):
        directories = [name.split("/")[0] for name in names if re.match(r"^[^/]+\.dist-info/WHEEL$", name)]
        if len(directories) != 1:
            raise WheelProblem("%s must have one dist-info directory but has %d." % (self.file, len(directories)))
        return directories[0]

    def _read(self, archive, names, name):
        info = names.get(self.information + "/" + name)
        return archive.read(info).decode("utf-8", "replace") if info else ""

    def _is_skipped(self, name, names):
        """What is written for this environment and is in no wheel: RECORD, and bytecode whose source is in it."""
        if name in (self.information + "/RECORD", self.information + "/INSTALLER"):
            return True
        directory, _, base = name.rpartition("/")
        if not base.endswith((".pyc", ".pyo")):
            return False
        if directory.rpartition("/")[2] == "__pycache__":
            source = directory.rpartition("/")[0] + "/" + base.split(".")[0] + ".py"
        else:
            source = name[:-1]
        return source.lstrip("/") in names

    def _destination(self, name):
        parts = name.split("/")
        if name.startswith("/") or "\\" in name or "\n" in name or set(parts) & set(("", ".", "..")):
            raise WheelProblem("%s has a member outside of its own tree: %s." % (self.file, name))
        if parts[0] != self.data:
            return self.site + "/" + name
        project, python = self.identity()[0], self.site.split("/")[1]
        places = {
            "purelib": self.site + "/",
            "platlib": self.site + "/",
            "scripts": "bin/",
            "data": "",
            "headers": "include/site/%s/%s/" % (python, project),
        }
        if len(parts) < 3 or parts[1] not in places:
            raise WheelProblem("%s has data of an unknown kind: %s." % (self.file, name))
        return places[parts[1]] + "/".join(parts[2:])

    def identity(self):
        """Name and version, as METADATA has them."""
        values = {}
        for line in self.metadata.splitlines():
            if not line.strip():
                break
            key, _, value = line.partition(":")
            values.setdefault(key.lower(), value.strip())
        return values.get("name", ""), values.get("version", "")

    def mode(self, info):
        return 0o755 if (info.external_attr >> 16) & 0o111 or self._is_script(info) else 0o644

    def _is_script(self, info):
        return _text(info.filename).startswith(self.data + "/scripts/")

    def size(self):
        return sum(info.file_size for info in self.members)

    def install(self, root):
        """Write the files below root; path (bytes) -> (sha256, size). What belongs to this installation: scripts of entry points, INSTALLER, RECORD."""
        rows = {}
        try:
            with contextlib.closing(zipfile.ZipFile(self.path)) as archive:
                for info in self.members:
                    if info.filename in self.destinations:
                        path = self.destinations[info.filename]
                        with contextlib.closing(archive.open(info)) as source:
                            first = source.read(CHUNK)
                            if self._is_script(info) and first.startswith(b"#!python"):
                                first = self.shebang().encode("utf-8") + first.partition(b"\n")[2]
                            rows[path] = write(root, path, first, source, self.mode(info))
        except (zipfile.BadZipfile, zlib.error) as error:
            raise WheelProblem("%s cannot be unpacked: %s." % (self.file, error))
        for name, module, function in self.entry_points:
            text = self.shebang() + SCRIPT.format(module=module, name=function.split(".")[0], function=function)
            rows["bin/" + name] = write(root, "bin/" + name, text.encode("utf-8"), None, 0o755)
        information = self.site + "/" + self.information
        rows[information + "/INSTALLER"] = write(root, information + "/INSTALLER", INSTALLER)
        lines = [_row(path, self.site, *row) for path, row in rows.items()] + ["%s/RECORD,,\n" % self.information]
        record = "".join(sorted(lines)).encode("utf-8")
        rows[information + "/RECORD"] = write(root, information + "/RECORD", record)
        return dict((path.encode("utf-8"), row) for path, row in rows.items())

    def _entry_points(self, text):
        """Name, module and function of every console and gui script."""
        section = ""
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("["):
                section = line.strip("[] ")
            elif "=" in line and section in ("console_scripts", "gui_scripts") and line[0] not in "#;":
                name, _, target = line.partition("=")
                module, _, function = target.partition("[")[0].partition(":")
                name, module, function = name.strip(), module.strip(), function.strip()
                if not re.match(r"^[\w.-]+$", name) or not re.match(r"^[\w.]+$", module + function):
                    raise WheelProblem("%s has a script that cannot be written: %s." % (self.file, line))
                if not re.match(r"^(pip|easy_install-?)\d+\.\d+$", name):  # the version of whoever built the wheel
                    yield name, module, function

    def shebang(self):
        if len(self.python) + 2 <= SHEBANG_LIMIT and " " not in self.python:
            return "#!%s\n" % self.python
        return LONG_SHEBANG % self.python


def write(root, path, first, source=None, mode=0o644):
    """Write a new file (never through an old one, which may be mapped or a link), of the time that all have; its sha256 and size."""
    full = os.path.join(root.encode("utf-8"), path.encode("utf-8"))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for attempt in (1, 2, 3):
        try:
            handle = os.fdopen(os.open(full, flags, mode), "wb")
            break
        except (IOError, OSError) as error:
            if error.errno == errno.ENOENT:
                atomic_files.make_directory(os.path.dirname(full))
            elif error.errno == errno.EEXIST and attempt < 3:
                os.unlink(full)
            else:
                raise
    digest, size = hashlib.sha256(), 0
    with handle:
        chunk = first
        while chunk:
            digest.update(chunk)
            handle.write(chunk)
            size += len(chunk)
            chunk = source.read(CHUNK) if source else b""
    os.utime(full, (TIME, TIME))
    return digest.hexdigest(), size


def _text(name):
    """Python 2 gives bytes for names without the flag for UTF-8; Python 3 decodes them like this."""
    return name.decode("cp437") if isinstance(name, bytes) else name


def _quoted(name):
    return '"%s"' % name.replace('"', '""') if re.search('[",\n]', name) else name


def _row(path, site, sha256, size):
    """RECORD's line for a file: paths are relative to site-packages."""
    name = path[len(site) + 1 :] if path.startswith(site + "/") else "../" * len(site.split("/")) + path
    digest = base64.urlsafe_b64encode(base64.b16decode(sha256.upper())).rstrip(b"=").decode("ascii")
    return "%s,sha256=%s,%d\n" % (_quoted(name), digest, size)
