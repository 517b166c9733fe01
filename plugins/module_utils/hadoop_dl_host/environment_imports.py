"""Run an environment's Python as a user without rights: its wheels are the lock's, but who built them is a stranger. Python 2.7 and 3.

with environment_imports.runner(tree) as run:
    answer = run([python, "-c", "import tensorflow"], 600, variables)  # as processes.run, in a cell (sandbox_cell)
"""

import contextlib
import os
import resource

from . import atomic_files, environment_tree, processes, sandbox_cell

CELL = "cell-"  # in a tree's state, with the number of the process that made it
# CUDA's libraries map more than a build may have, and numpy starts a thread for every processor. A host without memory ends this first.
LIMITS = {resource.RLIMIT_AS: 1 << 40, resource.RLIMIT_NPROC: 4096}


def clear(tree):
    """Remove the cells of runs that were killed, with their processes."""
    state = os.path.join(tree, environment_tree.STATE)
    for name in sorted(os.listdir(state)) if os.path.isdir(state) else ():
        if name.startswith(CELL) and not atomic_files.is_being_written(name):
            sandbox_cell.clear(os.path.join(state, name))


@contextlib.contextmanager
def runner(tree):
    """A function as processes.run, whose programs share one cell. Who is not root has no rights to give up."""
    if os.geteuid() != 0:
        yield processes.run
        return
    clear(tree)
    blocked = sandbox_cell.closed([os.path.join(tree, "bin", "python"), tree])
    if blocked:
        raise sandbox_cell.NotConfined(
            "All users must be able to read %s, because one without rights imports the environment (chmod o+rx)."
            % blocked
        )
    path = os.path.join(tree, environment_tree.STATE, "%s%d" % (CELL, os.getpid()))
    with sandbox_cell.Cell(path, LIMITS) as cell:
        yield cell.run
