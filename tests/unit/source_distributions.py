"""A source distribution for tests, the recipe of its wheel, and a Python that users without rights can read."""

import hashlib
import io
import os
import sys
import tarfile
from pathlib import Path

from ansible.module_utils.hadoop_dl_host import sandbox_cell, source_wheels

NAME = "evil-1.0-2.tar.gz"
Recipe = source_wheels.Recipe
FILES = {
    "PKG-INFO": "Metadata-Version: 1.1\nName: evil\nVersion: 1.0-2\nSummary: Small\nDescription: Long\n        text\n",
    "setup.py": "raise SystemExit('setup.py ran')\n",
    "LICENSE": "Free\n",
    "conftest.py": "import os\n",
    "src/evil/__init__.py": "VALUE = 'of the source'\n",
    "src/evil/code.c": "int main;\n",
    "src/evil/tests/__init__.py": "import os\n",
    "src/evil/evil.pth": "import os\n",
    "src/evils.py": "import os\n",
}


def source(directory: Path) -> Path:
    path = directory / NAME
    with tarfile.open(path, "w:gz") as archive:
        for name, text in FILES.items():
            member = tarfile.TarInfo(f"evil-1.0-2/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("evil-1.0-2/src/evil/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/shadow"
        archive.addfile(link)
    return path


def interpreter() -> str | None:
    """A Python that all users can read."""
    for path in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(path) and sandbox_cell.closed([path]) is None:
            return path
    return None


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


RECIPE = Recipe("evil-1.0.post2", "", "src/evil/", "src/evil/tests/", ["LICENSE"], ("six",), source_wheels.BOTH)
