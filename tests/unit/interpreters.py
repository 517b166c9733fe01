"""The Pythons of hosts that this machine has: the oldest of each line decide, 2.7 (RHEL 7) and 3.6 (RHEL 8)."""

import ensurepip
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest


def found(version: str) -> str | None:
    places = [shutil.which(f"python{version}", path="/usr/local/bin:/usr/bin")]
    places += [str(path) for path in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))]
    return next((place for place in places if place), None)


def python(version: str) -> object:
    """A parameter: the interpreter of this version, or a skip that says that this machine does not have it."""
    path = found(version)
    skip_mark = pytest.mark.skip(reason=f"Python {version} is not installed on this machine")
    return pytest.param(path or "", id=version, marks=[] if path else [skip_mark])


def bundled_pip() -> Path:
    """The wheel of pip that comes with Python; Debian has it in a directory of its own."""
    directory = sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(ensurepip.__file__).parent / "_bundled"
    return next(Path(directory).glob("pip-*.whl"))


HOST_PYTHONS = [python("2.7"), python("3.6"), pytest.param(sys.executable, id="controller")]

UTILITIES = str(Path(__file__).resolve().parents[2] / "plugins/module_utils")
# The first lines of a program that imports code of hosts without Ansible; sys.argv[1] is the directory above.
WITHOUT_ANSIBLE = """
import sys, types
for name in ("ansible", "ansible.module_utils"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["ansible.module_utils"].__path__ = [sys.argv[1]]
"""
AS_ON_A_HOST = (
    WITHOUT_ANSIBLE
    + """
from ansible.module_utils.hadoop_dl_host import downloads, host_lock, processes
print("ready")
sys.stdout.flush()
"""
)
