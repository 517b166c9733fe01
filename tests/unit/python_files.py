"""Python files that no import finds by their name: plugins, programs of roles and examples; and programs that are stand-ins."""

import importlib.util
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

# Starts a stand-in that is asked often: with its bytecode, and without the site's packages.
PROGRAM = """\
#!{python} -IS
import sys
sys.path.insert(0, {folder!r})
import {name}
sys.exit({name}.main({given!r}, sys.argv[1:]))
"""


def write_program(path: Path, module: ModuleType, given: Path) -> None:
    """A program that calls the module's main() with the path of its state and the arguments."""
    folder, name = str(Path(str(module.__file__)).parent), module.__name__
    path.write_text(PROGRAM.format(python=sys.executable, folder=folder, name=name, given=str(given)))
    path.chmod(0o755)


def write_script(path: Path, text: str) -> Path:
    """A program of /bin/sh."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def load(path: Path) -> ModuleType:
    # A program's name has no .py, by which importlib finds a loader.
    loader = SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
