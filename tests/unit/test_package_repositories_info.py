"""package_repositories_info: which enabled repositories check no signatures, as dnf and yum themselves answer."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import package_repositories_info as info
import pytest


def repository(name: str, gpgcheck: Any, file: str | None = "/etc/yum.repos.d/site.repo") -> SimpleNamespace:
    return SimpleNamespace(id=name, gpgcheck=gpgcheck, repofile=file)


ENABLED = [repository("site", False), repository("baseos", True), repository("made", 0, None)]


def dnf() -> ModuleType:
    """dnf.Base as dnf 4 has it (base.py, repodict.py): the order of these calls is that of its own command line."""
    calls: list[str] = []

    class Base:
        def __init__(self) -> None:
            self.conf = SimpleNamespace(read=lambda: calls.append("read"))
            self.repos = SimpleNamespace(iter_enabled=lambda: iter(ENABLED))

        def __getattr__(self, name: str) -> Any:
            return lambda: calls.append(name)

    module = ModuleType("dnf")
    module.Base, module.calls = Base, calls  # type: ignore[attr-defined]
    return module


def yum() -> ModuleType:
    """yum.YumBase as yum 3.4.3 has it (yum/__init__.py): `preconf` is set before `repos` is first read."""

    class YumBase:
        def __init__(self) -> None:
            self.preconf = SimpleNamespace(debuglevel=None, errorlevel=None, plugins=False)

        @property
        def repos(self) -> SimpleNamespace:
            assert (self.preconf.debuglevel, self.preconf.plugins) == (0, True)
            return SimpleNamespace(listEnabled=lambda: ENABLED)

    module = ModuleType("yum")
    module.YumBase = YumBase  # type: ignore[attr-defined]
    return module


def test_with_a_list_of_the_site_every_other_repository_is_listed_too_but_those_of_this_project():
    names = ("baseos", "epel", "deeplearning-cuda")
    repositories = [SimpleNamespace(id=name, repofile="", gpgcheck=True) for name in names]
    assert info.unsigned(repositories) == []
    assert info.unsigned(repositories, ["baseos"]) == [{"name": "epel", "file": ""}]
    assert info.unsigned([SimpleNamespace(id="baseos", repofile="", gpgcheck=False)], ["baseos"]), "named, but unsigned"


@pytest.mark.parametrize("manager", ["dnf", "yum"])
def test_enabled_repositories_without_a_check_are_listed_with_their_files(manager, monkeypatch):
    bindings = {"dnf": dnf, "yum": yum}[manager]()
    monkeypatch.setitem(sys.modules, manager, bindings)
    repositories = info.unsigned({"dnf": info.enabled_in_dnf, "yum": info.enabled_in_yum}[manager]())
    assert repositories == [{"name": "made", "file": ""}, {"name": "site", "file": "/etc/yum.repos.d/site.repo"}]
    if manager == "dnf":
        expected = ["read", "init_plugins", "pre_configure_plugins", "read_all_repos", "configure_plugins", "close"]
        assert bindings.calls == expected
