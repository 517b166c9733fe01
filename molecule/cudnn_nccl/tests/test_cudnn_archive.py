testinfra_hosts = ["ansible://cudnn_nccl-el7"]
PLACE = "/usr/local/cuda-8.0/cudnn-6.0.21"


def test_the_linker_leads_to_the_archives_library(host):
    assert f"=> {PLACE}/lib64/libcudnn.so.6" in host.check_output("ldconfig -p")


def test_the_library_loads_and_answers_its_version(host):
    answer = host.check_output("python2.7 -c 'import ctypes; print(ctypes.CDLL(\"libcudnn.so.6\").cudnnGetVersion())'")
    assert int(answer) == 6021


def test_the_header_lies_beside_its_cuda(host):
    assert "#define CUDNN_PATCHLEVEL 21" in host.file(f"{PLACE}/include/cudnn.h").content_string


def test_it_is_marked_with_the_sha256_of_its_archive(host):
    assert host.file(f"{PLACE}/.sha256").content_string.strip() == host.file("/srv/cudnn-6.0.21.tgz").sha256sum


def test_the_files_are_roots(host):
    assert host.check_output(f"find {PLACE} ! -user root -o ! -group root -o -perm -o=w ! -type l") == ""


def test_no_archive_is_left(host):
    assert host.file("/opt/deeplearning/downloads").listdir() == []


def test_no_package_was_used(host):
    assert not host.run("rpm -q libcudnn6").succeeded
