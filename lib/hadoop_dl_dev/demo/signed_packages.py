"""Packages that this project builds for its tests, as a repository of RHEL's with a generated key: build, sign, index."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from hadoop_dl_dev.demo.images import digest
from hadoop_dl_dev.demo.shell import only_one, run

KEY_NAME = "hadoop-deeplearning demo packages"
MACROS = {
    "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    "_binary_payload": "w1.gzdio",  # EL7's rpm reads gzip; the builder's own default may be newer than that
    "_build_id_links": "none",
    "__os_install_post": "%{nil}",
    "debug_package": "%{nil}",
}


def made_once(target: Path, files: Iterable[Path], make: Callable[[Path, Path], None]) -> Path:
    """The directory `target`, made again when one of these files changed; a second caller waits for the first one.

    make is called with a directory for intermediate files and the directory to fill.
    """
    fingerprint = digest(*(path.name.encode() + path.read_bytes() for path in sorted(files)))
    with only_one(target.with_name(f"{target.name}.lock")):
        stamp = target / ".digest"
        if stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint:
            return target
        with tempfile.TemporaryDirectory(dir=target.parent) as directory:
            staging = Path(directory) / "made"
            staging.mkdir(mode=0o755)
            make(Path(directory), staging)
            (staging / ".digest").write_text(fingerprint, encoding="utf-8")
            shutil.rmtree(target, ignore_errors=True)
            staging.rename(target)
    return target


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


def write_keys(repository: Path, home: Path) -> None:
    """The public key that the packages are signed with, and another one, which signed nothing."""
    export_key(home, repository / "RPM-GPG-KEY-fixtures")
    export_key(signing_key(home.with_name("gpg-other")), repository / "RPM-GPG-KEY-other")


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
