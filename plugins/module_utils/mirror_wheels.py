# -*- coding: utf-8 -*-
"""Build the locks' source distributions into wheels, once, on the mirror host. Python 3.6 and later, standard library only.

setup.py runs as on a host (source_builds): with the lock's own pip, setuptools and wheel, in a cell of a user without rights
and network. It gets no compiler, so that what it makes is Python alone, and is published only if source_proof shows that every
file is the source's. Hosts show that again. A wheel is in built/<Python>/<sha256 of the source>/, and the manifest has both sha256.
"""

from __future__ import absolute_import, division, print_function

import os
import shutil

from ansible.module_utils import (
    environment_build,
    environment_names,
    mirror_files,
    source_builds,
    source_proof,
    whole_files,
)
from ansible.module_utils import environment_packages as packages
from ansible.module_utils.environment_packages import Refused
from ansible.module_utils.host_lock import HostLock

FOLDER = "built"
DIRECTORIES = ("/usr/local/bin", "/usr/bin")  # of interpreters, as for hosts
NO_COMPILER = {"CC": "/bin/false", "CXX": "/bin/false"}
PIP = "pip"  # the component with pip, setuptools and wheel


class Local(object):
    """The mirror's own wheels/, in place of its address."""

    def __init__(self, root, timeout):
        self.root, self.timeout = root, timeout

    def fetch(self, entry, directory):
        path = os.path.join(directory, entry["file"])
        held = os.path.join(self.root, "wheels", entry["file"])
        if not os.path.isfile(held):
            raise Refused("%s must have %s but it is missing. Fill the mirror first." % (self.root, entry["file"]))
        shutil.copyfile(held, path)
        if whole_files.sha256_of(path) != entry["sha256"]:
            raise Refused("%s must have the sha256 of the lock. Fill the mirror again." % held)
        return path


def interpreter(python):
    """Path of this version of Python; None where the host does not have it."""
    paths = [os.path.join(directory, "python" + python) for directory in DIRECTORIES]
    return next((path for path in paths if os.access(path, os.X_OK)), None)


def sources(lock):
    """The source distributions of a lock."""
    entries = [entry for section in packages.sections(lock).values() for entry in packages.parse_section(section)]
    return [entry for entry in entries if not entry["file"].endswith(".whl")]


def folder_of(entry, python):
    return "/".join((FOLDER, python, entry["sha256"]))


def is_held(entry, python, root):
    """Whether the mirror has an intact wheel of this source distribution for this Python."""
    folder = folder_of(entry, python) + "/"
    for path, row in mirror_files.manifest_of(root).items():
        place = os.path.join(root, path)
        if path.startswith(folder) and os.path.isfile(place) and whole_files.sha256_of(place) == row.get("sha256"):
            return True
    return False


def missing(environments, root):
    """(environment, its source distributions without a wheel), the same one once for a Python."""
    found, seen = [], set()
    for environment in environments:
        rows = [(entry, (environment["python"], entry["sha256"])) for entry in sources(environment["lock"])]
        rows = [(entry, key) for entry, key in rows if key not in seen and not is_held(entry, key[0], root)]
        seen.update(key for _, key in rows)
        if rows:
            found.append((environment, [entry for entry, _ in rows]))
    return found


def build(environments, root, workspace, timeout):
    """Build what is missing: ({file: wheel}, {file: why hosts build it themselves}). environments: python, lock and interpreter of each."""
    built, refused = {}, {}
    wanted = missing(environments, root)
    if not wanted:
        return built, refused
    with HostLock("wheels of source distributions", timeout, os.path.dirname(workspace)) as lock:
        for environment, entries in wanted:
            python = environment["python"]
            program = environment.get("interpreter") or interpreter(python)
            names = ["%s for Python %s" % (entry["file"], python) for entry in entries]
            if program is None:
                reason = "this host has no Python %s" % python
                refused.update((name, reason) for name in names)
                continue
            try:
                with Workshop(environment["lock"], program, root, workspace, timeout, lock) as workshop:
                    for entry, name in zip(entries, names):  # noqa: B905  (Python 3.6 has no strict)
                        try:
                            built[name] = workshop.publish(entry, python)
                        except (Refused, source_proof.NotShown) as problem:
                            refused[name] = str(problem)
            except Refused as problem:
                refused.update((name, str(problem)) for name in names if name not in built)
    return built, refused


class Workshop(object):
    """An environment with the lock's pip, which is gone after the block."""

    def __init__(self, lock, program, root, workspace, timeout, host):
        section = packages.sections(lock).get(PIP)
        if section is None:
            raise Refused("The lock must have the component pip. Make it again: scripts/stack lock")
        self.program, self.root, self.workspace, self.timeout = program, root, workspace, timeout
        environment = os.path.join(workspace, "wheels-" + packages.lock_digest(section)[:12])
        self.tree = environment + ".1"
        entries, digest = packages.parse_section(section), packages.lock_digest(section)
        self.part = environment_build.Component(
            environment, self.tree, PIP, entries, digest, Local(root, timeout), host
        )

    def __enter__(self):
        self.clear()  # also of a killed run
        os.makedirs(self.workspace, 0o755)
        try:
            environment_build.check_mount(self.workspace)
            environment_build.check_room(self.workspace, 10 * sum(one["size"] for one in self.part.entries), 5000)
            environment_build.make_tree(self.part, self.program)
            environment_names.point(self.part.environment, self.tree)
            self.part.install()
        except BaseException:
            self.clear()
            raise
        return self

    def __exit__(self, *_):
        self.clear()

    def clear(self):
        if os.path.isdir(self.workspace):
            for tree in os.listdir(self.workspace):
                source_builds.clear(os.path.join(self.workspace, tree))
            shutil.rmtree(self.workspace)

    def publish(self, entry, python):
        """Build one, show that its wheel is of the source alone, and put it into the mirror; the wheel's name."""
        site = os.path.relpath(packages.site_packages(self.tree), self.tree)
        with self.part.work():
            source = self.part.fetched(entry)
            target = os.path.join(self.part.scratch, "built")
            wheel = source_builds.build(entry, source, self.tree, target, self.timeout, (), NO_COMPILER)
            source_proof.show(wheel, source, site)
            artifact = {"folder": folder_of(entry, python), "name": os.path.basename(wheel)}
            artifact["sha256"] = whole_files.sha256_of(wheel)
            artifact["about"] = {"source": entry["sha256"], "source_file": entry["file"], "python": python}
            mirror_files.prepare(self.root, [artifact])
            with mirror_files.only_one(self.root), open(wheel, "rb") as handle:
                draft = os.path.join(self.root, ".staging", artifact["sha256"])
                whole_files.write_whole(mirror_files.place_of(artifact, self.root), handle.read(), draft)
                mirror_files.write_manifest([artifact], self.root)
        return artifact["name"]
