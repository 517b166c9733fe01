"""pinned_packages state=solvable with the real apt of this machine, in a root of its own: what it would do, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleActionFail
from test_actions import Host, install

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="apt-get is a program of Debian and Ubuntu")
OLD, NEW = "535.216.01-1", "535.261.03-1"
PARTS = ("nvidia-smi", "libnvidia-ml1", "nvidia-alternative")  # only the first is named; each requires the next one
# As of the role (vars/main.yml).
PREFERENCES = "Package: src:nvidia-graphics-drivers*\nPin: version 535.261.03-*\nPin-Priority: 1001\n"


def control(name: str, version: str, depends: str = "", source: str = "") -> str:
    fields = {"Package": name, "Version": version, "Architecture": "amd64", "Depends": depends, "Source": source}
    return "".join(f"{key}: {value}\n" for key, value in fields.items() if value)


def driver(version: str, more: str = "") -> list[str]:
    versioned_depends = [f"{name} (= {version})" for name in PARTS[1:]]
    return [
        control(name, version, depends + more * (name == PARTS[-1]), "nvidia-graphics-drivers")
        for name, depends in zip(PARTS, [*versioned_depends, ""], strict=True)
    ]


class Apt(Host):
    """A host whose commands are run, with apt's files in a directory."""

    def __init__(self, root: Path, offered: list[str], installed: list[str]) -> None:
        super().__init__()
        for name in ("etc/apt/preferences.d", "var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "srv"):
            (root / name).mkdir(parents=True)
        (root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] file:{root}/srv ./\n", encoding="utf-8")
        entries = [f"{paragraph}Filename: ./x.deb\nSize: 1\nSHA256: {'0' * 64}\n" for paragraph in offered]
        (root / "srv/Packages").write_text("\n".join(entries), encoding="utf-8")
        self.preferences = root / "etc/apt/preferences.d/deeplearning-nvidia-driver"
        self.status = root / "status"
        self.status.write_text("\n".join(installed), encoding="utf-8")
        dirs = {"Dir": root, "Dir::State::status": self.status, "Dir::Bin::methods": "/usr/lib/apt/methods"}
        lines = [f'{key} "{value}";' for key, value in dirs.items()]
        settings = [*lines, 'APT::Architecture "amd64";', 'APT::Architectures "amd64";', 'APT::Sandbox::User "root";']
        (root / "apt.conf").write_text("\n".join(settings), encoding="utf-8")
        self.environment = {**os.environ, "APT_CONFIG": str(root / "apt.conf"), "LC_ALL": "C", "TMPDIR": str(root)}
        answer = self.command(["apt-get", "-qq", "-o", "APT::Update::Error-Mode=any", "update"])
        assert answer["rc"] == 0, answer
        self.asked.clear()

    def command(self, argv: list[str], seconds: int = 120, left: str = "") -> dict[str, Any]:
        self.asked.append(argv)
        options: Any = {"env": self.environment, "stdin": subprocess.DEVNULL, "timeout": seconds}
        completed = subprocess.run(argv, capture_output=True, text=True, check=False, **options)
        return {"rc": completed.returncode, "stdout": completed.stdout, "stderr": completed.stderr}


def state(text: str, selection: str = "install") -> str:
    return f"{text}Status: {selection} ok installed\n"


def solve(host: Apt, **args: Any) -> dict[str, Any]:
    preferences = {"file": str(host.preferences), "content": PREFERENCES}
    names = [{"name": "nvidia-smi", "version": "535.261.03"}]
    arguments = {"state": "solvable", "manager": "apt", "title": "Driver 535.261.03", "preferences": preferences}
    return install(host, **{**arguments, "names": names, "unheld": list(PARTS), **args})


OTHERS = [
    control("libsite", "1"),
    control("libsite", "2"),
    control("site-tool", "1", f"libnvidia-ml1 (= {OLD})"),
    control("linux-image-6.1", "6.1-1"),
]
HELD = [state(paragraph, "hold") for paragraph in driver(OLD)]


@pytest.mark.parametrize(
    ("installed", "pinned"),
    [([], ""), (HELD, OLD), ([state(paragraph, "hold") for paragraph in driver("550.1-1")], "550.1-1")],
    ids=["first", "newer", "older"],
)
def test_a_transaction_that_apt_can_do_changes_nothing(tmp_path: Path, installed: list[str], pinned: str) -> None:
    """Another branch is newer in the repository, the installed packages are held, and their version is pinned: all as in an upgrade."""
    host = Apt(tmp_path, [*driver(OLD), *driver(NEW), *driver("550.1-1"), *OTHERS], installed)
    if pinned:
        host.preferences.write_text(PREFERENCES.replace("535.261.03-*", pinned), encoding="utf-8")
    before = host.status.read_bytes()
    assert not solve(host)["changed"]
    assert (host.status.read_bytes(), host.modules) == (before, [])
    assert list(tmp_path.glob("tmp.*")) == []  # the preferences for it


@pytest.mark.parametrize(
    ("offered", "installed", "words"),
    [
        (driver(NEW)[:2], HELD, r"apt reports: nvidia-smi : Depends: libnvidia-ml1 \(= 535\.261\.03-1\) but 535\.216"),
        (driver(NEW, "not-there (>= 2)"), [], "nvidia-alternative : Depends: not-there .*is not installable"),
        ([], [], "Unable to locate package nvidia-smi"),
        (driver(NEW), [*HELD, state(OTHERS[2])], "would also remove installed packages.*: site-tool"),
        (
            driver(NEW, "libsite (>= 2)"),
            [*HELD, state(OTHERS[0], "hold")],
            "holds that are not of this project: libsite",
        ),
        (driver(NEW, "linux-image-6.1"), HELD, "would install, change or remove linux-image-6.1"),
    ],
    ids=["incomplete", "unknown", "nothing", "conflict", "hold of the site", "kernel"],
)
def test_a_transaction_that_must_not_be_done_is_refused(
    tmp_path: Path, offered: list[str], installed: list[str], words: str
) -> None:
    host = Apt(tmp_path, [*offered, *OTHERS], installed)
    with pytest.raises(
        AnsibleActionFail, match=f"Driver 535.261.03 must be one transaction on data1 .*{words}.*Nothing"
    ):
        solve(host, exclude=["linux-image-*"])
    assert host.modules == []
