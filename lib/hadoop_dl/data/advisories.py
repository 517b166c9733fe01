"""Versions of packages in locks that have known advisories or get no fixes any more; docs/develop/dependencies.md says which and why."""

from functools import cache

from hadoop_dl.data.locks import StackError
from hadoop_dl.data.stacks import load_stack

TENSORFLOW = ("1.4.1", "1.15.0", "1.15.5", "2.4.4", "2.11.1")
ADVISED = {
    **dict.fromkeys(("tensorflow", "tensorflow-cpu", "tensorflow-gpu"), TENSORFLOW),
    "keras": ("2.1.2", "2.3.1", "2.11.0"),
    "pip": ("20.3.4", "21.3.1"),
    "setuptools": ("44.1.1", "59.6.0"),
    "wheel": ("0.37.1",),
    "werkzeug": ("1.0.1", "2.0.3"),
    "protobuf": ("3.17.3",),
    "numpy": ("1.16.6", "1.18.5"),
    "urllib3": ("2.2.3",),
}


@cache
def notes(environment: str) -> list[str]:
    """Known advisories about the stack of an environment, by its name (STACK-DIGEST); empty if its lock is not known here."""
    name, _, digest = environment.rpartition("-")
    try:
        stack = load_stack(name)
        locks = [stack.lock(python) for python in stack.pythons]
    except StackError:
        return []
    entries = next((lock.entries for lock in locks if lock.digest == digest), ())
    packages = [
        f"{entry.project} {entry.version}" for entry in entries if entry.version in ADVISED.get(entry.project, ())
    ]
    return [f"{name} has known advisories: {', '.join(packages)} (docs/develop/dependencies.md)"] if packages else []
