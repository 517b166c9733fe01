"""The changes that another stack makes on the hosts, as a table for the person who confirms it. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.data import stacks
from hadoop_dl.data.locks import Lock, StackError, canonicalize_name
from hadoop_dl.plan.model import Json, shorten

TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu")
TOOLS = ("virtualenv",)  # creates the environment and is no part of it
# Parts that are no package of the environment, by their keys in a stack.
OF_THE_STACK = {
    "Spark": "pyspark",
    "Java": "java",
    "CUDA": "cuda",
    "cuDNN": "cudnn",
    "NCCL": "nccl",
    "oldest driver": "driver_min",
}
LISTED = 30  # packages that a table lists by name; more are counted


@dataclass(frozen=True)
class Contents:
    """An environment: its name, and its Python, packages by their canonical names and stack as far as they are known."""

    environment: str
    python: str
    packages: Mapping[str, str]
    stack: Json | None

    def part(self, label: str) -> str:
        """The version of a part, in the words of the table."""
        if not self.environment:
            return "none"
        if label in OF_THE_STACK:
            value = "unknown" if self.stack is None else self.stack.get(OF_THE_STACK[label], "none")
            return " or ".join(value) if isinstance(value, list) else str(value)
        if not self.packages:
            return "unknown"
        if label == "Python":
            return self.python
        if label == "TensorFlow":
            return next((self.packages[name] for name in TENSORFLOW if name in self.packages), "none")
        return self.packages.get(label.lower(), "none")


PARTS = ("Python", "TensorFlow", "Keras", "TensorFlowOnSpark", *OF_THE_STACK)


def active(name: str) -> Contents:
    """The environment that was active when the plan read the host: a stack that this tree has, with the lock of its name, or unknown."""
    stack_name, _, digest = name.rpartition("-")
    if stack_name not in stacks.stack_names():
        return Contents(name, "", {}, None)
    stack = stacks.load_stack(stack_name)
    for python in stack.pythons:
        with suppress(StackError):
            lock = stack.lock(python)
            if lock.digest == digest:
                return requested(name, stack.data, python, lock)
    return Contents(name, "", {}, stack.data)


def requested(environment: str, stack: Json, python: str, lock: Lock) -> Contents:
    """The environment that the host gets."""
    packages = {
        canonicalize_name(entry.project): entry.version
        for entry in lock.entries
        if canonicalize_name(entry.project) not in TOOLS
    }
    return Contents(environment, python, packages, stack)


def table(hosts: Sequence[str], current: Contents, planned: Contents) -> str:
    """The table of these hosts: parts, then packages; unchanged ones are left out, except in the parts' first lines."""
    title = f"{shorten(hosts)}: {current.environment or 'nothing'} -> {planned.environment}"
    rows = [(label, current.part(label), planned.part(label)) for label in PARTS]
    rows = [row for row in rows if row[0] in ("Python", "TensorFlow") or row[1] != row[2]]
    is_known = bool(current.packages) or not current.environment
    changed_packages = package_rows(current.packages, planned.packages) if is_known else []
    rows += changed_packages[:LISTED]
    more = [f"  … and {len(changed_packages) - LISTED} more packages"] if len(changed_packages) > LISTED else []
    text = [f"  {line}" for line in columns([("what", "now", "then"), *rows])]
    return "\n".join([title, *text, *more])


def package_rows(current: Mapping[str, str], planned: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Packages that differ and have no row as a part."""
    parts = {*TENSORFLOW, "keras", "tensorflowonspark"}
    return [
        (name, current.get(name, "none"), planned.get(name, "none"))
        for name in sorted({*current, *planned} - parts)
        if current.get(name) != planned.get(name)
    ]


def report(changes: Iterable[tuple[str, Contents, Contents]]) -> str:
    """One table for hosts that change alike; empty if no host changes its environment."""
    alike: dict[tuple[str, str], tuple[list[str], Contents, Contents]] = {}
    for host, now, then in changes:
        if then.environment and now.environment != then.environment:
            alike.setdefault((now.environment, then.environment), ([], now, then))[0].append(host)
    return "\n".join(table(hosts, now, then) for hosts, now, then in alike.values())
