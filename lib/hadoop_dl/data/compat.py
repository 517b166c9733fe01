"""The facts under compat/, read once: rows with their sources, as the files have them. Data in, rows out; nothing is decided here."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Row = Mapping[str, Any]
REPOSITORY = Path(__file__).resolve().parents[3]
DIRECTORY = REPOSITORY / "compat"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class CompatError(ValueError):
    """Data that cannot be used; the message says which file and why."""


@dataclass(frozen=True, eq=False)
class Compat:
    """`subjects` maps a file's subject to its content."""

    subjects: Mapping[str, Mapping[str, Any]]

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
def load() -> Compat:
    """Everything under compat/."""
    contents = [parse(path) for path in sorted(DIRECTORY.glob("*.yml"))]
    if not contents:
        raise CompatError(
            f"The resolver requires the data files in {DIRECTORY}, but they are missing. Check the clone."
        )
    return Compat({content["subject"]: content for content in contents})


def parse(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_bytes(), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    except yaml.YAMLError as error:
        raise CompatError(f"compat/{path.name} must be YAML, but is not: {error}. Repair it.") from error
    if not isinstance(content, dict) or "subject" not in content:
        raise CompatError(f"compat/{path.name} must be a mapping with a subject, but has none. Repair it.")
    return content
