"""Fixtures of CDSW's package, one for each release that a test installs."""

import shutil
from pathlib import Path

from hadoop_dl_dev.demo import signed_packages
from hadoop_dl_dev.demo.images import CACHE, DATA

SOURCE = DATA / "cdsw"
RELEASES = ("1.4.0", "1.10.5")


def ensure(cache: Path = CACHE) -> Path:
    """The directory, made again when one of its sources changed."""
    files = [*SOURCE.iterdir(), Path(__file__), Path(signed_packages.__file__)]
    return signed_packages.made_once(cache / "workbench-packages", files, fill)


def fill(top: Path, target: Path) -> None:
    for release in RELEASES:
        macros = {"files_dir": str(SOURCE), "cdsw": release}
        signed_packages.build(SOURCE / "workbench.spec", top / release, target, macros)
    shutil.copy(SOURCE / "session", target)
