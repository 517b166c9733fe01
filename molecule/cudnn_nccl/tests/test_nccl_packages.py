import pytest

testinfra_hosts = ["ansible://cudnn_nccl-el9"]


def test_the_linker_leads_to_the_version(host):
    path = host.check_output("ldconfig -p | awk '$1 == \"libnccl.so.2\" {print $NF}'")
    assert host.check_output(f"readlink -f {path}").endswith("libnccl.so.2.16.5")


def test_the_library_loads(host):
    assert host.run("python3 -c 'import ctypes; ctypes.CDLL(\"libnccl.so.2\").ncclCommCount'").succeeded


def test_the_header_says_the_same(host):
    assert "#define NCCL_VERSION_CODE 21605" in host.file("/usr/include/nccl.h").content_string


@pytest.mark.parametrize("package", ["nvidia-driver-cuda", "cuda-drivers", "cuda-toolkit-12-2", "kernel"])
def test_nothing_else_came_along(host, package):
    assert not host.run(f"rpm -q {package}").succeeded


def test_an_update_of_the_host_does_not_meet_the_repository(host):
    assert "deeplearning" not in host.check_output("dnf repolist")
    assert "deeplearning-nccl" in host.check_output("dnf repolist --all")
