"""The driver's transactions, solved by dnf's own solver over the dependencies of NVIDIA's packages, from a mirror that was filled by docs/operate/gpu.md."""

import functools
import importlib
import itertools
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import driver_hosts
import gpu_host_info
import pytest
import yaml

from hadoop_dl.data.driver_work import driver_work

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASES = yaml.safe_load(Path(__file__).with_name("nvidia_rpms.yml").read_text(encoding="utf-8"))["releases"]
Rpm = tuple[str, str]  # name and version, such as 535.104.05


def debians() -> Any:
    """python3-solv of Debian, for its own Python; no index has it."""
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        return importlib.import_module("solv")
    except ImportError:
        return None
    finally:
        sys.path.remove("/usr/lib/python3/dist-packages")


solv = debians()
pytestmark = pytest.mark.skipif(
    solv is None, reason="libsolv solves the transactions, and Debian's python3-solv is not installed for this Python"
)


def rpms(major: str, version: str) -> dict[str, Any]:
    """The packages of a release; a version without a public spec is as the last branch that has one."""
    rows = [row for row in RELEASES if row["system"] == major]
    release = next((row for row in rows if version in row["versions"]), rows[-1])
    content = json.loads(re.sub(r"\bV\b", version, json.dumps(release)))
    return {name: {"evr": content["evr"], **entry} for name, entry in content["packages"].items()}


NAMED = {"7": ["470.82.01", "535.104.05"], "9": ["535.104.05", "550.54.15", "560.35.03", "570.86.15", "580.82.07"]}
REPOSITORIES = {
    major: {(name, version) for version in versions for name in rpms(major, version)}
    for major, versions in NAMED.items()
}


class System:
    """A host with these packages of NVIDIA's and a repository with others."""

    def __init__(self, major: str, repository: set[Rpm], installed: set[Rpm]) -> None:
        self.pool = solv.Pool()
        self.pool.setdisttype(solv.Pool.DISTTYPE_RPM)
        self.pool.setarch("x86_64")
        self.host, self.repository = self.pool.add_repo("host"), self.pool.add_repo("repository")
        self.pool.installed = self.host
        releases = {version: rpms(major, version) for version in NAMED[major]}
        for repo, content in ((self.host, installed), (self.repository, repository)):
            for name, version in sorted(content):
                self.add(repo, name, releases[version][name])
        self.pool.createwhatprovides()

    def dependency(self, text: str) -> Any:
        name, _, relation = text.partition(" ")
        sign, _, version = relation.partition(" ")
        flags = sum(flag for char, flag in (("<", solv.REL_LT), ("=", solv.REL_EQ), (">", solv.REL_GT)) if char in sign)
        return self.pool.Dep(name).Rel(flags, self.pool.Dep(version)) if sign else self.pool.Dep(name)

    def add(self, where: Any, name: str, found: Any) -> None:
        package = where.add_solvable()
        package.name, package.evr, package.arch = name, found["evr"], "x86_64"
        own_capabilities = [f"{capability} = {found['evr']}" for capability in (name, f"{name}(x86-64)")]
        for kind in ("requires", "provides", "conflicts", "obsoletes"):
            for text in [*found.get(kind, []), *(own_capabilities if kind == "provides" else [])]:
                getattr(package, f"add_{kind}")(self.dependency(text))

    def solve(self, names: list[str], leaving: Sequence[str] = ()) -> set[Rpm]:
        """What the host has of NVIDIA's afterwards. names: as dnf and yum are given them, NAME-VERSION. Nothing else may leave."""
        jobs = []
        for repo, package_names, action in (
            (self.repository, names, solv.Job.SOLVER_INSTALL),
            (self.host, leaving, solv.Job.SOLVER_ERASE),
        ):
            for name in package_names:
                ids = [item.id for item in repo.solvables if name in (item.name, "-".join(rpm(item)))]
                assert ids, f"there is no {name}"
                jobs.append(self.pool.Job(action | solv.Job.SOLVER_SOLVABLE_ONE_OF, self.pool.towhatprovides(ids)))
        solver = self.pool.Solver()
        solver.set_flag(solv.Solver.SOLVER_FLAG_ALLOW_DOWNGRADE, True)
        problems = [str(problem) for problem in solver.solve(jobs)]
        assert problems == []
        transaction = solver.transaction()
        return {rpm(item) for item in transaction.newsolvables() + transaction.keptsolvables()}


def rpm(package: Any) -> Rpm:
    return package.name, re.sub(r"^\d+:|-[^-]*$", "", package.evr)


@functools.cache
def mirror(major: str, version: str) -> frozenset[Rpm]:
    """What the command in docs/operate/gpu_packages.md downloads: each package that it names, with what dnf or yum would install for it on an empty system."""
    page = (REPOSITORY / "docs" / "operate" / "gpu_packages.md").read_text(encoding="utf-8").replace("\\\n", "")
    heading = {"7": "RHEL 7", "9": "RHEL 8 and 9"}[major]
    sample = "580.82.07" if major == "9" and version >= "560" else "535.104.05"
    commands = page.partition(f"\n## {heading}\n")[2].partition("\n##")[0].splitlines()
    (command,) = [row for row in commands if re.match(" +(yumdownloader|dnf download) ", row) and f"-{sample} " in row]
    names = [word.replace(sample, version) for word in command.split() if word.endswith(f"-{sample}")]
    assert names
    return frozenset().union(*(System(major, REPOSITORIES[major], set()).solve([name]) for name in names))


def changed(
    major: str, version: str, repository: set[Rpm], installed: set[Rpm] = frozenset(), **inputs: Any
) -> set[Rpm]:  # type: ignore[assignment]
    """What the host has after the role's transaction."""
    kernel = driver_hosts.OLD
    host = driver_hosts.host(
        major=major,
        kernels={"needed": [kernel], "headers": {kernel: "/usr/src"}},
        driver=driver_hosts.installed(
            max((number for _, number in installed), default=None),
            {name: [f"3:{number}-1.el{major}"] for name, number in installed},
        ),
    )
    installation = driver_work(driver_hosts.request(version=version, upgrade_allowed=True, **inputs), host).installation
    names = [f"{part['name']}-{part['version']}" for part in installation.packages if isinstance(part, dict)]
    solution = System(major, repository, installed).solve(names, installation.leaving)
    assert major != "7" or {"-".join(pair) for pair in solution} <= set(names)  # yum downgrades only what is named
    return solution


INSTALLED = [(major, version, "proprietary") for major, versions in NAMED.items() for version in versions]
INSTALLED += [("9", version, "open") for version in NAMED["9"] if version >= "560"]
CHANGES = [(major, old, new) for major, versions in NAMED.items() for old, new in itertools.permutations(versions, 2)]


@pytest.mark.parametrize(("major", "version", "module"), INSTALLED)
def test_a_driver_is_installed_from_its_mirror_and_removed(major, version, module):
    installed_rpms = changed(major, version, set(mirror(major, version)), module=module)
    kmod = {"proprietary": "kmod-nvidia-latest-dkms", "open": "kmod-nvidia-open-dkms"}[module]
    names = {name.replace("-latest-dkms", "") for name, _ in installed_rpms}
    assert [name for name, _ in installed_rpms if name.startswith("kmod-")] == [kmod]
    assert any(re.search("-ml$|-NVML$", name) for name in names)  # nvidia-smi opens it
    assert {"nvidia-driver-cuda", "nvidia-driver-cuda-libs", "nvidia-modprobe", "nvidia-persistenced"} <= names
    assert all(gpu_host_info.DRIVER_PACKAGES.match(name) for name, _ in installed_rpms)  # locked, and removed
    assert System(major, set(), installed_rpms).solve([], sorted(name for name, _ in installed_rpms)) == set()


@pytest.mark.parametrize(("major", "old", "new"), CHANGES)
@pytest.mark.parametrize("whole", [False, True], ids=["its mirror", "NVIDIA's repository"])
def test_another_branch_comes_whole(major, old, new, whole):
    """All of the old one goes: in one transaction, from the mirror of both or from the whole repository."""
    before = changed(major, old, set(mirror(major, old)))
    after = changed(major, new, REPOSITORIES[major] if whole else {*mirror(major, old), *mirror(major, new)}, before)
    assert {version for _, version in after} == {new}
    assert after >= changed(major, new, set(mirror(major, new)))


def test_the_other_module_takes_the_place_of_the_one():
    repository = set(mirror("9", "580.82.07"))
    installed_rpms = changed("9", "580.82.07", repository)
    fresh = changed("9", "580.82.07", repository, module="open")
    assert changed("9", "580.82.07", repository, installed_rpms, module="open") == fresh
