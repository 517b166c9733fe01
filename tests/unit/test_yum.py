"""pinned_packages over Ansible's own yum module, on a host whose packages and repository are lists: RHEL 7 has no stand-in with yum 3."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import gpu_host_info
import pytest
from ansible.errors import AnsibleActionFail
from package_host import Host, install

# yum keeps several versions of these, and downgrades none: yum/__init__.py, downgrade()
INSTALLONLY = {"kernel", "kernel-devel"}


def evr(version: str) -> list[int]:
    """Version and release as numbers: enough to order the ones here."""
    return [int(number) for number in re.findall(r"\d+", version)]


def split_file_name(name: str) -> tuple[str, str, str, str, str]:
    """As rpmUtils.miscutils.splitFilename: "epoch:name-version-release.arch" as name, version, release, epoch, arch."""
    match = re.match(r"^(?:(\d+):)?(.+)-([^-]+)-([^-]+)[.]([^.]+)$", name)
    return match[2], match[3], match[4], match[1] or "", match[5]


def compare(first: tuple[str, str, str], second: tuple[str, str, str]) -> int:
    first_evr, second_evr = (evr("-".join(entry[1:])) for entry in (first, second))
    return (first_evr > second_evr) - (first_evr < second_evr)


@pytest.fixture(scope="module")
def yum_module() -> Iterator[ModuleType]:
    """Ansible's module, with names in place of the bindings that only RHEL 7's Python has."""
    stubs = {name: ModuleType(name) for name in ("rpm", "yum", "yum.misc", "rpmUtils", "rpmUtils.miscutils")}
    stubs["yum.misc"].find_unfinished_transactions = stubs["yum.misc"].find_ts_remaining = None  # type: ignore[attr-defined]
    stubs["rpmUtils.miscutils"].splitFilename = split_file_name  # type: ignore[attr-defined]
    stubs["rpmUtils.miscutils"].compareEVR = compare  # type: ignore[attr-defined]
    patch = pytest.MonkeyPatch()
    for name, stub in stubs.items():
        patch.setitem(sys.modules, name, stub)
    spec = importlib.util.find_spec("ansible.modules.yum")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    patch.undo()


class Rhel7(Host):
    """Installed packages and those of the repository, by name; packages of one group are tied to one version."""

    def __init__(self, yum_module: ModuleType, offered: dict[str, list[str]], tied: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.offered, self.tied = offered, tied
        self.installed: dict[str, list[str]] = {}
        self.ran: list[tuple[str, list[str]]] = []
        self.kind = self.module_class(yum_module)

    def module_class(self, yum_module: ModuleType) -> Any:
        host = self

        class Module(yum_module.YumModule):  # type: ignore[misc,name-defined]
            """install() is Ansible's; what it asks of rpm and yum is answered here."""

            def __init__(self, **params: Any) -> None:
                self.allow_downgrade = params.get("allow_downgrade", False)
                self.module = SimpleNamespace(check_mode=False, fail_json=host.fail)

            def is_installed(self, repoq: Any, spec: str, qf: Any = None, is_pkg: bool = False) -> list[str]:
                return host.matching(host.installed, spec)

            def what_provides(self, repoq: Any, spec: str, qf: Any = None) -> list[str]:
                return host.matching(host.offered, spec) or host.matching(host.installed, spec)

            def transaction_exists(self, pkglist: list[str]) -> list[str]:
                return []

            def exec_install(self, items: Any, action: str, pkgs: list[str], res: Any) -> Any:
                return {**res, **host.yum(action, pkgs), "changed": True}

        return Module

    def fail(self, **result: Any) -> None:
        raise AnsibleActionFail(str(result["msg"]))

    @staticmethod
    def matching(packages: dict[str, list[str]], spec: str) -> list[str]:
        every = [(name, version) for name, versions in packages.items() for version in versions]
        names = {
            f"0:{name}-{version}.x86_64": (name, f"{name}-{version}", f"{name}-{version.split('-')[0]}")
            for name, version in every
        }
        return [full for full, forms in names.items() if spec == full or spec in forms]

    def yum(self, action: str, specs: list[str]) -> dict[str, Any]:
        """`yum install` adds and upgrades, with what is tied upwards; `yum downgrade` takes what is named, and only that."""
        self.ran.append((action, specs))
        final_versions = {name: list(versions) for name, versions in self.installed.items()}
        for spec in specs:
            name, version, release, _, _ = split_file_name(self.matching(self.offered, spec)[0])
            full, current_versions = f"{version}-{release}", self.installed.get(name, [])
            if name in INSTALLONLY:
                final_versions[name] = current_versions if action == "downgrade" else [*current_versions, full]
            elif action == "downgrade" or not current_versions or evr(full) > evr(current_versions[0]):
                final_versions[name] = [full]
                if action == "install" and name in self.tied:
                    final_versions |= {package: [full] for package in self.tied}
        if len({final_versions[name][0] for name in self.tied if name in final_versions}) > 1:
            return {"rc": 1, "msg": "Error: Package requires another version of it"}
        self.installed = final_versions
        return {"rc": 0, "msg": ""}

    def present(self, *names: dict[str, str], **args: Any) -> None:
        install(self, names=list(names), manager="yum", title="It", **args)

    def module(self, module: str, **args: Any) -> dict[str, Any]:
        if module != "ansible.legacy.yum":
            return super().module(module, **args)
        result: dict[str, Any] = self.kind(**args).install(args["name"], None)
        return {**result, "failed": result["rc"] != 0}

    def command(self, argv: list[str], seconds: int = 120, left: str = "") -> dict[str, Any]:
        if argv[:2] != ["rpm", "--query"] or "--all" in argv:
            return super().command(argv, seconds, left)
        specs = [spec for spec in argv[2:] if not self.matching(self.installed, spec)]
        return {"stdout": "".join(f"package {spec} is not installed\n" for spec in specs), "rc": len(specs)}


RUNNING, NEWER = "3.10.0-957.el7", "3.10.0-1127.el7"


def lock_lines(tmp_path: Path, kernels: list[str], headers: list[str]) -> list[str]:
    """What the role writes into yum's lock list on a host with these kernels and headers."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/redhat-release").write_text("Red Hat Enterprise Linux Server release 7.9 (Maipo)")
    package_lines = [f"kernel {version}" for version in kernels] + [f"kernel-devel {version}" for version in headers]
    host = gpu_host_info.Host(str(tmp_path), lambda argv: "\n".join(package_lines) if argv[0] == "rpm" else None)
    return host.read()["locks"]["lines"]


def behind_locks(offered: dict[str, list[str]], lines: list[str]) -> dict[str, list[str]]:
    """What yum's versionlock leaves of a repository: of a locked name the versions that a line names (EPOCH:NAME-VERSION-RELEASE.ARCH)."""
    names = {split_file_name(line)[0] for line in lines}
    return {
        name: [version for version in versions if name not in names or f"0:{name}-{version}.*" in lines]
        for name, versions in offered.items()
    }


DRIVER = ("nvidia-driver-latest-dkms", "nvidia-driver-latest-dkms-cuda", "nvidia-driver-latest-dkms-libs")


def driver(version: str, names: tuple[str, ...] = DRIVER) -> list[dict[str, str]]:
    return [{"name": name, "version": version} for name in names]


def with_driver(yum_module: ModuleType, version: str) -> Rhel7:
    host = Rhel7(yum_module, {name: ["535.104.05-1", "470.82.01-1"] for name in DRIVER}, tied=DRIVER)
    host.installed = {name: [f"{version}-1"] for name in DRIVER}
    return host


def test_headers_come_beside_those_of_a_newer_kernel(yum_module):
    host = Rhel7(yum_module, {"kernel-devel": [RUNNING, NEWER]})
    host.installed = {"kernel-devel": [NEWER]}
    host.present({"name": "kernel-devel", "version": RUNNING})
    assert host.installed == {"kernel-devel": [NEWER, RUNNING]}
    assert [action for action, _ in host.ran] == ["install"]


def test_a_driver_is_upgraded(yum_module):
    host = with_driver(yum_module, "470.82.01")
    host.present(*driver("535.104.05"))
    assert host.installed == {name: ["535.104.05-1"] for name in DRIVER}


def test_a_driver_goes_back_in_one_transaction_where_that_is_asked_for(yum_module):
    host = with_driver(yum_module, "535.104.05")
    host.present(*driver("470.82.01"), downgrade=True)
    assert host.installed == {name: ["470.82.01-1"] for name in DRIVER}
    assert [action for action, _ in host.ran] == ["downgrade"]


def test_half_a_driver_does_not_go_back(yum_module):
    host = with_driver(yum_module, "535.104.05")
    with pytest.raises(AnsibleActionFail, match="requires another version"):
        host.present(*driver("470.82.01", DRIVER[:2]), downgrade=True)
    assert host.installed == {name: ["535.104.05-1"] for name in DRIVER}


def test_what_yum_left_as_it_was_is_not_called_installed(yum_module):
    host = with_driver(yum_module, "535.104.05")
    with pytest.raises(AnsibleActionFail, match=r"data1 .*did not install nvidia-driver-latest-dkms-470\.82\.01, "):
        host.present(*driver("470.82.01"))
    assert host.installed == {name: ["535.104.05-1"] for name in DRIVER}


def test_a_locked_package_is_refused_and_nothing_else_is_installed(yum_module):
    host = with_driver(yum_module, "470.82.01")
    host.offered = {name: ["470.82.01-1"] for name in DRIVER[:1]}  # versionlock hides the other version
    with pytest.raises(AnsibleActionFail, match="No package matching"):
        host.present(*driver("535.104.05"))
    assert host.installed == {name: ["470.82.01-1"] for name in DRIVER}


@pytest.mark.parametrize("headers", [[RUNNING], []])
def test_headers_of_the_locked_kernel_may_come_and_newer_ones_may_not(yum_module, tmp_path, headers):
    lines = lock_lines(tmp_path, [RUNNING], headers)
    host = Rhel7(yum_module, behind_locks({"kernel-devel": [RUNNING, NEWER], "kernel": [RUNNING, NEWER]}, lines))
    host.installed = {"kernel": [RUNNING]}
    with pytest.raises(AnsibleActionFail, match="No package matching"):
        host.present({"name": "kernel-devel", "version": NEWER})
    host.present({"name": "kernel-devel", "version": RUNNING})
    assert host.installed == {"kernel": [RUNNING], "kernel-devel": [RUNNING]}


@pytest.mark.parametrize("name", ["kernel", "kernel-devel", "kernel-core"])
def test_a_kernel_is_never_downgraded(yum_module, name):
    host = Rhel7(yum_module, {name: [RUNNING]})
    with pytest.raises(AnsibleActionFail, match="never downgraded"):
        host.present({"name": name, "version": RUNNING}, downgrade=True)
    assert host.ran == []
