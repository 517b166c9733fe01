"""Python files that no import finds by their name: plugins, and programs of roles and examples."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType


def load(path: Path) -> ModuleType:
    # A program's name has no .py, by which importlib finds a loader.
    loader = SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
