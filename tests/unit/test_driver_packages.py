"""The packages that nvidia_driver asks for by version, kind of module and kernel. What they require of each other: test_driver_solver.py."""

import fnmatch
from typing import Any

import driver_hosts
import pytest

from hadoop_dl.data.driver_packages import COMPANION, Rpms, packages_of
from hadoop_dl.data.driver_work import driver_work

KERNELS = {"7": "3.10.0-1160.118.1.el7.x86_64", "9": "5.14.0-427.18.1.el9_4.x86_64"}


def packages(major: str, version: str, installed: Any = (), **inputs: Any) -> Rpms:
    """The packages of a RHEL host with these of a driver."""
    kernel = KERNELS[major]
    host = driver_hosts.host(
        major=major,
        kernels={"needed": [kernel], "default_boot": kernel, "headers": {kernel: "/usr/src"}},
        driver=driver_hosts.installed(inputs.pop("installed_version", None), installed),
    )
    return packages_of(driver_hosts.request(version=version, **inputs), host)


def named(major: str, version: str, **inputs: Any) -> list[str]:
    return [part["name"] for part in packages(major, version, **inputs).parts()]


@pytest.mark.parametrize(
    ("major", "inputs", "words"),
    [
        ("7", {}, "nvidia_driver_source: runfile"),
        ("9", {}, "dnf module enable nvidia-driver:535-dkms"),
        ("9", {"module": "open"}, "dnf module enable nvidia-driver:535-open,"),
        ("9", {"build": "precompiled"}, "dnf module enable nvidia-driver:535,"),
        ("9", {"build": "precompiled", "module": "open"}, "the distribution's kmod-nvidia-open-535.104.05-KERNEL"),
        ("9", {}, "dnf module reset nvidia-driver, then"),  # while another stream is enabled, dnf refuses to enable one
        ("9", {}, "set nvidia_driver_repository_url"),
        ("9", {"repository_url": "http://mirror01/rpm"}, "request a version"),
    ],
)
def test_a_missing_version_has_a_way_out(major, inputs, words):
    assert words in packages(major, "535.104.05", **inputs).remedy()


@pytest.mark.parametrize(("installed", "leave"), [("550.54.15", True), ("570.86.15", False)])
def test_graphics_of_a_branch_before_560_leave_and_a_sites_own_of_a_later_one_follow(installed, leave):
    names = ["nvidia-driver", *(f"nvidia-driver-{part}" for part in ("libs", "NvFBCOpenGL", "devel"))]
    driver = packages("9", "580.82.07", dict.fromkeys(names, [f"3:{installed}-1.el9"]))
    assert driver.replaced() == names * leave


@pytest.mark.parametrize(
    ("offered", "installed", "name"),
    [
        ([], [], "nvidia-fabric-manager"),
        (["nvidia-fabricmanager"], [], "nvidia-fabricmanager"),
        ([], ["nvidia-fabricmanager"], "nvidia-fabricmanager"),  # nothing was asked for: this version is installed
        (["nvidia-fabricmanager"], ["nvidia-fabric-manager"], "nvidia-fabricmanager"),
    ],
)
def test_the_fabric_manager_has_the_name_that_the_repositories_offer(offered, installed, name):
    answers = [{"names": offered}, {"skipped": True}]
    driver = packages("9", "580.82.07", installed, fabric_manager=True, offered=answers)
    assert driver.parts()[-1] == {"name": name, "version": "580.82.07"}


@pytest.mark.parametrize(
    ("major", "version", "names"),
    [
        ("8", "450.80.02", ["nvidia-fabricmanager-450", "nvidia-fabricmanager"]),
        ("7", "418.87.00", ["nvidia-fabricmanager-418", "nvidia-fabricmanager"]),
        ("8", "460.32.03", ["nvidia-fabric-manager", "nvidia-fabricmanager"]),
    ],
)
def test_older_branches_have_a_fabric_manager_with_the_branch_in_its_name(major, version, names):
    host = driver_hosts.host(major=major)
    fabric_manager = packages_of(driver_hosts.request(version=version, fabric_manager=True), host).requested_parts()[-1]
    assert [fabric_manager["name"], fabric_manager["other"]] == names


@pytest.mark.parametrize(("installed", "asked"), [([], True), (["nvidia-fabric-manager"], False)])
def test_a_fabric_manager_that_is_missing_is_asked_for_although_the_driver_is_installed(installed, asked):
    inputs = driver_hosts.request(version="580.82.07", fabric_manager=True)
    work = driver_work(inputs, driver_hosts.host(driver=driver_hosts.installed("580.82.07", tuple(installed))))
    fabric_manager = {"name": "nvidia-fabric-manager", "other": "nvidia-fabricmanager", "version": "580.82.07"}
    assert any(fabric_manager in check.packages for check in work.checks) is asked


def test_a_distribution_names_its_compiled_open_module_like_nvidia():
    """kmod-nvidia-open-580.105.08-6.12.0-124.20.1 in DISTROS.md of https://github.com/NVIDIA/yum-packaging-precompiled-kmod"""
    names = named("9", "580.82.07", build="precompiled", module="open")
    assert names[0] == "kmod-nvidia-open-580.82.07-5.14.0-427.18.1"


@pytest.mark.parametrize(
    ("version", "inputs", "installed", "stay", "leave"),
    [
        ("580.82.07", {}, ["libnvidia-nscq-535"], ["libnvidia-nscq"], ["libnvidia-nscq-535"]),
        ("550.54.15", {}, ["libnvidia-nscq-535", "nvidia-imex-535"], ["libnvidia-nscq-550", "nvidia-imex-550"], ["libnvidia-nscq-535", "nvidia-imex-535"]),
        ("580.95.05", {}, ["libnvidia-nscq", "libnvsdm"], ["libnvidia-nscq", "libnvsdm"], []),
        ("580.82.07", {"module": "open"}, ["nvidia-open"], ["nvidia-open"], []),
        ("580.82.07", {}, ["nvidia-open"], [], ["nvidia-open"]),
        ("580.82.07", {"dcgm_version": "4.5.2", "fabric_manager": True}, [], ["libnvidia-nscq"], []),
        ("440.118.02", {"dcgm_version": "2.0.15", "fabric_manager": True}, ["libnvidia-nscq-450"], [], ["libnvidia-nscq-450"]),
        ("580.82.07", {"dcgm_version": "4.5.2"}, [], [], []),
        ("580.82.07", {"fabric_manager": True}, [], [], []),
    ],
)  # fmt: skip
def test_what_is_of_the_drivers_version_follows_it(version, inputs, installed, stay, leave):
    host = driver_hosts.host(driver=driver_hosts.installed("535.104.05", tuple(installed)))
    work = driver_work(driver_hosts.request(version=version, upgrade_allowed=True, **inputs), host)
    (transaction,) = work.transactions
    for packages in (work.checks[0].packages, transaction.packages, work.installation.packages):
        companions = [part for part in packages if isinstance(part, dict) and COMPANION.fullmatch(part["name"])]
        assert companions == [{"name": name, "version": version} for name in stay]
    assert [name for name in transaction.leaving if name in installed] == leave


def test_nscq_that_is_missing_is_asked_for_although_the_driver_is_installed():
    inputs = driver_hosts.request(version="580.82.07", fabric_manager=True, dcgm_version="4.5.2")
    for more, asked in ([], True), (["libnvidia-nscq"], False):
        driver = driver_hosts.installed("580.82.07", ("nvidia-fabricmanager", *more))
        work = driver_work(inputs, driver_hosts.host(driver=driver, dcgm_packages=DCGM, records={"dcgm_before": []}))
        assert bool(work.transactions) is asked


DCGM = {"datacenter-gpu-manager-4-core": ["1:4.5.2-1"], "datacenter-gpu-manager-4-cuda13": ["1:4.5.2-1"]}


@pytest.mark.parametrize(
    ("driver", "dcgm", "names"),
    [
        ("580.82.07", "4.5.2", ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda13"]),
        ("580.95.05", "4.5.2", ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda12"]),  # a P100
        ("535.104.05", "4.5.2", ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda12"]),
        ("470.82.01", "4.5.2", ["datacenter-gpu-manager-4-core", "datacenter-gpu-manager-4-cuda11"]),
        ("535.104.05", "3.3.9", ["datacenter-gpu-manager"]),
    ],
)
def test_dcgm_is_requested_in_its_version_for_the_cuda_of_the_driver(driver, dcgm, names):
    turing = driver != "580.95.05"
    inputs = driver_hosts.request(version=driver, dcgm_version=dcgm, open_supported=turing)
    work = driver_work(inputs, driver_hosts.host())
    dcgm_parts = [{"name": name, "version": dcgm} for name in names]
    assert [part for part in work.checks[0].packages if part in dcgm_parts] == dcgm_parts
    assert [part for part in work.transactions[0].packages if part in dcgm_parts] == dcgm_parts
    assert [part for part in work.installation.packages if part in dcgm_parts] == dcgm_parts
    assert "nvidia-dcgm" in work.daemons


@pytest.mark.parametrize(
    ("version", "packages", "before", "changes", "leaving"),
    [
        ("4.5.2", DCGM, [], False, []),
        ("4.5.2", {}, None, True, []),
        ("4.5.3", DCGM, [], True, []),
        ("", DCGM, [], True, list(DCGM)),
        ("", DCGM, None, False, []),  # the site's own
        ("", DCGM, list(DCGM), False, []),
        ("4.5.2", {**DCGM, "datacenter-gpu-manager-4-cuda12": ["1:4.5.2-1"]}, [], True, ["datacenter-gpu-manager-4-cuda12"]),
        ("4.5.2", {"datacenter-gpu-manager": ["1:3.3.9-1"]}, [], True, ["datacenter-gpu-manager"]),
    ],
)  # fmt: skip
def test_dcgm_changes_beside_its_driver_and_only_what_this_role_installed_leaves(
    version, packages, before, changes, leaving
):
    host = driver_hosts.host(
        driver=driver_hosts.installed("580.82.07"), dcgm_packages=packages, records={"dcgm_before": before}
    )
    work = driver_work(driver_hosts.request(version="580.82.07", dcgm_version=version), host)
    assert (work.lifts_locks, bool(work.transactions), work.requires_idle_gpus) == (changes, changes, False)
    assert [name for name in work.installation.leaving if name in packages] == leaving
    removal_work = driver_work(driver_hosts.request(state="absent", version="580.82.07", dcgm_version=version), host)
    own_packages = [] if before is None else [name for name in packages if name not in before]
    assert [name for name in removal_work.removal.packages if name in packages] == own_packages


@pytest.mark.parametrize("kernel", ["kernel-core", "kernel"])
def test_headers_never_come_with_another_kernel(kernel):
    patterns = packages("9", "535.261.03").excluded
    assert any(fnmatch.fnmatchcase(kernel, pattern) for pattern in patterns)
    assert not any(fnmatch.fnmatchcase("kernel-devel", pattern) for pattern in patterns)
