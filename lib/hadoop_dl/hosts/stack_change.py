"""The changes that another stack makes on the hosts, as a table for the person who confirms it. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ansible.module_utils.hadoop_dl_host.text_columns import columns

from hadoop_dl.data import stacks, typed
from hadoop_dl.data.locks import Lock, canonicalize_name
from hadoop_dl.data.terminal import one_line
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
    """An environment: its name, Python and packages by their canonical names, and its stack as far as it is known."""

    environment: str
    python: str
    packages: Mapping[str, str]
    stack: Json | None

    def part(self, label: str) -> str:
        """The version of a part, in the words of the table."""
        if label == "Python":
            return self.python or "none"
        if label == "TensorFlow":
            return next((f"{self.packages[name]}" for name in TENSORFLOW if name in self.packages), "none")
        if label in ("Keras", "TensorFlowOnSpark"):
            return self.packages.get(label.lower(), "none")
        if not self.environment:
            return "none"
        if self.stack is None:
            return "unknown"
        value = self.stack.get(OF_THE_STACK[label], "none")
        return " or ".join(value) if isinstance(value, list) else str(value)


PARTS = ("Python", "TensorFlow", "Keras", "TensorFlowOnSpark", *OF_THE_STACK)


def active(answer: Mapping[str, object]) -> Contents:
    """The host's environment, from the answer of the module environment_contents_info. Each text is one line of limited length."""
    name = str(answer.get("stack") or "")
    stack = stacks.load_stack(name).data if name in stacks.stack_names() else None
    packages = answer.get("packages")
    pairs = list(packages.items())[: typed.MOST] if isinstance(packages, Mapping) else []
    return Contents(
        environment=one_line(answer.get("environment") or ""),
        python=one_line(answer.get("python") or ""),
        packages={one_line(project): one_line(version) for project, version in pairs},
        stack=stack,
    )


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
    changed_packages = package_rows(current.packages, planned.packages)
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
