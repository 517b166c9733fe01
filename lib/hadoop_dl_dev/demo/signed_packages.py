"""Packages that this project builds for its tests, as a repository of RHEL's with a generated key: build, sign, index."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from hadoop_dl_dev.demo.images import CACHE, digest
from hadoop_dl_dev.demo.shell import only_one, run

KEY_NAME = "hadoop-deeplearning demo packages"
MACROS = {
    "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    "_binary_payload": "w1.gzdio",  # EL7's rpm reads gzip; the builder's own default may be newer than that
    "_build_id_links": "none",
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
}


def made_once(name: str, files: Iterable[Path], make: Callable[[Path, Path], None]) -> Path:
    """The cache's directory of this name, its content made again when one of these files changed; a second caller waits for the first one.

    make is called with a directory for intermediate files and the directory to fill.
    """
    target = CACHE / name
    fingerprint = digest(*(path.name.encode() + path.read_bytes() for path in (Path(__file__), *sorted(files))))
    with only_one(CACHE / f"{name}.lock"):
        stamp = target / ".digest"
        if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
            return target
        with tempfile.TemporaryDirectory(dir=CACHE) as directory:
            staging = Path(directory) / "made"
            staging.mkdir(mode=0o755)
            make(Path(directory), staging)
            replace_content(target, staging)
        stamp.write_text(fingerprint, encoding="utf-8")
    return target


def replace_content(target: Path, made: Path) -> None:
    """Running nodes have the directory mounted: it stays the same one."""
    target.mkdir(exist_ok=True)
    target.chmod(0o755)
    (target / ".digest").unlink(missing_ok=True)  # first: what is half-made is not taken for complete
    for old in target.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for new in made.iterdir():
        shutil.move(new, target / new.name)


def build(spec: Path, top: Path, repository: Path, macros: dict[str, str] | None = None) -> None:
    """Build the packages of a spec for x86_64 into `repository`; `top` is rpmbuild's own directory."""
    own = {"_topdir": str(top), "_rpmdir": str(repository), "_sourcedir": str(spec.parent)}
    defines = [
        word for key, value in {**MACROS, **own, **(macros or {})}.items() for word in ("--define", f"{key} {value}")
    ]
    run("rpmbuild", "-bb", "--quiet", "--noclean", "--target", "x86_64", *defines, str(spec))


def index(repository: Path, home: Path) -> None:
    """Sign the packages of a directory and make it a repository."""
    sign(repository, home)
    run("createrepo_c", "--quiet", str(repository))


def sign(repository: Path, home: Path) -> None:
    gpg = ("--define", f"_gpg_name {KEY_NAME}", "--define", "__gpg /usr/bin/gpg")
    packages = sorted(map(str, repository.glob("*.rpm")))
    with only_one(home.with_name(f"{home.name}.lock")):  # others sign with the same agent, which ends here
        run("rpmsign", *gpg, "--addsign", *packages, env={**os.environ, "GNUPGHOME": str(home)})
        run("gpgconf", "--homedir", str(home), "--kill", "gpg-agent")


def publish(repository: Path) -> None:
    """The same by the fixtures' key, with its public key beside it and another one, which signed nothing."""
    index(repository, own_key())
    write_keys(repository)


def write_keys(repository: Path) -> None:
    export_key(own_key(), repository / "RPM-GPG-KEY-fixtures")
    export_key(signing_key(CACHE / "gpg-other"), repository / "RPM-GPG-KEY-other")


def own_key() -> Path:
    return signing_key(CACHE / "gpg")


def export_key(home: Path, target: Path) -> None:
    exported = run("gpg", "--homedir", str(home), "--armor", "--export", KEY_NAME).stdout
    target.write_text(exported, encoding="utf-8")


def signing_key(home: Path) -> Path:
    """A GnuPG home with the key that signs fixtures; it never leaves this machine."""
    with only_one(home.with_name(f"{home.name}.lock")):
        if not (home / ".complete").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True, mode=0o700)
            generate = ("--quick-generate-key", KEY_NAME, "rsa3072", "sign", "never")
            run("gpg", "--homedir", str(home), "--batch", "--passphrase", "", *generate)
            (home / ".complete").touch()
    return home
