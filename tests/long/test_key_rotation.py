"""Another key signs the packages of a site, with real dnf and rpm: the old key, both in one file, the new one alone. docs/operate/operations.md has the steps.

The repository's metadata is signed as well. The images have no yum 3: what RHEL 7 has is not asked here.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import ansible_programs
import pytest

from hadoop_dl_dev.demo import nodes, signed_packages
from hadoop_dl_dev.demo.shell import run

REPOSITORY = Path(__file__).resolve().parents[2]
KEYS = "/etc/pki/rpm-gpg/RPM-GPG-KEY-deeplearning-rotation"
NODE = "rotation-el9"
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


def sign(home: Path, *arguments: str) -> None:
    run("gpg", "--homedir", str(home), "--batch", "--yes", "--local-user", signed_packages.KEY_NAME, *arguments)


class Site:
    """One node, two keys, and the repository, signed with one of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.homes = {name: signed_packages.signing_key(directory / name) for name in ("old", "new")}
        for name, home in self.homes.items():
            signed_packages.export_key(home, directory / f"{name}.asc")
        self.plain = directory / "plain"
        self.plain.mkdir()
        for version in ("1.0", "1.1"):
            self.build(version)

    def build(self, version: str) -> None:
        spec = self.directory / f"{version}.spec"
        spec.write_text(SPEC.format(version=version), encoding="utf-8")
        signed_packages.build(spec, self.directory / "build", self.plain)

    def publish(self, name: str) -> None:
        """The repository as the site serves it: packages (rpm) and metadata signed with this key."""
        repository, home = self.directory / "made", self.homes[name]
        shutil.rmtree(repository, ignore_errors=True)
        shutil.copytree(self.plain, repository)
        signed_packages.index(repository, home)
        sign(home, "--armor", "--detach-sign", str(repository / "repodata/repomd.xml"))
        nodes.execute(NODE, "rm", "-rf", "/srv/rotation")
        run("docker", "cp", str(repository), f"{NODE}:/srv/rotation")

    def install(self, version: str, *names: str) -> tuple[int, str]:
        """site.yml with a file of these keys: the roles' two actions."""
        key = self.directory / "key.asc"
        key.write_text("".join((self.directory / f"{name}.asc").read_text(encoding="utf-8") for name in names))
        variables = {
            "ansible_connection": "community.docker.docker",
            "ansible_python_interpreter": "/usr/bin/python3",
            "manager": "dnf",
            "key": str(key),
            "version": f"{version}-1",
        }
        arguments = ("-i", f"{NODE},", "-e", json.dumps(variables), REPOSITORY / "tests/long/key_rotation.yml")
        completed = ansible_programs.run("ansible-playbook", *arguments)
        print(completed.stdout)
        return completed.returncode, " ".join(completed.stdout.split())

    def installed(self) -> str:
        """The version of the package; empty for none."""
        command = "version=$(rpm -q --qf %{VERSION} rotation-test 2>/dev/null) && echo $version"
        return nodes.execute(NODE, "sh", "-c", command, check=False).strip()

    def remove(self) -> None:
        nodes.execute(NODE, "rpm", "-e", "rotation-test")

    def fingerprint(self, name: str) -> str:
        lines = run("gpg", "--homedir", str(self.homes[name]), "--with-colons", "--list-keys").stdout.splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr"))

    def trusted(self) -> list[str]:
        """Which keys the host has: the files of the project, and rpm's key ring."""
        keys = nodes.execute(NODE, "sh", "-c", f"cat {KEYS} 2>/dev/null || true")
        show = ("gpg", "--homedir", str(self.homes["old"]), "--batch", "--with-colons", "--show-keys")
        listing = run(*show, stdin=keys).stdout if keys else ""
        ring = nodes.execute(NODE, "rpm", "-qa", "gpg-pubkey").split()
        trusted_keys = []
        for name in self.homes:
            number = self.fingerprint(name)
            trusted_keys += [f"file {name}"] if number in listing else []
            trusted_keys += [f"ring {name}"] if any(number[-8:].lower() in package for package in ring) else []
        return trusted_keys


def both(name: str) -> list[str]:
    """Where a host has the key that it trusts."""
    return [f"file {name}", f"ring {name}"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    nodes.remove(NODE)
    nodes.start(NODE, "el9", nodes.options_of(NODE))
    nodes.execute(NODE, "sh", "-c", "mkdir -p /etc/yum.repos.d /etc/pki/rpm-gpg; rm -f /etc/yum.repos.d/*")
    yield site
    nodes.remove(NODE)


def test_a_key_is_followed_by_another(site):
    """One test, because each step begins with what the one before left."""
    site.publish("old")
    code, output = site.install("1.0", "old")
    assert (code, site.installed(), site.trusted()) == (0, "1.0", both("old")), output

    # Both keys in one file: what the old one signed is still accepted.
    site.remove()
    code, output = site.install("1.0", "old", "new")
    assert (code, site.installed()) == (0, "1.0"), output
    assert set(both("old")) | {"file new"} <= set(site.trusted())

    # The source has the new key; a host with the old one alone refuses it and stays as it is.
    site.publish("new")
    code, output = site.install("1.1", "old")
    assert (code, site.installed()) == (2, "1.0"), output
    assert "sign" in output
    assert site.trusted() == both("old")

    code, output = site.install("1.1", "old", "new")
    assert (code, site.installed(), site.trusted()) == (0, "1.1", [*both("old"), *both("new")]), output

    # The end: the old key leaves the host, and what it signs is refused again.
    code, output = site.install("1.1", "new")
    assert (code, site.installed(), site.trusted()) == (0, "1.1", both("new")), output
    assert site.install("1.1", "new")[1].count("changed=0 ") == 1
    site.remove()
    code, output = site.install("1.1", "new")
    assert (code, site.installed()) == (0, "1.1"), output
    site.publish("old")
    site.remove()
    code, output = site.install("1.0", "new")
    assert (code, site.installed()) == (2, ""), output
