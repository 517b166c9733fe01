"""Fixtures of CDSW's package, one for each release that a test installs."""

import shutil
from pathlib import Path

from hadoop_dl_dev.demo import signed_packages
from hadoop_dl_dev.demo.images import DATA

SOURCE = DATA / "cdsw"
RELEASES = ("1.4.0", "1.10.5")


def ensure() -> Path:
    """The directory, made again when one of its sources changed."""
    return signed_packages.made_once("workbench-packages", [*SOURCE.iterdir(), Path(__file__)], fill)


def fill(top: Path, target: Path) -> None:
    for release in RELEASES:
        macros = {"files_dir": str(SOURCE), "cdsw": release}
        signed_packages.build(SOURCE / "workbench.spec", top / release, target, macros)
    shutil.copy(SOURCE / "session", target)
