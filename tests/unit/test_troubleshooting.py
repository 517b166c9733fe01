"""docs/train/troubleshooting.md: what it quotes as printed is in the programs, and every error that it shows has a hint."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tfos_submit import hints

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = ("roles/tensorflowonspark/files", "plugins/module_utils/hadoop_dl_host")
PAGE = (REPOSITORY / "docs/train/troubleshooting.md").read_text(encoding="utf-8")
PRINTED = re.compile(r"^ {4,}((?:tfos-submit|tfos-gpus): .*)$", re.MULTILINE)
SEEN = re.compile(r"^ {4,}(?!tfos-submit: |\$ )(\S.*)$", re.MULTILINE)
SECTIONS = {text.partition("\n")[0]: text for text in re.split(r"(?m)^## ", PAGE)[1:]}


def sentence(printed: str) -> str:
    """Without the program's name, and with … for what differs from case to case."""
    return printed.removeprefix("tfos-submit: ").rstrip("…")


def texts() -> list[str]:
    """Every text in the programs, with … for its placeholders."""
    texts = []
    for path in (path for folder in PROGRAMS for path in sorted((REPOSITORY / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = re.sub(r"(%(?:\(\w+\))?[-.\d]*[a-z]|\{\d\})+", "…", node.value)
                texts.append(text.replace("%%", "%"))
    return texts


TEXTS = texts()


@pytest.mark.parametrize("printed", PRINTED.findall(PAGE))
def test_what_the_page_quotes_is_in_the_programs(printed: str) -> None:
    quotation = sentence(printed)
    assert len(quotation) > 10
    assert [text for text in TEXTS if quotation in text]


@pytest.mark.parametrize("seen", [line for line in SEEN.findall(PAGE) if not line.startswith("tfos-gpus: ")])
def test_an_error_that_the_page_shows_has_a_hint(seen: str) -> None:
    assert hints.hints(seen)


def test_every_section_is_in_the_table() -> None:
    anchors = re.findall(r"\(#([a-z-]+)\) \|$", PAGE, re.MULTILINE)
    assert anchors == [title.lower().replace(" ", "-") for title in SECTIONS if title != "First of all"]
