"""The set of packages on the node that made one: dnf, as a host has it, reads and installs from what the mirror serves."""

import json

testinfra_hosts = ["ansible://mirror-el9"]  # RHEL 7 has no dnf
PLACE = "/srv/deeplearning-mirror/rpm/el9"
DNF = "dnf --assumeno --repofrompath=set,http://127.0.0.1:8900/rpm/el9 --repo=set"
# What the packages of branch 535 require, by NVIDIA's specs: demo/gpu/specs.
REQUIRED = {
    "dkms",
    "nvidia-kmod-common",
    "nvidia-driver",
    "nvidia-driver-cuda-libs",
    "nvidia-persistenced",
    "ocl-icd",
    "opencl-filesystem",
}
NAMED = {"nvidia-driver-cuda", "nvidia-driver-NVML", "kmod-nvidia-latest-dkms", "cuda-toolkit-12-2"}


def packages(host) -> dict[str, str]:
    listed = host.check_output(f"{DNF} --quiet repoquery --queryformat '%{{name}} %{{version}}'")
    return dict(line.split() for line in listed.splitlines())


def test_dnf_finds_the_named_packages_and_what_they_require(host):
    versions = packages(host)
    assert set(versions) >= NAMED | REQUIRED
    assert {version for name, version in versions.items() if name.startswith(("nvidia-driver", "kmod-nvidia"))} == {
        "535.104.05"
    }
    assert "kmod-nvidia-open-dkms" not in versions


def test_the_record_names_every_file_that_is_served(host):
    record = json.loads(host.file(f"{PLACE}/set.json").content_string)
    for name, sha256 in record["packages"].items():
        assert host.file(f"{PLACE}/{name}").sha256sum == sha256
    assert sorted(host.file(PLACE).listdir()) == sorted([*record["packages"], "repodata", "set.json"])


def test_a_host_can_install_them_from_the_mirror_alone(host):
    run = host.run(
        f"{DNF} --setopt=set.gpgcheck=1 --setopt=set.gpgkey=file:///srv/packages/RPM-GPG-KEY-fixtures install {' '.join(sorted(NAMED))}"
    )
    output = run.stdout + run.stderr
    assert "Operation aborted" in output, output
    assert all(f" {name} " in output for name in NAMED), output
