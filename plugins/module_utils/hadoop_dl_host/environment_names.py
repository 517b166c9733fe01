"""The names of an environment: X is a link to one of its trees X.1, X.2, ... Python 2.7 and 3.

X is `<stack>-<digest>`, the same on every host, so jobs, scripts and `current` use it. A tree is never changed once it
is sealed: a repair builds the next one beside it and points X to that. X.client has the settings of Spark and Hadoop.
"""

import os
import re
import shutil

from . import atomic_files, environment_tree

REMOVED = ".removing-"
CLIENT = ".client"
TREE = re.compile(r"^(?P<name>.+-[0-9a-f]{12})\.(?P<number>\d+)$")


def name_of(directory):
    """X of any of an environment's entries below envs: X, X.3, X.client."""
    match = TREE.match(directory)
    if match:
        return match.group("name")
    return directory[: -len(CLIENT)] if directory.endswith(CLIENT) else directory


def stack_of(name):
    """The stack of an environment, whose name ends with a digest."""
    return re.sub(r"-[0-9a-f]{12}$", "", name)


def trees(environment):
    """Paths of the environment's trees, the oldest first."""
    parent, name = os.path.split(environment)
    numbered_paths = []
    for entry in os.listdir(parent) if os.path.isdir(parent) else []:
        match = TREE.match(entry)
        if match and match.group("name") == name:
            numbered_paths.append((int(match.group("number")), os.path.join(parent, entry)))
    return [path for _, path in sorted(numbered_paths)]


def next_tree(environment):
    """Path of a tree that is not there yet."""
    numbers = [int(TREE.match(path).group("number")) for path in trees(environment)]
    return "%s.%d" % (environment, max(numbers or [0]) + 1)


def live_tree(environment):
    """The tree that X points to; None if there is none."""
    return os.path.realpath(environment) if os.path.isdir(environment) else None


def is_state(path):
    return os.path.isdir(os.path.join(path, environment_tree.STATE))


def look(environment):
    """The intact tree, and the problem of the one that X points to; None for each. Every file of a sealed tree is looked at.

    Intact is a sealed tree whose files are as they were sealed: the one that X points to, else the newest.
    """
    live = live_tree(environment)
    live_problem = environment_tree.problem(live) if live else "not installed"
    if live and live_problem is None:
        return live, None
    for path in reversed(trees(environment)):
        if path != live and environment_tree.seal_of(path) is not None and environment_tree.problem(path) is None:
            return path, live_problem
    return None, live_problem


def unsealed_tree(environment):
    """The newest tree, when an earlier run has not finished it; else None."""
    paths = trees(environment)
    return paths[-1] if paths and environment_tree.seal_of(paths[-1]) is None and is_state(paths[-1]) else None


def problem(environment):
    """None for an environment that is ready; else a few words."""
    live = live_tree(environment)
    return environment_tree.problem(live) if live else "not installed"


def point(environment, tree):
    """Let X point to the tree, by one rename."""
    atomic_files.replace_link(environment, os.path.basename(tree), ".link-")


def remove(path):
    """Remove a tree; its name goes first, so that half of one is never used."""
    parent, name = os.path.split(path)
    aside = os.path.join(parent, REMOVED + name)
    if os.path.isdir(aside):
        shutil.rmtree(aside)
    os.rename(path, aside)
    shutil.rmtree(aside)


def remove_leftovers(directory):
    """What a killed run was about to remove."""
    for name in os.listdir(directory):
        if name.startswith(REMOVED):
            shutil.rmtree(os.path.join(directory, name))
