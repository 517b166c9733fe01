"""The set of Debian packages on the node that made one: apt, as a host or an engine image has it, reads and fetches from what the mirror serves."""

from __future__ import annotations

import json

import pytest

testinfra_hosts = ["ansible://mirror-debian12"]
PLACE = "/srv/deeplearning-mirror/deb/driver"
LIST = "/root/set.list"
APT = f"apt-get -o Dir::Etc::SourceList={LIST} -o Dir::Etc::SourceParts=/dev/null"
# What Debian's package requires, down to the last: demo/gpu/debian.yml.
REQUIRED = {"nvidia-smi", "nvidia-alternative", "libnvidia-ml1", "glx-alternative-nvidia"}


@pytest.fixture
def source(host):
    """The mirror as a source of apt, verified with the source's own key."""
    host.check_output("cp /srv/packages/RPM-GPG-KEY-fixtures /srv/key.asc")
    host.check_output(f"echo 'deb [signed-by=/srv/key.asc] http://127.0.0.1:8900/deb/driver /' > {LIST}")
    return host.check_output(f"{APT} update")


def test_the_record_names_every_file_that_is_served(host):
    record = json.loads(host.file(f"{PLACE}/set.json").content_string)
    assert {name.partition("_")[0] for name in record["packages"] if name.endswith(".deb")} >= REQUIRED
    for name, sha256 in record["packages"].items():
        assert host.file(f"{PLACE}/{name}").sha256sum == sha256
    assert sorted(host.file(PLACE).listdir()) == sorted([*record["packages"], "set.json"])


def test_the_index_is_the_sources_own(host):
    assert host.file(f"{PLACE}/InRelease").content == host.file("/srv/packages/InRelease").content


def test_a_host_fetches_them_from_the_mirror_alone(host, source):
    assert "http://127.0.0.1:8900/deb/driver" in source
    run = host.run(f"{APT} --yes --no-install-recommends --download-only install nvidia-smi")
    assert run.rc == 0, run.stderr
    fetched = host.check_output("ls /var/cache/apt/archives")
    assert all(f"{name}_" in fetched for name in REQUIRED), fetched


def test_apt_of_the_host_knows_nothing_of_the_sources(host):
    """Its lists, key rings and sources are those of the node."""
    completed = host.run("grep -rl 127.0.0.1:8001 /etc/apt /var/lib/apt")
    assert completed.stdout == ""
