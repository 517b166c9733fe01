"""The site's own RPM repository of the demo: small fixture packages, built, signed with a generated key, and indexed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hadoop_dl_dev.demo.images import CACHE, DATA, digest
from hadoop_dl_dev.demo.shell import only_one, run

KEY_NAME = "hadoop-deeplearning demo packages"
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
    files = sorted(path for path in source.rglob("*") if path.is_file())
    wanted = digest(*(str(path.relative_to(source)).encode() + path.read_bytes() for path in files))
    stamp = target / ".digest"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return target
    home = signing_key(cache / "gpg")
    with tempfile.TemporaryDirectory(dir=cache) as directory:
        top, made = Path(directory), Path(directory) / "repo"
        made.mkdir()
        for spec in sorted(source.rglob("*.spec")):
            build_rpm(spec, top, made)
        packages = sorted(map(str, made.glob("*.rpm")))
        run(
            *("rpmsign", "--define", f"_gpg_name {KEY_NAME}", "--define", "__gpg /usr/bin/gpg", "--addsign", *packages),
            env={**os.environ, "GNUPGHOME": str(home)},
        )
        exported = run("gpg", "--homedir", str(home), "--armor", "--export", KEY_NAME).stdout
        (made / "RPM-GPG-KEY-site").write_text(exported, encoding="utf-8")
        run("createrepo_c", "--quiet", str(made))
        replace_content(target, made)
    stamp.write_text(wanted, encoding="utf-8")
    return target


def replace_content(target: Path, made: Path) -> None:
    """Running nodes have the directory mounted: it stays the same one."""
    target.mkdir(exist_ok=True)
    target.chmod(0o755)
    (target / ".digest").unlink(missing_ok=True)  # first: a half-made repository is not taken for a complete one
    for old in target.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    for new in made.iterdir():
        shutil.move(new, target / new.name)


def build_rpm(spec: Path, top: Path, made: Path) -> None:
    options = {
        "_topdir": top / "build",
        "_sourcedir": spec.parent,
        "_rpmdir": made,
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
    }
    # EL7's rpm reads gzip; the builder's own default may be newer than that.
    options["_binary_payload"] = Path("w6.gzdio")
    defines = [word for key, value in options.items() for word in ("--define", f"{key} {value}")]
    run("rpmbuild", "-bb", "--quiet", *defines, str(spec))


def signing_key(home: Path) -> Path:
    """A GnuPG home with the key that signs fixtures; it never leaves this machine."""
    if not (home / ".complete").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True, mode=0o700)
        run(
            "gpg",
            "--homedir",
            str(home),
            "--batch",
            "--passphrase",
            "",
            "--quick-generate-key",
            KEY_NAME,
            "rsa3072",
            "sign",
            "never",
        )
        (home / ".complete").touch()
    return home
