"""Typed Python behind plugins and scripts.

Code for hosts that also runs here is imported by the name that it has there: ansible.module_utils.hadoop_dl_host.
"""

import importlib.util
import sys
import types
from pathlib import Path

if importlib.util.find_spec("ansible") is None:  # scripts/stack and gpu-check's packer need no Ansible
    for name in ("ansible", "ansible.module_utils"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = []
importlib.import_module("ansible.module_utils").__path__.append(
    str(Path(__file__).resolve().parents[2] / "plugins/module_utils")
)
