"""What a rule answers: why something does not go together, or what to know about it, with where that is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hadoop_dl.compat import Row


@dataclass(frozen=True)
class Finding:
    """`refuses` is False for a warning: facts of rows that are not verified never refuse, and never agree in silence."""

    text: str
    sources: tuple[str, ...]
    refuses: bool = True


def sources(*rows: Row | None) -> tuple[str, ...]:
    """The first sources of these rows, without repetition: enough to check a sentence."""
    found: dict[str, None] = {}
    for row in rows:
        for source in list(row["source"])[:2] if row else []:
            found[source] = None
    return tuple(found)


def merged(groups: Iterable[Iterable[str]], limit: int = 6) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source for group in groups for source in group))[:limit]
