# -*- coding: utf-8 -*-
"""Install one component of a lock into a tree that is being built. Python 2.7 and 3.

fetch and verify each wheel -> unpack it -> compile -> write the list of its files -> sync -> mark as complete.
A wheel is unpacked and compiled while the next ones are fetched. A source distribution becomes a wheel by its recipe (source_wheels).
"""

from __future__ import absolute_import, division, print_function

import contextlib
import glob
import hashlib
import os
import re
import shutil
import stat
import zipfile

from . import (
    bytecode,
    environment_bytes,
    environment_names,
    environment_tree,
    room,
    source_wheels,
    unpacking,
    wheel_files,
    whole_files,
)
from . import environment_packages as packages
from .environment_packages import Refused

UNPACKED = 5  # a wheel and what it unpacks to take about so many times the wheel
# One build of Python: its version with the time of the build and the compiler. Modules that an incomplete one lacks are imported.
BUILD = "import ssl, sys, zlib; print(' '.join(sys.version.split()))"
DRAFT = re.compile(b"[.]py[co][.][0-9]+$")


# --- what a tree promises ------------------------------------------------------------------------------------------


def marker(tree, name):
    return environment_tree.read_json(packages.state_file(tree, name + ".json"))


def promises(tree):
    """path (bytes) -> {component: (sha256, size)} of everything that was installed; ValueError if a list was changed."""
    path_rows = {}
    directory = os.path.join(tree, environment_tree.STATE)
    for entry in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        component, dot, kind = entry.partition(".")
        mark = marker(tree, component) if dot and kind == "files" else None
        if mark:
            rows = environment_bytes.read_manifest(os.path.join(directory, entry), mark.get("files_sha256", "none"))
            for path, row in rows.items():
                path_rows.setdefault(path, {})[component] = row
    return path_rows


def write_component(tree, component, rows, **more):
    """Mark a component as complete, once its files and the list of them are on the disk."""
    text = environment_bytes.manifest(rows)
    whole_files.write_whole(packages.state_file(tree, component + ".files"), text)
    environment_bytes.sync(tree)
    more.update(component=component, files_sha256=hashlib.sha256(text).hexdigest())
    whole_files.write_json(packages.state_file(tree, component + ".json"), more)


def has_its_files(tree, component):
    """Whether every file of a component is there in its size: a power loss leaves short files."""
    try:
        promised = promises(tree)
    except (IOError, OSError, ValueError):
        return False
    root = tree.encode("utf-8")
    for path, by in promised.items():
        if component in by:
            try:
                size = os.lstat(os.path.join(root, path)).st_size
            except OSError:
                return False
            if size not in [row[1] for row in by.values()]:  # two components may promise one path
                return False
    return True


def is_complete(tree, component, lock_sha256=None):
    mark = marker(tree, component)
    return bool(mark and mark.get("lock_sha256") == lock_sha256 and has_its_files(tree, component))


def remove_drafts(tree):
    """Remove what a killed compiler left: Python writes bytecode under a name with a number, and renames it."""
    promised, root = promises(tree), tree.encode("utf-8")
    for path in [path for path, _ in environment_tree.entries(root) if DRAFT.search(path) and path not in promised]:
        os.unlink(os.path.join(root, path))


def unfinished_tree(environment):
    """The tree that an earlier run began and that can be continued; None without one."""
    tree = environment_names.unsealed_tree(environment)
    if not tree or os.path.exists(packages.state_file(tree, "failed")) or not is_complete(tree, "made"):
        return None
    return tree if packages.site_packages(tree) else None


# --- the disk ------------------------------------------------------------------------------------------------------


def mount_of(path, mounts="/proc/self/mounts"):
    """Kind and options of the file system that holds the path."""
    best = ("", "", [])
    with open(mounts) as handle:
        for line in handle:
            fields = line.split(" ")
            point = fields[1].replace("\\040", " ")
            is_inside = (path + "/").startswith(point.rstrip("/") + "/")
            if is_inside and len(point) >= len(best[0]):
                best = (point, fields[2], fields[3].split(","))
    return best


def check_mount(directory):
    point, kind, options = mount_of(os.path.realpath(directory))
    obstacles = [name for name in ("ro", "noexec") if name in options] + [kind] * kind.startswith(("nfs", "cifs"))
    if obstacles:
        raise Refused(
            "Environments need a local file system that is writable and may run programs. %s is on %s, which is mounted as "
            "%s. Remount it, or mount a local file system there." % (directory, point, ", ".join(obstacles))
        )


def check_room(directory, size, files):
    problem = room.shortage(directory, size, files)
    if problem:
        raise Refused(
            "%s Remove old environments (environment_keep: 0) or other files there, or mount a file system with more room."
            % problem
        )


# --- one component -------------------------------------------------------------------------------------------------


class Component(object):
    """One component of a lock, on its way into a tree."""

    def __init__(self, environment, tree, name, entries, digest, source, lock):
        """source: a mirror_source.Source. lock: the HostLock, which programs inherit."""
        self.environment, self.tree, self.name = environment, tree, name
        self.entries, self.digest, self.source, self.lock = entries, digest, source, lock
        self.scratch = packages.state_file(tree, "tmp")

    def python(self):
        return os.path.join(self.tree, "bin", "python")

    @contextlib.contextmanager
    def work(self):
        """A directory of root's for downloads; it is on the tree's file system, and gone afterwards."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.mkdir(self.scratch, 0o700)
        try:
            yield
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def install(self):
        start_file = packages.state_file(self.tree, self.name + ".started")
        if os.path.exists(start_file):
            remove_drafts(self.tree)
        whole_files.write_whole(start_file, b"")
        if marker(self.tree, self.name) is not None:
            os.unlink(packages.state_file(self.tree, self.name + ".json"))
        wheels = [entry for entry in self.entries if entry["project"] not in packages.TOOLS]
        with self.work(), self.compiling() as compiler, self.unpacking(compiler) as work:
            rows = work.wheels(wheels)
        write_component(self.tree, self.name, rows, lock_sha256=self.digest)
        os.unlink(start_file)

    def fetched(self, entry):
        """Path of the entry's wheel."""
        path = self.source.fetch(entry, self.scratch)
        if source_wheels.is_wheel(entry["file"]):
            return path
        try:
            return source_wheels.make(entry["file"], entry["sha256"], path, self.scratch)
        except source_wheels.NoWheel as problem:
            raise Refused("%s. Then make the lock again: scripts/stack lock" % problem)

    def check_room(self, size, files):
        check_room(self.tree, size, files)

    def unpacking(self, compiler):
        site = os.path.relpath(packages.site_packages(self.tree), self.tree)
        return unpacking.Unpacking(self, site, os.path.join(self.environment, "bin", "python"), compiler)

    def run(self, command, timeout=None, **more):
        variables = packages.clean_variables(TMPDIR=self.scratch, PYTHONDONTWRITEBYTECODE="1", **more)
        return packages.run(command, timeout or self.source.timeout, variables, lock=self.lock)

    @contextlib.contextmanager
    def compiling(self):
        """A Compiler, which is done at the end of the block."""
        more = standard_library(self.tree)

        def run(command):
            return self.run(command, **more)

        try:
            with bytecode.Compiler(self.python(), self.tree, self.scratch, unpacking.WORKERS, run) as compiler:
                yield compiler
        except bytecode.NotCompiled as problem:
            raise Refused("Compiling the packages ended with %s. Run the playbook again." % last_words(str(problem)))


def standard_library(tree):
    """The variables by which the tree's Python finds it without site; virtualenv, for Python 2.7, wrote down where it is."""
    for path in glob.glob(os.path.join(tree, "lib", "python*", "orig-prefix.txt")):
        with open(path) as handle:
            prefix = handle.read().strip()
        name = os.path.basename(os.path.dirname(path))
        return {"PYTHONPATH": os.pathsep.join(os.path.join(prefix, lib, name) for lib in ("lib64", "lib"))}
    return {}


def last_words(output):
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("DEPRECATION")]
    return " | ".join(lines[-6:])


# --- a new tree ----------------------------------------------------------------------------------------------------


def settle(tree, environment):
    """Of the files that venv or virtualenv wrote: the environment's name instead of this tree's, and the time that all files have."""
    root = tree.encode("utf-8")
    names = [os.path.basename(name).encode("utf-8") for name in (tree, environment)]
    for path, status in list(environment_tree.entries(root)):
        full = os.path.join(root, path)
        if stat.S_ISREG(status.st_mode):
            with open(full, "rb") as handle:
                text = handle.read()
            if b"\0" not in text:
                text = text.replace(*names)
            wheel_files.write(tree, path.decode("utf-8"), text, None, stat.S_IMODE(status.st_mode))


def make_tree(component, interpreter):
    """Make the empty environment (venv, or the locked virtualenv for Python 2.7) and mark it as made."""
    tree = component.tree
    os.makedirs(os.path.join(tree, environment_tree.STATE), 0o755)
    tools = dict((entry["project"], entry) for entry in component.entries if entry["project"] in packages.TOOLS)
    with component.work():
        command = [interpreter, "-m", "venv", "--without-pip", tree]
        if "virtualenv" in tools:
            unpacked = os.path.join(component.scratch, "virtualenv")
            with contextlib.closing(zipfile.ZipFile(component.fetched(tools["virtualenv"]))) as archive:
                archive.extractall(unpacked)  # its sha256 was just compared with the lock's
            command = [interpreter, os.path.join(unpacked, "virtualenv.py"), "--no-download", "--no-pip"]
            command += ["--no-setuptools", "--no-wheel", tree]
        status, output = component.run(command, 300)
        if status == 0:
            status, output = component.run([component.python(), "-c", BUILD], 60)
        if status != 0 and ("No space left" in output or "Disk quota" in output):
            raise Refused(
                "%s needs more room: %s. Remove old environments (environment_keep: 0) or small files, or mount a larger file "
                "system, then run the playbook again." % (os.path.dirname(tree), last_words(output))
            )
        if status != 0:
            raise Refused(
                "%s must be able to make an environment, but that ended with status %s: %s. Check that interpreter: its standard "
                "library must be complete." % (interpreter, status, last_words(output))
            )
        build = {"version": output.strip()}
        rows, root = {}, tree.encode("utf-8")
        settle(tree, component.environment)
        for path, status in environment_tree.entries(root):
            if not environment_tree.is_bytecode(path):
                rows[path] = (environment_bytes.content(os.path.join(root, path)), status.st_size)
        with component.compiling() as compiler:
            compiler.add(path.decode("utf-8") for path in rows if not os.path.isdir(os.path.join(root, path)))
    write_component(tree, "made", rows, build=build)
