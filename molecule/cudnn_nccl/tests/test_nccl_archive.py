testinfra_hosts = ["ansible://cudnn_nccl-el7"]
PLACE = "/usr/local/cuda-12.2/nccl-2.18.5"


def test_the_linker_leads_to_the_archives_library(host):
    assert f"=> {PLACE}/lib64/libnccl.so.2" in host.check_output("ldconfig -p")


def test_newer_archives_say_lib(host):
    assert host.file(f"{PLACE}/lib64").linked_to == f"{PLACE}/lib"


def test_the_library_loads(host):
    assert host.run("python2.7 -c 'import ctypes; ctypes.CDLL(\"libnccl.so.2\").ncclCommCount'").succeeded


def test_the_header_lies_beside_its_cuda(host):
    assert "#define NCCL_VERSION_CODE 21805" in host.file(f"{PLACE}/include/nccl.h").content_string


def test_it_is_marked_with_the_sha256_of_its_archive(host):
    assert host.file(f"{PLACE}/.sha256").content_string.strip() == host.file("/srv/nccl-2.18.5.tgz").sha256sum


def test_no_archive_is_left(host):
    assert host.file("/opt/deeplearning/downloads").listdir() == []


def test_no_package_was_used(host):
    assert not host.run("rpm -q libnccl").succeeded
