"""Install one component of a lock into a tree that is being built. Python 2.7 and 3.

Fetch and verify all wheels -> unpack -> compile -> write the list of files -> sync -> mark as complete. A run that ends
between unpacking and the mark leaves the file `failed`: the component pip then builds the tree again.
"""

import contextlib
import glob
import hashlib
import multiprocessing
import os
import shutil
import stat
import zipfile
from multiprocessing.pool import ThreadPool  # novermin (2.7 has it)

from . import (
    atomic_files,
    disk_space,
    environment_bytes,
    environment_names,
    environment_tree,
    mirror_source,
    source_wheels,
    wheel_files,
)
from . import environment_packages as packages
from .environment_packages import Refused

UNPACKED = 5  # a wheel and what it unpacks to take about so many times the wheel
COMPILERS = max(2, min(4, multiprocessing.cpu_count()))
# One build of Python: its version with the time of the build and the compiler. Modules that an incomplete one lacks are imported.
BUILD = "import ssl, sys, zlib; print(' '.join(sys.version.split()))"
FAILED = "failed"  # in the state of a tree that is never continued


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
    atomic_files.write_whole(packages.state_file(tree, component + ".files"), text)
    environment_bytes.sync(tree)
    more.update(component=component, files_sha256=hashlib.sha256(text).hexdigest())
    atomic_files.write_json(packages.state_file(tree, component + ".json"), more)


def unfinished_tree(environment):
    """The tree that an earlier run began and that can be continued; None without one."""
    tree = environment_names.unsealed_tree(environment)
    if not tree or os.path.exists(packages.state_file(tree, FAILED)) or not marker(tree, "made"):
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
    problem = disk_space.shortage(directory, size, files)
    if problem:
        raise Refused(
            "%s Remove old environments (environment_keep: 0) or other files there, or mount a file system with more room."
            % problem
        )


# --- one component -------------------------------------------------------------------------------------------------


class Component(object):
    """One component of a lock, on its way into the environment's newest tree."""

    def __init__(self, parameters):
        """parameters: those of the module locked_packages."""
        self.environment = parameters["environment"].rstrip("/")
        self.name, self.python, self.timeout = parameters["component"], parameters["python"], parameters["timeout"]
        self.entries = packages.parse_section(parameters["lock"])
        self.digest = packages.lock_digest(parameters["lock"])
        self.source = mirror_source.source(
            parameters["mirror_url"], parameters["mirror_ca"], self.timeout, parameters["mirror_login"]
        )
        self.tree = self.lock = None
        if not self.entries:
            raise Refused("The lock of the component %s must not be empty. Check the stack's lock." % self.name)

    def packages(self):
        return ["%(project)s %(version)s" % entry for entry in self.entries if entry["project"] not in packages.TOOLS]

    def needs(self):
        """None when there is nothing to do; else why. Finds the tree."""
        self.tree, problem = environment_names.look(self.environment)
        if self.tree:
            if (marker(self.tree, self.name) or {}).get("lock_sha256") != self.digest:
                raise Refused(
                    "A sealed environment never changes, but %s was sealed with another lock of %s. Give the new lock an "
                    "environment of its own: its name contains the lock's digest." % (self.tree, self.name)
                )
            return None
        self.tree = unfinished_tree(self.environment)
        if self.tree and (marker(self.tree, self.name) or {}).get("lock_sha256") == self.digest:
            return None
        return problem

    def install(self, lock):
        """lock: the HostLock, which programs inherit."""
        self.lock = lock
        parent = os.path.dirname(self.environment)
        check_mount(parent)
        if self.tree is None and self.name != "pip":
            raise Refused(
                "%s must have an unfinished tree with Python. Install the component pip first." % self.environment
            )
        check_room(parent, UNPACKED * sum(entry["size"] for entry in self.entries), 2 * len(self.entries))
        self.source.check(self.entries)
        if self.tree is None:
            self.begin()
        if environment_names.live_tree(self.environment) is None:  # also if a run was killed after it made the tree
            environment_names.point(self.environment, self.tree)
        with self.scratch() as scratch:
            try:
                rows = self.unpack(scratch)
            except wheel_files.WheelProblem as problem:
                raise Refused("%s Lock another version of it: scripts/stack lock." % problem)
            self.compile(rows, scratch)
        write_component(self.tree, self.name, rows, lock_sha256=self.digest)
        os.unlink(packages.state_file(self.tree, FAILED))

    @contextlib.contextmanager
    def scratch(self):
        """A directory of root's for downloads; it is on the tree's file system, and gone afterwards."""
        path = packages.state_file(self.tree, "tmp")
        shutil.rmtree(path, ignore_errors=True)
        os.mkdir(path, 0o700)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def fetched(self, entry, scratch):
        """Path of the entry's wheel."""
        path = self.source.fetch(entry, scratch)
        if source_wheels.is_wheel(entry["file"]):
            return path
        try:
            return source_wheels.make(entry["file"], entry["sha256"], path, scratch)
        except source_wheels.NoWheel as problem:
            raise Refused("%s. Then make the lock again: scripts/stack lock" % problem)

    def unpack(self, scratch):
        """Write the files of all wheels; path (bytes) -> (sha256, size). Of a path in two wheels, the later one's file stays."""
        site = os.path.relpath(packages.site_packages(self.tree), self.tree)
        python = os.path.join(self.environment, "bin", "python")
        entries = [entry for entry in self.entries if entry["project"] not in packages.TOOLS]
        wheels = [wheel_files.Wheel(self.fetched(entry, scratch), site, python) for entry in entries]
        size, files = sum(wheel.size() for wheel in wheels), sum(len(wheel.members) for wheel in wheels)
        check_room(self.tree, size * 5 // 4, files * 2)
        atomic_files.write_whole(packages.state_file(self.tree, FAILED), b"")
        rows = {}
        for wheel in wheels:
            rows.update(wheel.install(self.tree))
        return rows

    def run(self, command, scratch, timeout=None, **more):
        variables = packages.clean_variables(TMPDIR=scratch, PYTHONDONTWRITEBYTECODE="1", **more)
        return packages.run(command, timeout or self.timeout, variables, lock=self.lock)

    def compile(self, rows, scratch):
        """Compile the sources of these files. Root runs this Python without site, which runs what wheels have for every start (*.pth).

        From Python 3.7 on the bytecode is not compared with its source at every import; the list of all files at the
        seal has its sha256. -f: if the same second and size hide a change of the source, older Pythons would keep it.
        """
        command = [os.path.join(self.tree, "bin", "python"), "-S", "-W", "ignore", "-m", "compileall", "-q", "-f"]
        name = os.path.basename(os.path.dirname(packages.site_packages(self.tree)))
        if tuple(int(number) for number in name[len("python") :].split(".")) >= (3, 7):
            command += ["--invalidation-mode", "unchecked-hash"]
        root = self.tree.encode("utf-8")
        sources = sorted(path for path in rows if path.startswith(b"lib") and path.endswith(b".py"))

        def compile_part(number):
            path = os.path.join(scratch, "sources-%d" % number)
            with open(path, "wb") as handle:
                handle.write(b"".join(os.path.join(root, source) + b"\n" for source in sources[number::COMPILERS]))
            return self.run(command + ["-i", path], scratch, **standard_library(self.tree))

        pool = ThreadPool(COMPILERS)
        try:
            for status, output in pool.map(compile_part, range(COMPILERS)):
                if status not in (0, 1):  # 1: a file is of another Python's grammar, as some packages have on purpose
                    words = last_words("status %s: %s" % (status, output))
                    raise Refused("Compiling the packages ended with %s. Run the playbook again." % words)
        finally:
            pool.close()
            pool.join()

    def begin(self):
        """Make the next tree; what an earlier run began and cannot be continued goes."""
        if not self.python or not os.path.exists(self.python):
            raise Refused(
                "The component pip needs an interpreter of this host but python is %r. Check environment_python."
                % self.python
            )
        if os.path.isdir(self.environment) and not os.path.islink(self.environment):
            raise Refused(
                "%s is needed for the environment, but it contains something else. Move it away, then run the playbook again."
                % self.environment
            )
        unfinished = environment_names.unsealed_tree(self.environment)
        if unfinished:
            environment_names.remove(unfinished)
        self.tree = environment_names.next_tree(self.environment)
        os.makedirs(os.path.join(self.tree, environment_tree.STATE), 0o755)
        with self.scratch() as scratch:
            self.make_tree(scratch)

    def make_tree(self, scratch):
        """Make the empty environment (venv, or the locked virtualenv for Python 2.7) and mark it as made."""
        command = [self.python, "-m", "venv", "--without-pip", self.tree]
        for entry in self.entries:
            if entry["project"] == "virtualenv":
                unpacked = os.path.join(scratch, "virtualenv")
                with contextlib.closing(zipfile.ZipFile(self.fetched(entry, scratch))) as archive:
                    archive.extractall(unpacked)  # its sha256 was just compared with the lock's
                command = [self.python, os.path.join(unpacked, "virtualenv.py"), "--no-download", "--no-pip"]
                command += ["--no-setuptools", "--no-wheel", self.tree]
        status, output = self.run(command, scratch, 300)
        if status == 0:
            status, output = self.run([os.path.join(self.tree, "bin", "python"), "-c", BUILD], scratch, 60)
        if status != 0 and ("No space left" in output or "Disk quota" in output):
            raise Refused(
                "%s needs more room: %s. Remove old environments (environment_keep: 0) or small files, or mount a larger file "
                "system, then run the playbook again." % (os.path.dirname(self.tree), last_words(output))
            )
        if status != 0:
            raise Refused(
                "%s must be able to make an environment, but that ended with status %s: %s. Check that interpreter: its standard "
                "library must be complete." % (self.python, status, last_words(output))
            )
        rows, root = {}, self.tree.encode("utf-8")
        settle(self.tree, self.environment)
        for path, file_status in environment_tree.entries(root):
            if not environment_tree.is_bytecode(path):
                rows[path] = (environment_bytes.content(os.path.join(root, path)), file_status.st_size)
        self.compile([path for path in rows if not os.path.isdir(os.path.join(root, path))], scratch)
        write_component(self.tree, "made", rows, build={"version": output.strip()})


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


def settle(tree, environment):
    """Of the files that venv or virtualenv wrote: the environment's name instead of this tree's, and the time that all files have."""
    root = tree.encode("utf-8")
    names = [os.path.basename(name).encode("utf-8") for name in (tree, environment)]
    for path, status in list(environment_tree.entries(root)):
        if stat.S_ISREG(status.st_mode):
            with open(os.path.join(root, path), "rb") as handle:
                text = handle.read()
            if b"\0" not in text:
                text = text.replace(*names)
            wheel_files.write(tree, path.decode("utf-8"), text, None, stat.S_IMODE(status.st_mode))
