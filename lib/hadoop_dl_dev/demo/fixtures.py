"""The site's own RPM repository of the demo: small fixture packages, built, signed with a generated key, and indexed."""

import shutil
import tempfile
from pathlib import Path

from hadoop_dl_dev.demo import signed_packages
from hadoop_dl_dev.demo.images import CACHE, DATA, digest
from hadoop_dl_dev.demo.shell import only_one

REPOSITORY_FILE = """\
[site]
name=Packages of this site
baseurl=file:///srv/site-repo
enabled=1
gpgcheck=1
repo_gpgcheck=0
gpgkey=file:///srv/site-repo/RPM-GPG-KEY-site
"""


def ensure(source: Path = DATA / "fixtures", cache: Path = CACHE) -> Path:
    """The repository's directory, its content made again when a fixture changed. Every folder with a .spec file is a package."""
    with only_one(cache / "site-repo.lock"):
        return make(source, cache)


def make(source: Path, cache: Path) -> Path:
    target = cache / "site-repo"
    files = [*sorted(path for path in source.rglob("*") if path.is_file()), DATA / "gpu/files/nvidia-smi"]
    fingerprint = digest(*(str(path.relative_to(DATA)).encode() + path.read_bytes() for path in files))
    stamp = target / ".digest"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
        return target
    home = signed_packages.signing_key(cache / "gpg")
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        repository = Path(directory) / "repo"
        repository.mkdir()
        for spec in sorted(source.rglob("*.spec")):
            signed_packages.build(spec, Path(directory) / "build", repository)
        signed_packages.export_key(home, repository / "RPM-GPG-KEY-site")
        signed_packages.index(repository, home)
        replace_content(target, repository)
    stamp.write_text(fingerprint, encoding="utf-8")
    return target


def replace_content(target: Path, repository: Path) -> None:
    """Running nodes have the directory mounted: it stays the same one."""
    target.mkdir(exist_ok=True)
    target.chmod(0o755)
    (target / ".digest").unlink(missing_ok=True)  # first: a half-made repository is not taken for a complete one
    for old in target.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for new in repository.iterdir():
        shutil.move(new, target / new.name)
