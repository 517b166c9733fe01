"""The GPU layer of a planned host from a repository to the other side of an air gap: real dnf, rpmkeys, createrepo_c and gpg, over real HTTP.

The repository has the fixtures of NVIDIA's packages.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpu_layer_hosts
import pytest
import yaml
from faulty_server import serving_files
from host_modules import run
from mirror_process import running

from hadoop_dl.cli import mirror_site
from hadoop_dl_dev.demo import gpu_packages, signed_packages

REPOSITORY = Path(__file__).resolve().parents[2]
PINS = {
    "nvidia_driver_version": "535.104.05",
    "nvidia_driver_module": "proprietary",
    "nvidia_license_accepted": True,
    "cuda_versions": ["12.2"],
    "cuda_package_versions": {"12.2": "12.2.140"},
    "cudnn_versions": [{"version": "8.9.7.29", "cuda": "12.2"}],
    "nccl_versions": [{"version": "2.18.5", "cuda": "12.2"}],
}
COMING = {
    *("nvidia-driver-cuda-535.104.05-1.el9.x86_64.rpm", "kmod-nvidia-latest-dkms-535.104.05-1.el9.x86_64.rpm"),
    *("libcudnn8-devel-8.9.7.29-1.cuda12.2.x86_64.rpm", "libnccl-2.18.5-1+cuda12.2.x86_64.rpm"),
    *("cuda-toolkit-12-2-12.2.140-1.x86_64.rpm", "dkms-3.1.8-1.el9.noarch.rpm"),
}
pytestmark = pytest.mark.skipif(
    subprocess.run([mirror_site.PYTHON, "-c", "import dnf"], capture_output=True, check=False).returncode != 0,
    reason=f"dnf reads the repositories, and {mirror_site.PYTHON} has no python3-dnf",
)


@pytest.fixture(scope="module")
def packages() -> Path:
    return gpu_packages.ensure("el9")


@pytest.fixture
def address(packages: Path) -> Iterator[str]:
    """Where NVIDIA's packages are served."""
    with serving_files(packages) as address:
        yield address


class Site:
    """The machine with internet access: an inventory, a plan from the other side, and a key that signs bundles."""

    def __init__(self, directory: Path, packages: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.bundle, self.root = directory, directory / "mysite.bundle", directory / "carried"
        home = signed_packages.signing_key(directory / "gpg")
        signed_packages.export_key(home, directory / "bundle.asc")
        monkeypatch.setenv("GNUPGHOME", str(home))
        groups = {"build_hosts": "data1", "mirror_host": "mirror1"}
        inventory = {"all": {"children": {group: {"hosts": {name: {}}} for group, name in groups.items()}}}
        (directory / "site.yml").write_text(yaml.safe_dump(inventory))
        self.variables = {
            "mirror_gpu_repositories": {"el9": address},
            "mirror_gpu_key": str(packages / "RPM-GPG-KEY-fixtures"),
            "mirror_bundle_key": str(directory / "bundle.asc"),
        }
        node = gpu_layer_hosts.el8()
        node["os"] = {"id": "rhel", "family": "RedHat", "short": "el9", "name": "RHEL 9.4", "major": "9"}
        plan = gpu_layer_hosts.made(gpu_layer_hosts.host(node, groups=("build_hosts",), **PINS))
        assert plan.problems == []
        self.plan = plan.as_json()

    def fetch(self, **variables: Any) -> tuple[int, str]:
        (self.directory / "plan.json").write_text(json.dumps({**self.plan, "hosts": {"data1": {}, "mirror1": {}}}))
        site = str(self.directory / "site.yml")
        options = ["--plan", "plan.json", "--root", str(self.root), "--bundle", str(self.bundle)]
        values = json.dumps({**self.variables, **variables})
        command = [sys.executable, "-m", "hadoop_dl.cli.mirror", "fetch", "-i", site, "-e", values, *options]
        completed = subprocess.run(command, cwd=self.directory, capture_output=True, text=True, check=False)
        return completed.returncode, completed.stdout + completed.stderr


@pytest.fixture
def site(tmp_path: Path, packages: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, packages, address, monkeypatch)


def test_the_gpu_layer_crosses_the_gap_and_is_a_repository_there(site, tmp_path):
    status, output = site.fetch()
    assert status == 0, output
    assert 'nvidia_driver_repository_url: "{{ mirror_url }}/rpm/gpu-el9"' in output
    # Nothing of the first side is needed any more.
    key, mirror = (tmp_path / "bundle.asc").read_text(), tmp_path / "served" / "mirror"
    mirror.parent.mkdir()
    arguments = {"bundle": str(site.bundle), "root": str(mirror), "key": key, "artifacts": []}
    result = run("mirror_artifacts", state="unpacked", **arguments)
    assert result["changed"] is True
    names = {path.name for path in (mirror / "rpm/gpu-el9").glob("*.rpm")}
    assert names >= COMING
    assert not any("-550." in name or "-nvidia-open" in name for name in names)
    with running(sys.executable, mirror) as server:
        served = f"http://127.0.0.1:{server.port}/rpm/gpu-el9"
        site.root, site.bundle = tmp_path / "again", tmp_path / "again.bundle"
        status, output = site.fetch(mirror_gpu_repositories={"el9": served})
    assert status == 0, output
    assert {path.name for path in (site.root / "rpm/gpu-el9").glob("*.rpm")} == names


def test_a_package_that_no_repository_has_and_one_that_another_key_signs_leave_no_bundle(site, packages, address):
    status, output = site.fetch(mirror_gpu_key=str(packages / "RPM-GPG-KEY-other"))
    assert status == 1
    assert "must be signed with the key of its repository" in output
    site.plan["gpu_packages"]["el9"]["packages"].append("nvidia-driver-cuda-535.1")
    status, output = site.fetch()
    assert status == 1
    assert f"The repositories of the set gpu-el9 ({address}) must have its packages, but not" in output
    assert "nvidia-driver-cuda-535.1 (there are 535.104.05, 550.54.15, 580.82.07). Request a version" in output
    assert "mysite.bundle was not written" in output
    assert not site.bundle.exists()
    assert not (site.root / "rpm/gpu-el9").exists()
