"""Modules and module_utils use of each other only what is there: Python notices a name that is gone when the line runs, on a host."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hadoop_dl.data import host_code

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
FILES = sorted([*(PLUGINS / "modules").glob("*.py"), *host_code.DIRECTORY.glob("*.py")])
OWN = {path.stem for path in host_code.DIRECTORY.glob("*.py")}


def missing(source: str) -> Iterator[str]:
    """Names of code for hosts that this text uses and that are not there."""
    nodes = list(ast.walk(ast.parse(source)))
    modules: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module in (None, host_code.PACKAGE):
            modules |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in OWN}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            name = modules[node.value.id]
            if not hasattr(importlib.import_module(f"{host_code.PACKAGE}.{name}"), node.attr):
                yield f"{name}.{node.attr}, line {node.lineno}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_a_file_uses_of_another_one_is_there(path):
    assert list(missing(path.read_text(encoding="utf-8"))) == []
