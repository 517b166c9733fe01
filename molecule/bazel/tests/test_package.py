"""The node with a package of the signed repository."""

testinfra_hosts = ["ansible://bazel-el9"]
PLACE = "/opt/bazel/0.26.1"


def test_a_user_runs_it(host):
    command = f"su - builder -c '{PLACE}/bin/bazel --batch version'"
    assert "Build label: 0.26.1" in host.check_output(command)


def test_it_is_the_packages_executable(host):
    assert host.check_output("rpm -qf --queryformat '%{NAME}-%{VERSION}' /usr/bin/bazel") == "bazel-0.26.1"
    assert host.file(f"{PLACE}/bin/bazel").sha256sum == host.file("/usr/bin/bazel").sha256sum


def test_an_update_of_the_host_does_not_meet_the_repository(host):
    assert "deeplearning" not in host.check_output("dnf repolist")
    assert "deeplearning-bazel" in host.check_output("dnf repolist --all")
