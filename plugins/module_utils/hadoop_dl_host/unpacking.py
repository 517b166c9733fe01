# -*- coding: utf-8 -*-
"""Put the wheels of one component into its tree: from sealed trees of this host, or from the mirror. Python 2.7 and 3.

Files are written by several threads, and compiled while others are still to come. Large wheels and files begin first.
"""

from __future__ import absolute_import, division, print_function

import multiprocessing
import os
import threading
import zipfile
from multiprocessing.pool import ThreadPool  # novermin (2.7 has it)

from . import source_wheels, wheel_files
from .environment_packages import Refused

PART = 300  # files of a wheel that one thread writes at a time
WORKERS = max(2, min(4, multiprocessing.cpu_count()))


class Job(object):
    """One wheel. entry: of the lock. sealed: it in sealed trees. wheel: once it is fetched."""

    def __init__(self, entry, sealed):
        self.entry, self.sealed, self.wheel = entry, sealed, None
        self.parts, self.written = [], {}

    def listed(self):
        """Its dist-info directory and path -> (sha256, size, mode), for later trees; None for one with scripts of this tree, or made by recipe."""
        if self.wheel is None:
            return self.sealed[0].information, self.sealed[0].files
        if self.wheel.rewritten or not source_wheels.is_wheel(self.entry["file"]):
            return None
        modes = self.wheel.modes()
        return self.wheel.information, dict((path, row + (modes[path],)) for path, row in self.written.items())


class Unpacking(object):
    """with Unpacking(...) as unpacking: rows = unpacking.wheels(...)"""

    def __init__(self, component, site, python, known_wheels, compiler):
        """site: relative to the tree. python: of scripts. known_wheels: sealed_files.known_wheels()."""
        self.component, self.tree, self.site, self.python = component, component.tree, site, python
        self.known, self.compiler = known_wheels, compiler
        self.archives = threading.local()
        self.opened = []
        self.listed = {}
        self.pool = None

    def __enter__(self):
        self.pool = ThreadPool(WORKERS)
        return self

    def __exit__(self, *_):
        self.pool.terminate()
        self.pool.join()
        for archive in self.opened:
            archive.close()

    def wheels(self, entries):
        """Install wheels of a lock; path (bytes) -> (sha256, size). Of a path in two wheels, the later one's file stays."""
        jobs = [Job(entry, self.known.get(entry["sha256"], [])) for entry in entries]
        order = sorted(range(len(jobs)), key=lambda index: (not jobs[index].sealed, -entries[index]["size"]))
        for index in order:
            if jobs[index].sealed:
                self.begin_copy(jobs[index])
            else:
                self.begin(jobs[index], self.component.fetched(entries[index]))
        for job in jobs:
            self.collect(job)
            if job.wheel is None:
                self.write(job, [path for path in job.sealed[0].files if path not in job.written])
        return self.finish(jobs)

    def open(self, job, path):
        try:
            job.wheel = wheel_files.Wheel(path, self.site, self.python)
        except wheel_files.WheelProblem as problem:
            raise refused(problem)

    def begin(self, job, path):
        self.open(job, path)
        self.component.check_room(job.wheel.size() * 5 // 4, 2 * len(job.wheel.members))
        self.compiler.expect(job.wheel.destinations.values())
        chunks = job.wheel.chunks(PART)
        job.parts = [self.pool.apply_async(self.unpack, (job.wheel, members)) for members in chunks]

    def begin_copy(self, job):
        files = job.sealed[0].files
        self.component.check_room(sum(row[1] for row in files.values()) * 5 // 4, 2 * len(files))
        self.compiler.expect(files)
        paths = sorted(files)
        chunks = wheel_files.chunks(paths, [files[path][1] for path in paths], PART)
        job.parts = [self.pool.apply_async(self.copy, (job.sealed, part)) for part in chunks]

    def collect(self, job):
        try:
            for part in job.parts:
                job.written.update(part.get(self.component.source.timeout))
        except wheel_files.WheelProblem as problem:
            raise refused(problem)
        except (zipfile.BadZipfile, multiprocessing.TimeoutError) as problem:
            raise Refused("A wheel could not be unpacked: %r. Run the playbook again." % problem)

    def write(self, job, paths):
        """These files of a wheel, which is fetched only if no sealed tree has them."""
        if job.wheel is None:
            job.written.update(self.copy(job.sealed, paths))
            paths = [path for path in paths if path not in job.written]
        if paths and job.wheel is None:
            self.open(job, self.component.fetched(job.entry))
        if paths:
            missing_paths = set(paths)
            members = [info for info in job.wheel.members if job.wheel.destinations.get(info.filename) in missing_paths]
            job.written.update(self.unpack(job.wheel, members))

    def unpack(self, wheel, members):
        """Unpack members, whose sources can then be compiled. Each thread opens a wheel once."""
        archives = self.archives.__dict__
        if wheel.path not in archives:
            archives[wheel.path] = zipfile.ZipFile(wheel.path)
            self.opened.append(archives[wheel.path])
        rows = wheel.unpack(archives[wheel.path], members, self.tree)
        self.compiler.add(rows)
        return rows

    def copy(self, sealed, paths):
        """Copy files with their bytecode; those that no sealed tree has as they must be are missing in the answer."""
        rows, sources = {}, []
        for path in paths:
            wheel = next((wheel for wheel in sealed if wheel.copy(path, self.tree)), None)
            if wheel is not None:
                rows[path] = wheel.files[path][:2]
                if self.compiler.is_compiled_last(path) or not wheel.copy_bytecode(path, self.tree):
                    sources.append(path)
        self.compiler.add(sources)
        return rows

    def finish(self, jobs):
        rows = {}
        for job in jobs:
            conflicts = [path for path, row in job.written.items() if rows.get(path.encode("utf-8"), row) != row]
            for path in conflicts:
                del job.written[path]
            self.write(job, conflicts)
            listed = job.listed()
            if listed is not None:
                self.listed[job.entry["sha256"]] = listed
            job_rows = dict(job.written)
            try:
                job_rows.update(self.installation(job).finish(self.tree, job_rows))
            except wheel_files.WheelProblem as problem:
                raise refused(problem)
            rows.update((path.encode("utf-8"), row) for path, row in job_rows.items())
        return rows

    def installation(self, job):
        if job.wheel is not None:
            return job.wheel
        information = job.sealed[0].information
        points = "/".join((self.site, information, "entry_points.txt"))
        text = b""
        if points in job.written:
            with open(os.path.join(self.tree.encode("utf-8"), points.encode("utf-8")), "rb") as handle:
                text = handle.read()
        return wheel_files.Installation(
            job.entry["file"], self.site, self.python, information, text.decode("utf-8", "replace")
        )


def refused(problem):
    return Refused("%s Lock another version of it: scripts/stack lock." % problem)
