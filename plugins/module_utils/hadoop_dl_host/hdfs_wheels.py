# -*- coding: utf-8 -*-
"""Wheels of environments in HDFS: one host puts them there, all hosts read them. Python 2.7 and 3, standard library.

A file is DIRECTORY/SHA256-NAME; `hdfs dfs -put` gives it that name when it is complete (before, it ends with ._COPYING_).
HDFS is not trusted: whoever installs a wheel compares it with the lock (mirror_source).
"""

from __future__ import absolute_import, division, print_function

import os
import re

from . import environment_build, environment_names, hdfs_record, room, sealed_files, whole_files
from . import environment_packages as packages
from .hdfs_command import ASK, PUT, Failure, Hdfs, answer
from .staged_wheels import has, name_of

WHEEL = re.compile(r"[0-9a-f]{64}-.")
READABLE = ["-D", "fs.permissions.umask-mode=022"]  # hosts of another principal read there
RATE = 2 << 20  # bytes each second that HDFS must at least give or take, while many hosts read


def limit(entries):
    return ASK + sum(entry["size"] for entry in entries) // RATE


def missing(environment, lock):
    """The wheels that the environment lacks on this host; those that its sealed tree has are copied from there."""
    if environment_names.look(environment)[0]:
        return []
    tree = environment_build.unfinished_tree(environment)
    digests = []
    live = environment_names.live_tree(environment)
    if live and packages.site_packages(live):
        site = os.path.relpath(packages.site_packages(live), live)
        sealed = sealed_files.known_wheels(environment, site, None)
        digests = [sha256 for sha256, copies in sealed.items() if any(copy.is_there() for copy in copies)]
    missing_entries = []
    for component, section in packages.sections(lock).items():
        if not (tree and environment_build.is_complete(tree, component, packages.lock_digest(section))):
            missing_entries += [entry for entry in packages.parse_section(section) if entry["sha256"] not in digests]
    return missing_entries


def largest_first(entries):
    return sorted(entries, key=lambda entry: -entry["size"])


class Wheels(Hdfs):
    """The wheels in one directory of HDFS."""

    def __init__(self, environment_file, user, directory):
        Hdfs.__init__(self, environment_file, user)
        self.directory = directory

    def path(self, entry):
        return "%s/%s" % (self.directory, name_of(entry))

    def look(self):
        """Path -> size of the files in the directory, and whether it is there."""
        status, sizes, output = self.listed([self.directory])
        if status and "No such file" not in output:
            raise Failure("`hdfs dfs -ls %s` must work, but answered: %s." % (self.directory, answer(output)))
        return sizes, not status

    def read(self, entries, directory):
        """Have wheels in the local directory; those that are not there afterwards, and what HDFS answered."""
        wheels = [entry for entry in largest_first(entries) if not has(directory, entry)]
        if not wheels:
            return [], ""
        problem = room.shortage(directory, sum(entry["size"] for entry in wheels), len(wheels))
        if problem:
            return wheels, problem
        whole_files.make_directory(directory, 0o700)
        for entry in wheels:
            path = os.path.join(directory, name_of(entry))
            if os.path.lexists(path):
                os.unlink(path)
        status, output = self.run(["-get"] + [self.path(entry) for entry in wheels] + [directory], limit(wheels))
        remaining_entries = [entry for entry in wheels if not has(directory, entry)]
        reason = answer(output) if status else "files of another size"
        return remaining_entries, "`hdfs dfs -get` answered: %s" % reason if remaining_entries else ""

    def publish(self, entries, digests, local, fetch, record, replication):
        """Put what is missing there, and remove the wheels that no lock needs, whoever put them there; the names of both.

        fetch: gets one entry from the mirror into a directory, verified. digests: sha256 of every wheel that is still needed.
        """
        sizes, is_there = self.look()
        missing_entries = largest_first(entry for entry in entries if sizes.get(self.path(entry)) != entry["size"])
        if missing_entries:
            new_directories = [] if is_there else self.missing_directories(self.directory)
            hdfs_record.add(record, [self.path(entry) for entry in missing_entries], new_directories, self.user)
            whole_files.make_directory(local, 0o700)
            for entry in missing_entries:
                if not has(local, entry):
                    part = os.path.join(local, entry["file"])  # of a fetch that failed or was killed
                    if os.path.lexists(part):
                        os.unlink(part)
                    os.rename(fetch(entry, local), os.path.join(local, name_of(entry)))
            if new_directories:
                self.must(READABLE + ["-mkdir", "-p", self.directory])
            copies = ["-D", "dfs.replication=%d" % replication] if replication else []
            paths = [os.path.join(local, name_of(entry)) for entry in missing_entries]
            self.must(READABLE + copies + ["-put", "-f"] + paths + [self.directory], limit(missing_entries) + PUT)
        names = dict((path, os.path.basename(path)) for path in sizes)
        old_paths = sorted(path for path in names if WHEEL.match(names[path]) and names[path][:64] not in digests)
        if old_paths:
            self.must(["-rm", "-f", "-skipTrash"] + old_paths)
            hdfs_record.forget(record, old_paths)
        return [entry["file"] for entry in missing_entries], old_paths
