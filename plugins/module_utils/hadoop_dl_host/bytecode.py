# -*- coding: utf-8 -*-
"""Compile the sources of a tree while others are still being unpacked, in a process for each processor. Python 2.7 and 3."""

from __future__ import absolute_import, division, print_function

import os
import threading

FEWEST = 200  # sources for one process, while more are to come: to start it takes as long as to compile ten


class NotCompiled(Exception):
    """A compiler ended before its work was done; the text says how."""


class Compiler(object):
    """with Compiler(...) as compiler: compiler.add(paths) as they are written. At the end of the block all are compiled.

    From Python 3.7 on the bytecode is not compared with its source at every import, so it is loaded as it was made
    here; the list of all files at the seal has its sha256.
    """

    def __init__(self, python, tree, scratch, processes, run):
        """scratch: a directory for lists of sources. The interpreter runs as root, so it starts without site, which runs what wheels have for
        every start (*.pth). run(argv) answers status and output, and has a limit of its own."""
        self.python, self.tree, self.scratch, self.processes, self.run = python, tree, scratch, processes, run
        self.expected, self.twice = set(), set()
        self.waiting, self.lists = [], 0
        self.closed, self.problem, self.mode = False, None, None
        self.change = threading.Condition()
        self.threads = []

    def __enter__(self):
        for _ in range(self.processes):
            self.threads.append(threading.Thread(target=self._work))
            self.threads[-1].daemon = True
            self.threads[-1].start()
        return self

    def __exit__(self, kind, *_):
        with self.change:
            if kind is not None:
                self.waiting = []  # what is being compiled ends first: it must not outlive the module
            self.closed = True
            self.change.notify_all()
        for thread in self.threads:
            thread.join()
        if kind is None:
            if self.problem is None and self.twice:
                self._compile(sorted(self.twice))
            if self.problem is not None:
                raise self.problem

    def expect(self, paths):
        """Paths (text) of a wheel. One of two wheels can be written while it is read, so it is compiled after all others."""
        paths = set(paths)
        with self.change:
            self.twice.update(path for path in paths & self.expected if is_source(path))
            self.expected |= paths

    def add(self, paths):
        """Paths (text) of files that are complete."""
        with self.change:
            self.waiting += [path for path in paths if is_source(path) and path not in self.twice]
            self.change.notify()

    def _work(self):
        try:
            for sources in iter(self._take, []):
                self._compile(sources)
        except BaseException as problem:  # raised at the end of the block
            self.problem = problem

    def _take(self):
        """The next sources for one process; towards the end fewer, so that all processes end together. [] at the end."""
        with self.change:
            while len(self.waiting) < FEWEST and not self.closed:
                self.change.wait(60)
            count = max(FEWEST // 4 if self.closed else FEWEST, len(self.waiting) // (2 * self.processes))
            batch, self.waiting = self.waiting[:count], self.waiting[count:]
            return [] if self.problem is not None else batch

    def _compile(self, sources):
        with self.change:
            self.lists += 1
            path = os.path.join(self.scratch, "sources-%d" % self.lists)
            if self.mode is None:
                status, version = self.run([self.python, "-S", "-c", "import sys; print(sys.version_info >= (3, 7))"])
                new = status == 0 and version.strip() == "True"
                self.mode = ["--invalidation-mode", "unchecked-hash"] if new else []
        with open(path, "wb") as handle:
            handle.write(b"".join(os.path.join(self.tree, source).encode("utf-8") + b"\n" for source in sources))
        # -f: if the same second and size hide a change of the source, older Pythons would keep its bytecode.
        command = [self.python, "-S", "-W", "ignore", "-m", "compileall", "-q", "-f"] + self.mode + ["-i", path]
        status, output = self.run(command)
        os.unlink(path)
        if status not in (0, 1):  # 1: a file is of another Python's grammar, as some packages have on purpose
            raise NotCompiled("status %s: %s" % (status, output))


def is_source(path):
    return path.startswith("lib") and path.endswith(".py")
