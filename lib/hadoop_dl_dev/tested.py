"""What tests/stacks found out about every lock (stacks/locks/tested.yml), and the tables of docs/reference/stacks.md.

A record counts for one digest: that of all artifacts of the lock. A lock that changed since is untested.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import yaml

from hadoop_dl.data.stacks import DIRECTORY, Stack, load_stack, load_stacks, stack_names
from hadoop_dl_dev import check_steps, measurements
from hadoop_dl_dev.compat_cells import wrapped
from hadoop_dl_dev.demo.images import CACHE
from hadoop_dl_dev.demo.shell import only_one

REPOSITORY = DIRECTORY.parent
RECORDS = DIRECTORY / "locks" / "tested.yml"
# Questions about a lock, in the order of the page's columns. A test asks only what the stack promises.
QUESTIONS = {
    "installed": "installed",
    "imports": "imports, versions",
    "computes": "computes",
    "cuda": "CUDA found",
    "hdfs": "HDFS",
    "kafka": "Kafka",
    "trained": "TFoS trained",
}
YES = "yes"
HEAD = "# Written by tests/stacks: what each lock answered. A record counts while its digest is that of the lock's artifacts.\n"


@dataclass(frozen=True)
class Record:
    """The answers of one lock: to each question `yes`, or a sentence with the reason."""

    stack: str
    python: str
    digest: str
    image: str = ""
    date: str = ""
    answers: dict[str, str] = field(default_factory=dict)
    skipped: str = ""

    @property
    def lock(self) -> tuple[str, str]:
        return self.stack, self.python


def digest(stack: Stack, python: str) -> str:
    """Changes with any artifact that the tests install: the lock's, and Spark."""
    rows = [artifact for artifact in stack.artifacts(python) if artifact["name"].endswith((".whl", ".tar.gz", ".zip"))]
    lines = sorted(f"{artifact['sha256']}  {artifact['name']}" for artifact in rows)
    return hashlib.sha256("\n".join([python, *lines]).encode()).hexdigest()[:16]


def questions(stack: Stack, python: str) -> list[str]:
    """The questions that the stack promises to answer."""
    data = stack.data
    projects = {entry.project for entry in stack.lock(python).entries}
    promises = {
        "installed": True,
        "imports": stack.imports_without_cuda,
        "computes": stack.imports_without_cuda,
        "cuda": any(project.startswith("nvidia-") for project in projects),
        "hdfs": data.get("hdfs", False) and stack.imports_without_cuda,
        "kafka": data.get("kafka", False) and stack.imports_without_cuda,
        "trained": "tensorflowonspark" in data and stack.imports_without_cuda,
    }
    return [name for name in QUESTIONS if promises[name]]


def all_locks() -> list[tuple[str, str]]:
    """The locks that tests install; a stack whose TensorFlow the site builds has no wheel here."""
    return [(stack.name, python) for stack in load_stacks() for python in stack.pythons if not stack.is_built]


def read(path: Path = RECORDS) -> dict[tuple[str, str], Record]:
    """The records by lock; none if the file is missing."""
    if not path.is_file():
        return {}
    loaded = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return {record.lock: record for record in (Record(**item) for item in loaded)}


def write(record: Record, path: Path = RECORDS) -> None:
    """Put a record into the file. The date of a record that says nothing new stays; a skip replaces no answers."""
    with only_one(CACHE / "tested.lock"):
        records = read(path)
        old = records.get(record.lock)
        if old and old.digest == record.digest:
            if record.skipped and old.answers:
                return
            merged = {**old.answers, **record.answers}
            unchanged = (old.image, old.answers, old.skipped) == (record.image, merged, record.skipped)
            record = Record(**{**asdict(record), "answers": merged, "date": old.date if unchanged else record.date})
        records[record.lock] = record
        locks = all_locks()
        rows = [asdict(records[lock]) for lock in sorted(records) if lock in locks]
        tidy = [{key: value for key, value in item.items() if value} for item in rows]
        draft = path.with_suffix(".draft")
        draft.write_text("---\n" + HEAD + yaml.safe_dump(tidy, sort_keys=False, width=150), encoding="utf-8")
        draft.rename(path)


def status(stack: Stack, python: str, records: Mapping[tuple[str, str], Record]) -> dict[str, str]:
    """question -> yes, why not, or `not tested`; questions that the stack does not raise are left out."""
    record = records.get((stack.name, python))
    if not record or record.digest != digest(stack, python):
        return dict.fromkeys(questions(stack, python), "not tested")
    missing = f"skipped: {record.skipped}" if record.skipped else "not tested"
    return {name: record.answers.get(name, missing) for name in questions(stack, python)}


def on_yarn() -> dict[str, str]:
    """Stack -> the command whose demo clusters run its jobs: the stacks that the tests of such clusters name."""
    commands = dict.fromkeys(check_steps.STACKS, "`make test`")
    for path in sorted((REPOSITORY / "tests" / "long").glob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "Cluster(" in text and "hadoop_dl_dev.demo" in text:
            for name in set(re.findall(r"tf\d[\w.-]+", text)) & set(stack_names()):
                commands.setdefault(name, "`make test-long`")
    return commands


def size(stack: Stack, python: str) -> str:
    return f"{sum(artifact['size'] for artifact in stack.artifacts(python)) / 1e6:,.0f} MB"


def tables(path: Path = RECORDS) -> str:
    records = read(path)
    names = ["stack", "Python", "download", *QUESTIONS.values(), "on YARN", "image", "date"]
    rows, notes, clusters = [], [], on_yarn()
    for name, python in all_locks():
        stack = load_stack(name)
        answers = status(stack, python, records)
        cells = []
        for question in QUESTIONS:
            answer = answers.get(question, "–")
            if answer not in (YES, "–", "not tested"):
                if answer not in notes:
                    notes.append(answer)
                answer = f"no [{notes.index(answer) + 1}]"
            cells.append(answer)
        record = records.get((name, python))
        current = record if record and record.digest == digest(stack, python) else None
        place = [current.image, current.date] if current else ["–", "–"]
        yarn = clusters.get(name, "–") if python == stack.pythons[0] else "–"
        rows.append([f"[{name}](../../stacks/{name}.yml)", python, size(stack, python), *cells, yarn, *place])
    numbered = [f"{number}. {note}" for number, note in enumerate(notes, 1)]
    built = [
        wrapped(f"- [{stack.name}](../../stacks/{stack.name}.yml): {stack.data['description']}", "  ")
        for stack in load_stacks()
        if stack.is_built
    ]
    reasons = [NOTES, "", *numbered, ""] if notes else []
    return "\n".join([measurements.table(names, rows), "", *reasons, BUILT, *built, ""])


NOTES = "## Reasons"
BUILT = """\
## Stacks with a TensorFlow of the site

No test installs these, because tests cannot fetch TensorFlow's own sources ([what is
tested](../operate/build.md#tests)).
"""
