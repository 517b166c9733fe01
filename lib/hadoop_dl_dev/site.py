"""The documents as a site: a hook of mkdocs. `make docs` writes .cache/site.

Pages link to files of the repository. Here every Markdown file is a page of the site, and so is each other file that one links
to. The tables of four pages are made from data: in the repository, their place says how to get them.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from hadoop_dl_dev import compat_docs, hint_docs, input_docs, tested

TABLES: dict[str, Callable[[], str]] = {
    "docs/reference/compatibility.md": compat_docs.tables,
    "docs/reference/inputs.md": input_docs.tables,
    "docs/reference/stacks.md": tested.tables,
    "docs/train/job_errors.md": hint_docs.tables,
}
MARK = "<!-- tables -->\n"  # what follows it is for readers of the repository
LINK = re.compile(r"(\]\(|^\[[^]]+\]: )([^)\s#:]+)", re.MULTILINE)
ITEM = re.compile(r" {0,3}(?:[-*]|\d+\.) +")
LANGUAGES = {".yml": "yaml", ".json": "json", ".py": "python"}
README = "start/overview.md"  # mkdocs would take a README.md for the first page
pages: dict[str, Path] = {}  # by the name on the site


def text(repository: Path, path: Path) -> str:
    """A page with links as in the repository."""
    name = path.relative_to(repository).as_posix()
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".md":
        return f"# {name}\n\n````` {LANGUAGES.get(path.suffix, 'text')}\n{content}\n`````\n"
    before, mark, _ = content.partition(MARK)
    return before + made(name) if mark else content


@cache
def made(name: str) -> str:
    return TABLES[name]()


def target(repository: Path, page: Path, link: str) -> Path | None:
    """The file that a link means; a directory means its README. None: there is no such file of the project."""
    path = Path(os.path.normpath(page.parent / link))
    path = path / "README.md" if path.is_dir() else path
    return path if path.is_file() and path.is_relative_to(repository) else None


def linked(repository: Path, page: Path) -> Iterator[Path]:
    if page.suffix == ".md":
        for match in LINK.finditer(text(repository, page)):
            if path := target(repository, page, match[2]):
                yield path


def place(repository: Path, path: Path) -> str:
    """The name of a file on the site."""
    name = path.relative_to(repository).as_posix()
    name = README if name == "README.md" else name.removeprefix("docs/").removeprefix(".")
    return name if path.suffix in (".md", ".png") else f"{name}.md"


def on_config(config: MkDocsConfig) -> None:
    """Headings get the anchors that they have in the repository."""
    config.mdx_configs["toc"]["slugify"] = lambda heading, _: re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def on_files(files: Files, config: MkDocsConfig) -> None:
    repository = Path(config.config_file_path).parent
    queue = sorted([*repository.glob("*.md"), *repository.glob("[!.]*/**/*.md")])
    pages.clear()
    while queue:
        path = queue.pop()
        name = place(repository, path)
        if name in pages:
            continue
        pages[name] = path
        queue += linked(repository, path)
        if not files.get_file_from_path(name):
            content: dict[str, Any] = (
                {"abs_src_path": str(path)} if path.suffix == ".md" else {"content": text(repository, path)}
            )
            files.append(File.generated(config, name, inclusion=InclusionLevel.NOT_IN_NAV, **content))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    repository = Path(config.config_file_path).parent
    path = pages[page.file.src_uri]
    if path.suffix != ".md":
        page.meta["search"] = {"exclude": True}
        return markdown

    def on_site(match: re.Match[str]) -> str:
        found = target(repository, path, match[2])
        if not found:
            return match[0]  # mkdocs reports it
        return match[1] + os.path.relpath(place(repository, found), os.path.dirname(page.file.src_uri))

    return indented(LINK.sub(on_site, text(repository, path)))


def indented(markdown: str) -> str:
    """Lists as Python-Markdown requires them: the content of items at four columns, and a blank line behind more than a paragraph."""
    lines: list[str] = []
    columns, fenced, paragraphs = [0], False, False
    for line in markdown.splitlines():
        indent = len(line) - len(line.lstrip())
        while line and not fenced and indent < columns[-1]:
            columns.pop()
        item = None if fenced else ITEM.match(line, columns[-1])
        if item and paragraphs:
            lines.append("")
        lines.append(" " * 4 * (len(columns) - 1) + line[columns[-1] :] if line else "")
        fenced ^= line.lstrip().startswith("```")
        paragraphs = bool(columns[1:]) and not item and (paragraphs or not line)
        if item:
            columns.append(item.end())
    return "\n".join(lines) + "\n"
