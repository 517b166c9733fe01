"""Code of plugins/module_utils that also runs on the controller, so that both treat the same bytes in the same way."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

DIRECTORY = Path(__file__).resolve().parents[3] / "plugins" / "module_utils"


def load(*names: str) -> ModuleType:
    """The last of these modules, by its file name; before it what it imports of its directory."""
    for name in names:
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, DIRECTORY / f"{name}.py")
            if spec is None or spec.loader is None:
                raise ImportError(f"{DIRECTORY / name}.py cannot be imported.")
            sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(sys.modules[name])
    return sys.modules[names[-1]]
