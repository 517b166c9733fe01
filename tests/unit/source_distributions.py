"""Source distributions for tests: a stand-in of pip that runs their setup.py, and what every setup.py begins with."""

from __future__ import annotations

import io
import os
import sys
import tarfile

from ansible.module_utils import confinement

# In place of the real one, which would only add its time: unpacks the source and runs its setup.py, as pip does.
PIP = """
import os, subprocess, sys, tarfile
target, source = sys.argv[-2:]
with tarfile.open(source) as archive:
    archive.extractall()
os.mkdir(target)
sys.exit(subprocess.call([sys.executable, "setup.py", target], cwd="evil-1.0"))
"""
# What every setup.py below begins with.
SETUP = """
import json, os, socket, subprocess, sys, time, zipfile
target = sys.argv[1]

def wheel(name="evil-1.0-py3-none-any.whl", project="evil", version="1.0", text="", **files):
    info = "%s-%s.dist-info/" % (project, version)
    members = {"evil.py": text, info + "METADATA": "Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n" % (project, version)}
    members[info + "WHEEL"] = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    members.update(files)
    with zipfile.ZipFile(os.path.join(target, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)

def attempt(action):
    try:
        return "done: %r" % (action(),)
    except Exception as error:
        return type(error).__name__

def report(**found):
    wheel(text="REPORT = %r" % (found,))
"""


def interpreter() -> str | None:
    """A Python that all users can read."""
    for path in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(path) and confinement.closed([path]) is None:
            return path
    return None


def sdist(setup: str, **files: str) -> bytes:
    """evil-1.0.tar.gz with this setup.py and these files, by their names below its directory."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in {"setup.py": SETUP + setup, **files}.items():
            info = tarfile.TarInfo(f"evil-1.0/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()
