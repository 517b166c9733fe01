"""The site's own RPM repository of the demo: small fixture packages, built, signed with a generated key, and indexed."""

from pathlib import Path

from hadoop_dl_dev.demo import signed_packages
from hadoop_dl_dev.demo.images import DATA

SOURCE = DATA / "fixtures"
REPOSITORY_FILE = """\
[site]
name=Packages of this site
baseurl=file:///srv/site-repo
enabled=1
gpgcheck=1
repo_gpgcheck=0
gpgkey=file:///srv/site-repo/RPM-GPG-KEY-site
"""


def ensure() -> Path:
    """The repository's directory, made again when a fixture changed. Every folder with a .spec file is a package."""
    files = [*(path for path in SOURCE.rglob("*") if path.is_file()), DATA / "gpu/files/nvidia-smi"]
    return signed_packages.made_once("site-repo", files, fill)


def fill(top: Path, repository: Path) -> None:
    for spec in sorted(SOURCE.rglob("*.spec")):
        signed_packages.build(spec, top / "build", repository)
    signed_packages.export_key(signed_packages.own_key(), repository / "RPM-GPG-KEY-site")
    signed_packages.index(repository, signed_packages.own_key())
