# -*- coding: utf-8 -*-
"""Put the wheels of one component into its tree. Python 2.7 and 3.

Files are written by several threads, and compiled while others are still to come. Large wheels and files begin first.
"""

from __future__ import absolute_import, division, print_function

import multiprocessing
import threading
import zipfile
from multiprocessing.pool import ThreadPool  # novermin (2.7 has it)

from . import wheel_files
from .environment_packages import Refused

PART = 300  # files of a wheel that one thread writes at a time
WORKERS = max(2, min(4, multiprocessing.cpu_count()))


class Unpacking(object):
    """with Unpacking(...) as unpacking: rows = unpacking.wheels(...)"""

    def __init__(self, component, site, python, compiler):
        """site: relative to the tree. python: of scripts."""
        self.component, self.tree, self.site, self.python, self.compiler = (
            component,
            component.tree,
            site,
            python,
            compiler,
        )
        self.archives = threading.local()
        self.opened = []
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
        jobs = {}
        try:
            for index in sorted(range(len(entries)), key=lambda index: -entries[index]["size"]):
                jobs[index] = self.begin(self.component.fetched(entries[index]))
            for index in sorted(jobs):
                jobs[index] = (jobs[index][0], self.collect(jobs[index][1]))
            return self.finish([jobs[index] for index in sorted(jobs)])
        except wheel_files.WheelProblem as problem:
            raise Refused("%s Lock another version of it: scripts/stack lock." % problem)

    def begin(self, path):
        """A wheel, and what its threads will answer."""
        wheel = wheel_files.Wheel(path, self.site, self.python)
        self.component.check_room(wheel.size() * 5 // 4, 2 * len(wheel.members))
        self.compiler.expect(wheel.destinations.values())
        return wheel, [self.pool.apply_async(self.unpack, (wheel, members)) for members in wheel.chunks(PART)]

    def collect(self, parts):
        rows = {}
        try:
            for part in parts:
                rows.update(part.get(self.component.source.timeout))
        except (zipfile.BadZipfile, multiprocessing.TimeoutError) as problem:
            raise Refused("A wheel could not be unpacked: %r. Run the playbook again." % problem)
        return rows

    def unpack(self, wheel, members):
        """Unpack members, whose sources can then be compiled. Each thread opens a wheel once."""
        archives = self.archives.__dict__
        if wheel.path not in archives:
            archives[wheel.path] = zipfile.ZipFile(wheel.path)
            self.opened.append(archives[wheel.path])
        rows = wheel.unpack(archives[wheel.path], members, self.tree)
        self.compiler.add(rows)
        return rows

    def finish(self, jobs):
        rows = {}
        for wheel, written in jobs:
            conflicts = set(path for path, row in written.items() if rows.get(path.encode("utf-8"), row) != row)
            if conflicts:
                members = [info for info in wheel.members if wheel.destinations.get(info.filename) in conflicts]
                written.update(self.unpack(wheel, members))
            written.update(wheel.finish(self.tree, dict(written)))
            rows.update((path.encode("utf-8"), row) for path, row in written.items())
        return rows
