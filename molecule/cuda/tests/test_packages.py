import pytest

testinfra_hosts = ["ansible://cuda-el9"]


@pytest.mark.parametrize(
    ("soname", "version"), [("libcudnn.so.6", "6.0.20"), ("libcudnn.so.8", "8.9.7.29"), ("libnccl.so.2", "2.16.5")]
)
def test_the_linker_finds_the_version(host, soname, version):
    path = host.check_output(f"ldconfig -p | awk '$1 == \"{soname}\" {{print $NF}}'")
    assert host.check_output(f"readlink -f {path}").endswith(f"{soname.rpartition('.')[0]}.{version}")


@pytest.mark.parametrize(("soname", "number"), [("libcudnn.so.6", 6020), ("libcudnn.so.8", 8907)])
def test_cudnn_loads_and_answers_its_version(host, soname, number):
    answer = host.check_output(f"python3 -c 'import ctypes; print(ctypes.CDLL(\"{soname}\").cudnnGetVersion())'")
    assert int(answer) == number


def test_nccl_loads(host):
    assert host.run("python3 -c 'import ctypes; ctypes.CDLL(\"libnccl.so.2\").ncclCommCount'").succeeded


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("cudnn.h", "CUDNN_PATCHLEVEL 20"),
        ("cudnn_version.h", "CUDNN_PATCHLEVEL 7"),
        ("nccl.h", "NCCL_VERSION_CODE 21605"),
    ],
)
def test_the_headers_are_side_by_side(host, header, line):
    assert f"#define {line}" in host.file(f"/usr/include/{header}").content_string


def test_an_update_of_the_host_does_not_meet_the_repositories(host):
    assert "deeplearning" not in host.check_output("dnf repolist")
    disabled = host.check_output("dnf repolist --all")
    for role in ("cuda", "cudnn", "nccl"):
        assert f"deeplearning-{role}" in disabled
