import pytest

testinfra_hosts = ["ansible://cuda-el9"]


@pytest.mark.parametrize("version", ["8.0", "12.2"])
def test_toolkits_are_side_by_side(host, version):
    assert f"release {version}" in host.check_output(f"/usr/local/cuda-{version}/bin/nvcc --version")


def test_a_login_shell_finds_the_default_nvcc(host):
    assert host.check_output("bash -lc 'command -v nvcc; readlink /usr/local/cuda'").split() == [
        "/usr/local/cuda/bin/nvcc",
        "cuda-12.2",
    ]


@pytest.mark.parametrize("library", ["libcudart.so.8.0", "libcupti.so.8.0", "libcudart.so.12.2"])
def test_the_linker_finds(host, library):
    assert library in host.check_output("ldconfig -p")


@pytest.mark.parametrize("package", ["nvidia-driver-cuda", "cuda-drivers", "kmod-nvidia-latest-dkms", "kernel"])
def test_no_driver_came_along(host, package):
    assert not host.run(f"rpm -q {package}").succeeded
