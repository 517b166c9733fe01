"""Cells and tables of docs/reference/compatibility.md, as Markdown."""

import itertools
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from hadoop_dl.data.compat import Row

SHORT = {
    "docs.nvidia.com": "NVIDIA",
    "developer.nvidia.com": "NVIDIA",
    "developer.download.nvidia.com": "NVIDIA packages",
    "forums.developer.nvidia.com": "NVIDIA forum",
    "www.tensorflow.org": "TensorFlow",
    "pypi.org": "PyPI",
    "spark.apache.org": "Spark",
    "hadoop.apache.org": "Hadoop",
    "cwiki.apache.org": "Hadoop wiki",
    "docs.cloudera.com": "Cloudera",
    "docs.ezmeral.hpe.com": "HPE",
}


@dataclass(frozen=True)
class Table:
    """One table of the page. Cells are texts already. Neighbours that differ in the first cell alone share a row."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: list[list[str]]

    def render(self) -> str:
        lines = [f"## {self.title}", "", *([wrapped(self.text), ""] if self.text else [])]
        lines += [line(self.columns), line(["---"] * len(self.columns))]
        for cells, rows in itertools.groupby(self.rows, key=lambda row: row[1:]):
            lines.append(line([", ".join(dict.fromkeys(row[0] for row in rows)), *cells]))
        return "\n".join(lines)


def of_rows(
    title: str, text: str, columns: tuple[str, ...], rows: Iterable[Row], cells: Callable[[Row], list[str]]
) -> Table:
    """A table of rows of compat/. Its first cell is marked if the row is unsure; the last column has the sources."""
    lines = [(row, cells(row)) for row in rows]
    table_rows = [[sure(row, first), *values, links(row["source"])] for row, (first, *values) in lines]
    return Table(title, text, (*columns, "sources"), table_rows)


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|").replace("<", "&lt;") for text in cells) + " |"


def cell(value: Any) -> str:
    """A value as people read it."""
    if value is None or value == [] or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return " ".join(f"{key} {cell(part)}" for key, part in value.items() if part is not None) or "–"
    return ", ".join(map(cell, value)) if isinstance(value, (list, tuple)) else str(value)


def span(first: str | None, last: str | None) -> str:
    if first == last:
        return cell(first)
    return f"{first} to {last}" if first and last else f"{first} and newer" if first else f"up to {last}"


def links(urls: Iterable[str]) -> str:
    """Short links; what was observed has no page to link."""
    return " ".join(f"[{site(url)}]({url})" if "://" in url else url for url in dict.fromkeys(urls))


def site(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc == "github.com":
        return "/".join(parts.path.strip("/").split("/")[:2])
    return SHORT.get(parts.netloc, parts.netloc.removeprefix("www."))


def sure(row: Row, text: str) -> str:
    return text if row["verified"] else f"{text} **?**"
