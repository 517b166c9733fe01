"""The facts under compat/, read once: rows with their sources, as the files have them. Data in, rows out; nothing is decided here."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Row = Mapping[str, Any]
REPOSITORY = Path(__file__).resolve().parents[3]
DIRECTORY = REPOSITORY / "compat"
CACHE = REPOSITORY / ".cache" / "compat"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class CompatError(ValueError):
    """Data that cannot be used; the message says which file and why."""


@dataclass(frozen=True)
class Compat:
    """`subjects` maps a file's subject to its content; `digest` identifies this data in every cache."""

    subjects: Mapping[str, Mapping[str, Any]] = field(compare=False)
    digest: str

    def rows(self, subject: str, name: str) -> list[Row]:
        """The records of one list, in the order of the file."""
        records: list[Row] = self.subjects[subject][name]
        return records

    def fact(self, subject: str, start: str) -> Row:
        """The fact of a subject that begins with this text."""
        for row in self.rows(subject, "facts"):
            if str(row["fact"]).startswith(start):
                return row
        raise CompatError(
            f"compat/{subject}.yml must have a fact that begins with {start!r}, but has none. Restore it."
        )


@cache
def load(directory: Path = DIRECTORY) -> Compat:
    """Everything under compat/. Parsing takes a quarter of a second, so the result is kept in .cache by digest."""
    paths = sorted(directory.glob("*.yml"))
    if not paths:
        raise CompatError(
            f"The resolver requires the data files in {directory}, but they are missing. Check the clone."
        )
    texts = {path.name: path.read_bytes() for path in paths}
    digest = hashlib.sha256(b"\0".join(name.encode() + b"\0" + text for name, text in texts.items())).hexdigest()
    cache_file = CACHE / f"{digest[:32]}.json"
    try:
        return Compat(json.loads(cache_file.read_text(encoding="utf-8")), digest)
    except (OSError, ValueError):
        subjects = {}
        for name, text in texts.items():
            content = parse(name, text)
            subjects[content["subject"]] = content
        keep(cache_file, subjects)
        return Compat(subjects, digest)


def parse(name: str, text: bytes) -> dict[str, Any]:
    try:
        content = yaml.load(text, Loader=LOADER)  # noqa: S506 (both are safe loaders)
    except yaml.YAMLError as error:
        raise CompatError(f"compat/{name} must be YAML, but is not: {error}. Repair it.") from error
    if not isinstance(content, dict) or "subject" not in content:
        raise CompatError(f"compat/{name} must be a mapping with a subject, but has none. Repair it.")
    return content


def keep(path: Path, subjects: Mapping[str, Any]) -> None:
    """Write the parsed data beside the clone; if that is not allowed, the next command parses again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(subjects, stream)
        os.replace(name, path)
    except OSError:
        return
