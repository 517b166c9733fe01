"""The node with three executables: a user without root builds with each of them, without a network."""

import pytest
from offline_build import OFFLINE, OWN_RULES, build

testinfra_hosts = ["ansible://bazel-el7"]
VERSIONS = ["0.26.1", "0.28.1", "2.1.0"]
RULES = {"2.1.0": OWN_RULES}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_user_builds_offline(host, version):
    bazel = f"/opt/bazel/{version}/bin/bazel --batch --output_user_root=/home/builder/{version}"
    build(host, bazel, "python2.7", RULES.get(version, ""))


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_the_version(host, version):
    bazel = f"/opt/bazel/{version}/bin/bazel --batch --output_user_root=/home/builder/{version}"
    assert f"Build label: {version}" in host.check_output(f"{OFFLINE} {bazel} version")


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_roots_and_everybody_runs_it(host, version):
    program = host.file(f"/opt/bazel/{version}/bin/bazel")
    assert (program.user, program.group, program.mode) == ("root", "root", 0o755)


def test_nothing_else_is_there(host):
    assert sorted(host.check_output("ls -A /opt/bazel").split()) == [".lock", *VERSIONS]
