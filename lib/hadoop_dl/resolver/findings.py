"""The result of a rule: why versions do not work together, or a warning about them, with its sources."""

from collections.abc import Iterable
from dataclasses import dataclass

from hadoop_dl.data.compat import Row


@dataclass(frozen=True)
class Finding:
    """A reason against something (`refuses`), a doubt, or a warning.

    A doubt is a contradiction by a row that is not verified: it never refuses, but the answer is not `ok` either.
    """

    text: str
    sources: tuple[str, ...]
    refuses: bool = True
    doubt: bool = False

    def as_json(self) -> dict[str, object]:
        return {"text": self.text, "sources": list(self.sources)}


def against(text: str, urls: tuple[str, ...], verified: bool) -> Finding:
    """A contradiction: it refuses if the row that it comes from is verified, and is a doubt otherwise."""
    return Finding(text, urls, refuses=verified, doubt=not verified)


def warning(text: str, urls: tuple[str, ...] = ()) -> Finding:
    return Finding(text, urls, refuses=False)


def sources(*rows: Row | None) -> tuple[str, ...]:
    """The first sources of these rows, without repetition: enough to check a sentence."""
    unique_sources: dict[str, None] = {}
    for row in rows:
        for source in list(row["source"])[:2] if row else []:
            unique_sources[source] = None
    return tuple(unique_sources)


def merged(groups: Iterable[Iterable[str]], limit: int = 6) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source for group in groups for source in group))[:limit]
