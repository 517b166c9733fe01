import json

import pytest

testinfra_hosts = ["ansible://cuda-el7"]
CUDNN, NCCL = "/usr/local/cuda-8.0/cudnn-6.0.21", "/usr/local/cuda-12.2/nccl-2.18.5"
both = pytest.mark.parametrize("place", [CUDNN, NCCL])


@pytest.mark.parametrize(("place", "soname"), [(CUDNN, "libcudnn.so.6"), (NCCL, "libnccl.so.2")])
def test_the_linker_finds_the_archives_library(host, place, soname):
    assert f"=> {place}/lib64/{soname}" in host.check_output("ldconfig -p")


def test_newer_archives_say_lib(host):
    assert host.file(f"{NCCL}/lib64").linked_to == f"{NCCL}/lib"


@pytest.mark.parametrize("call", ["libcudnn.so.6 cudnnGetVersion()", "libnccl.so.2 ncclCommCount"])
def test_the_library_loads(host, call):
    soname, function = call.split()
    answer = host.check_output(f"python2.7 -c 'import ctypes; print(ctypes.CDLL(\"{soname}\").{function})'")
    assert "cudnn" not in call or int(answer) == 6021


@pytest.mark.parametrize(
    ("header", "line"),
    [
        (f"{CUDNN}/include/cudnn.h", "#define CUDNN_PATCHLEVEL 21"),
        (f"{NCCL}/include/nccl.h", "#define NCCL_VERSION_CODE 21805"),
    ],
)
def test_the_header_is_beside_its_cuda(host, header, line):
    assert line in host.file(header).content_string


@both
def test_the_files_are_roots(host, place):
    assert host.check_output(f"find {place} ! -user root -o ! -group root -o -perm -o=w ! -type l") == ""


def test_no_archive_is_left(host):
    assert host.file("/opt/deeplearning/downloads").listdir() == []


@pytest.mark.parametrize("package", ["libcudnn6", "libnccl"])
def test_no_package_was_used(host, package):
    assert not host.run(f"rpm -q {package}").succeeded


@pytest.mark.parametrize(
    ("library", "place", "item"),
    [("cudnn", CUDNN, {"cuda": "8.0", "version": "6.0.21"}), ("nccl", NCCL, {"cuda": "12.2", "version": "2.18.5"})],
)
def test_the_record_names_its_place(host, library, place, item):
    record = json.loads(host.file(f"/opt/deeplearning/etc/gpu-check-{library}.json").content_string)
    assert record == {library: {item["version"]: place}, f"{library}_source": "tarball", f"{library}_items": [item]}
