"""The environments of a host in the order of their activations, and the one that a rollback activates. Python 2.7 and 3."""

import os

from . import environment_names as names
from . import environment_packages as packages
from . import environment_tree
from .environment_packages import Refused

ACTIVATED = "activated.json"  # in an environment's state: the number of its last activation on this host


def current_of(root):
    """What the link `current` says; None if there is none."""
    link = os.path.join(root, "current")
    if os.path.islink(link):
        return os.readlink(link)
    if os.path.lexists(link):
        raise Refused(
            "%s must be a link to the active environment but is something else. Move it away, then run the playbook again."
            % link
        )
    return None


def activations(root):
    """Name of each environment below envs -> number of its last activation (0 for none): a sequence, not a clock."""
    directory = os.path.join(root, "envs")
    numbers = {}
    for entry in os.listdir(directory) if os.path.isdir(directory) else []:
        path = os.path.join(directory, entry)
        if not entry.startswith(".") and names.is_state(path):
            number = (environment_tree.read_json(packages.state_file(path, ACTIVATED)) or {}).get("number", 0)
            name = names.name_of(entry)
            numbers[name] = max(numbers.get(name, 0), number)
    return numbers


def earlier(root, to=""):
    """The environment to go back to: the one that was active before the current one, or the one named `to`.

    `to` is the name of an environment or of a stack. Returns (name, None), or (None, why there is none).
    """
    current = os.path.basename(current_of(root) or "")
    numbers = activations(root)
    order = sorted(numbers, key=lambda name: (numbers[name], name), reverse=True)
    if to:
        candidates = [name for name in order if to in (name, names.stack_of(name))]
    else:
        candidates = [name for name in order if name != current and numbers[name]]
    if not candidates:
        all_names = ", ".join(sorted(numbers)) or "none"
        return None, "%s is not installed" % to if to else "no other environment was active (installed: %s)" % all_names
    problem = names.problem(os.path.join(root, "envs", candidates[0]))
    return (None, "%s: %s" % (candidates[0], problem)) if problem else (candidates[0], None)
