"""Ansible's modules, packed once for all runs of the checks.

Each run of Ansible packs a module with its utilities, which takes 0.1 s of processor time, and the checks are some thousand short runs. Packed files
depend only on Ansible and on this repository, so a directory for the digest of both keeps them. A run links those, and adds the modules that it packed itself.
"""

import contextlib
import hashlib
import os
import shutil
import sys
from pathlib import Path

from ansible import constants as C
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = """
name: packed_modules
type: aggregate
short_description: Pack Ansible's modules once
description: For the checks of this project. Runs on real hosts pack them each time.
"""

KEPT = Path(__file__).resolve().parents[2] / ".cache" / "test" / "modules"
OWN = Path(C.DEFAULT_LOCAL_TMP) / "ansiballz_cache"  # ansible.executor.module_common


def digest() -> str:
    """The digest of all that packed files depend on: modules and utilities in this run's paths, and the versions of Ansible and Python."""
    checksum = hashlib.sha256(f"{__version__} {sys.version}".encode())
    for folder in (*C.DEFAULT_MODULE_PATH, *C.DEFAULT_MODULE_UTILS_PATH):
        for path in sorted(Path(folder).rglob("*.py")):
            checksum.update(str(path.relative_to(folder)).encode() + hashlib.sha256(path.read_bytes()).digest())
    return checksum.hexdigest()[:16]


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "packed_modules"

    def __init__(self) -> None:
        super().__init__()
        self.kept = KEPT / digest()
        self.kept.mkdir(parents=True, exist_ok=True)
        OWN.mkdir(exist_ok=True)
        for path in self.kept.glob("ansible.modules.*"):
            with contextlib.suppress(FileExistsError):  # a run within the run shares the directory
                (OWN / path.name).symlink_to(path)

    def v2_playbook_on_stats(self, stats: object) -> None:
        for path in OWN.iterdir():
            # Not those of collections, whose files are not in the digest.
            if path.is_symlink() or path.name.endswith("-part") or not path.name.startswith("ansible.modules."):
                continue
            draft = self.kept / f".{path.name}.{os.getpid()}"
            shutil.copyfile(path, draft)
            draft.rename(self.kept / path.name)
