import pytest

testinfra_hosts = ["ansible://cudnn_nccl-el9"]


@pytest.mark.parametrize(("soname", "version"), [("libcudnn.so.6", "6.0.20"), ("libcudnn.so.8", "8.9.7.29")])
def test_the_linker_leads_to_the_version(host, soname, version):
    path = host.check_output(f"ldconfig -p | awk '$1 == \"{soname}\" {{print $NF}}'")
    assert host.check_output(f"readlink -f {path}").endswith(f"libcudnn.so.{version}")


@pytest.mark.parametrize(("soname", "number"), [("libcudnn.so.6", 6020), ("libcudnn.so.8", 8907)])
def test_the_library_loads_and_answers_its_version(host, soname, number):
    answer = host.check_output(f"python3 -c 'import ctypes; print(ctypes.CDLL(\"{soname}\").cudnnGetVersion())'")
    assert int(answer) == number


@pytest.mark.parametrize(("header", "patch"), [("cudnn.h", "20"), ("cudnn_version.h", "7")])
def test_the_headers_lie_side_by_side(host, header, patch):
    assert f"#define CUDNN_PATCHLEVEL {patch}" in host.file(f"/usr/include/{header}").content_string


@pytest.mark.parametrize("package", ["nvidia-driver-cuda", "cuda-drivers", "cuda-toolkit-8-0", "kernel"])
def test_nothing_else_came_along(host, package):
    assert not host.run(f"rpm -q {package}").succeeded


def test_an_update_of_the_host_does_not_meet_the_repository(host):
    assert "deeplearning" not in host.check_output("dnf repolist")
    assert "deeplearning-cudnn" in host.check_output("dnf repolist --all")
