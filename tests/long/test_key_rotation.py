"""Another key signs the packages of a site, with real dnf, rpm and apt: the old key, both in one file, the new one alone. docs/operate/operations.md has the steps.

The repository's metadata is signed as well. The images have no yum 3: what RHEL 7 has is not asked here.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import ansible_programs
import pytest

from hadoop_dl_dev.demo import nodes, signed_packages
from hadoop_dl_dev.demo.shell import run

REPOSITORY = Path(__file__).resolve().parents[2]
MANAGERS = {"el9": "dnf", "debian12": "apt"}
VERSIONS = {"el9": ("1.0-1", "1.1-1"), "debian12": ("1.0", "1.1")}
KEYS = {"el9": "/etc/pki/rpm-gpg/RPM-GPG-KEY-deeplearning-rotation", "debian12": "/etc/apt/keyrings/deeplearning-*"}
SPEC = """\
Name: rotation-test
Version: {version}
Release: 1
Summary: Test
License: none
BuildArch: noarch
%description
Test
%files
"""
CONTROL = "Package: rotation-test\nVersion: {version}-1\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: test\n"


def sign(home: Path, *arguments: str) -> None:
    run("gpg", "--homedir", str(home), "--batch", "--yes", "--local-user", signed_packages.KEY_NAME, *arguments)


class Site:
    """One node, two keys, and the repository, signed with one of them."""

    def __init__(self, image: str, directory: Path) -> None:
        self.image, self.directory, self.node = image, directory, f"rotation-{image}"
        self.homes = {name: signed_packages.signing_key(directory / name) for name in ("old", "new")}
        for name, home in self.homes.items():
            signed_packages.export_key(home, directory / f"{name}.asc")
        self.plain = directory / "plain"
        self.plain.mkdir()
        for version in ("1.0", "1.1"):
            self.build(version)

    def build(self, version: str) -> None:
        if self.image == "el9":
            spec = self.directory / f"{version}.spec"
            spec.write_text(SPEC.format(version=version), encoding="utf-8")
            signed_packages.build(spec, self.directory / "build", self.plain)
            return
        control = self.directory / version / "DEBIAN" / "control"
        control.parent.mkdir(parents=True)
        control.write_text(CONTROL.format(version=version), encoding="utf-8")
        run("dpkg-deb", "--root-owner-group", "--build", str(control.parents[1]), str(self.plain / f"{version}.deb"))

    def publish(self, name: str) -> None:
        """The repository as the site serves it: packages (rpm) and metadata signed with this key."""
        repository, home = self.directory / "made", self.homes[name]
        shutil.rmtree(repository, ignore_errors=True)
        shutil.copytree(self.plain, repository)
        if self.image == "el9":
            signed_packages.index(repository, home)
            sign(home, "--armor", "--detach-sign", str(repository / "repodata/repomd.xml"))
        else:
            self.index(repository, home)
        nodes.execute(self.node, "rm", "-rf", "/srv/rotation")
        run("docker", "cp", str(repository), f"{self.node}:/srv/rotation")
        if self.image == "debian12":  # apt reads its sources again after an hour: that has passed
            lists = "/var/lib/apt/lists /var/lib/apt/periodic/update-success-stamp"
            nodes.execute(
                self.node, "sh", "-c", f"for one in {lists}; do [ ! -e $one ] || touch -d '2 hours ago' $one; done"
            )

    def index(self, made: Path, home: Path) -> None:
        entries = []
        for path in sorted(made.glob("*.deb")):
            content = path.read_bytes()
            entries.append(
                f"{CONTROL.format(version=path.stem)}Filename: ./{path.name}\nSize: {len(content)}\n"
                f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
            )
        index = "\n".join(entries).encode()
        (made / "Packages").write_bytes(index)
        date = datetime.now(timezone.utc).strftime("%a, %d %b %Y %H:%M:%S UTC")
        release = made / "Release"
        release.write_text(f"Date: {date}\nSHA256:\n {hashlib.sha256(index).hexdigest()} {len(index)} Packages\n")
        sign(home, "--clearsign", "--output", str(made / "InRelease"), str(release))
        release.unlink()

    def install(self, version: str, *names: str) -> tuple[int, str]:
        """site.yml with a file of these keys: the roles' two actions."""
        key = self.directory / "key.asc"
        key.write_text("".join((self.directory / f"{name}.asc").read_text(encoding="utf-8") for name in names))
        number = VERSIONS[self.image][("1.0", "1.1").index(version)]
        variables = {
            "ansible_connection": "community.docker.docker",
            "ansible_python_interpreter": "/usr/bin/python3",
            "manager": MANAGERS[self.image],
            "key": str(key),
            "version": number,
        }
        arguments = ("-i", f"{self.node},", "-e", json.dumps(variables), REPOSITORY / "tests/long/key_rotation.yml")
        completed = ansible_programs.run("ansible-playbook", *arguments)
        print(completed.stdout)
        return completed.returncode, " ".join(completed.stdout.split())

    def installed(self) -> str:
        """The version of the package; empty for none."""
        ask = {
            "el9": "rpm -q --qf %{VERSION} rotation-test",
            "debian12": "dpkg-query -W -f '${source:Upstream-Version}' rotation-test",
        }
        command = f"version=$({ask[self.image]} 2>/dev/null) && echo $version"
        return nodes.execute(self.node, "sh", "-c", command, check=False).strip()

    def remove(self) -> None:
        remove = "rpm -e rotation-test" if self.image == "el9" else "dpkg --purge rotation-test"
        nodes.execute(self.node, "sh", "-c", remove)

    def fingerprint(self, name: str) -> str:
        lines = run("gpg", "--homedir", str(self.homes[name]), "--with-colons", "--list-keys").stdout.splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr"))

    def trusted(self) -> list[str]:
        """Which keys the host has: the files of the project, and rpm's key ring."""
        keys = nodes.execute(self.node, "sh", "-c", f"cat {KEYS[self.image]} 2>/dev/null || true")
        show = ("gpg", "--homedir", str(self.homes["old"]), "--batch", "--with-colons", "--show-keys")
        listing = run(*show, stdin=keys).stdout if keys else ""
        ring = nodes.execute(self.node, "rpm", "-qa", "gpg-pubkey").split() if self.image == "el9" else []
        trusted_keys = []
        for name in self.homes:
            number = self.fingerprint(name)
            trusted_keys += [f"file {name}"] if number in listing else []
            trusted_keys += [f"ring {name}"] if any(number[-8:].lower() in package for package in ring) else []
        return trusted_keys

    def ring(self, *names: str) -> list[str]:
        return [
            key
            for name in names
            for key in (f"file {name}", f"ring {name}")
            if self.image == "el9" or key.startswith("file")
        ]


@pytest.fixture(params=list(MANAGERS))
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    site = Site(request.param, tmp_path)
    nodes.remove(site.node)
    nodes.start(site.node, site.image, nodes.options_of(site.node))
    prepare = (
        "mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg; rm -f /etc/yum.repos.d/*"
        if site.image == "el9"
        else ": > /etc/apt/sources.list; apt-get -qq update"
    )
    nodes.execute(site.node, "sh", "-c", prepare)
    yield site
    nodes.remove(site.node)


def test_a_key_is_followed_by_another(site: Site) -> None:
    """One test, because each step begins with what the one before left."""
    site.publish("old")
    code, output = site.install("1.0", "old")
    assert (code, site.installed(), site.trusted()) == (0, "1.0", site.ring("old")), output

    # Both keys in one file: what the old one signed is still accepted.
    site.remove()
    code, output = site.install("1.0", "old", "new")
    assert (code, site.installed()) == (0, "1.0"), output
    assert set(site.ring("old")) | {"file new"} <= set(site.trusted())

    # The source has the new key; a host with the old one alone refuses it and stays as it is.
    site.publish("new")
    code, output = site.install("1.1", "old")
    assert (code, site.installed()) == (2, "1.0"), output
    assert "sign" in output
    assert site.trusted() in (site.ring("old"), []), "apt: a source that cannot be read is not defined"

    code, output = site.install("1.1", "old", "new")
    assert (code, site.installed(), site.trusted()) == (0, "1.1", site.ring("old", "new")), output

    # The end: the old key leaves the host, and what it signs is refused again.
    code, output = site.install("1.1", "new")
    assert (code, site.installed(), site.trusted()) == (0, "1.1", site.ring("new")), output
    assert site.install("1.1", "new")[1].count("changed=0 ") == 1
    site.remove()
    code, output = site.install("1.1", "new")
    assert (code, site.installed()) == (0, "1.1"), output
    site.publish("old")
    site.remove()
    code, output = site.install("1.0", "new")
    assert (code, site.installed()) == (2, ""), output
