"""What is asked of dnf and yum, and what their answers become: lib/hadoop_dl/hosts/os_packages.py, and the module that tidies."""

import os

import pytest
from ansible.module_utils.hadoop_dl_host import empty_directories

from hadoop_dl.hosts import os_packages
from hadoop_dl.hosts.os_packages import Package, Source

DNF = """Installed Packages
libcudnn8.x86_64                  8.9.7.29-1.cuda12.2           @deeplearning-cudnn
Available Packages
libcudnn8.x86_64                  8.9.6.50-1.cuda12.2           deeplearning-cudnn
libcudnn8.x86_64                  8.9.7.29-1.cuda12.2           deeplearning-cudnn
nvidia-driver-cuda.x86_64         3:535.104.05-1.el9            deeplearning-nvidia-driver
nvidia-driver-latest-dkms-cuda-libs.x86_64
                                  3:525.60.13-1.el7             deeplearning-nvidia-driver
"""
HERE = Source("dnf", "deeplearning-cudnn", "http://mirror01:8900/rpm/el9", "files/KEY", "/etc/pki/rpm-gpg/KEY")


def test_offers_of_dnf_are_read_also_where_it_breaks_a_long_line():
    assert os_packages.offers(DNF) == {
        "libcudnn8": ["8.9.7.29-1.cuda12.2", "8.9.6.50-1.cuda12.2"],
        "nvidia-driver-cuda": ["3:535.104.05-1.el9"],
        "nvidia-driver-latest-dkms-cuda-libs": ["3:525.60.13-1.el7"],
    }


@pytest.mark.parametrize(
    ("version", "offered", "is_it"),
    [
        ("535.104.05", "3:535.104.05-1.el9", True),
        ("535.104.05", "535.104.05-1~deb12u1", True),
        ("535.10", "3:535.104.05-1.el9", False),
        ("8.9.7.29-1.cuda12.2", "8.9.7.29-1.cuda12.2", True),
        ("8.9.7.29-1.cuda12.2", "8.9.7.29-1.cuda12.20", False),
        ("", "1-1", True),
    ],
)
def test_a_version_is_offered_up_to_its_release_or_with_it(version, offered, is_it):
    assert Package("x", version).offered_in([offered]) is is_it


def test_a_package_is_named_with_its_version():
    assert Package("nvidia-smi", "535.261.03").spec == "nvidia-smi-535.261.03"
    assert Package("nvidia-modprobe").spec == "nvidia-modprobe"


def test_the_question_looks_behind_version_locks_and_into_the_disabled_repository():
    for manager in ("dnf", "yum"):
        argv = Source(manager, "deeplearning-cuda").ask([Package("a", "1"), Package("a", "2"), Package("b")])
        assert argv[0] == manager
        assert "--disableplugin=versionlock" in argv
        assert "--enablerepo=deeplearning-cuda" in argv
        assert argv[-2:] == ["a", "b"]


@pytest.mark.parametrize(("manager", "log"), [("dnf", "logdir=/t/log"), ("yum", "logfile=/t/yum.log")])
def test_a_trial_writes_into_its_directory_alone(manager, log):
    options = {"cachedir=/t/cache", "persistdir=/t/lib", log, f"reposdir={os_packages.REPOSITORY_FILES},/t"}
    argv = Source(manager, "deeplearning-x-plan", directory="/t").ask([Package("a")])
    assert options == {word.removeprefix("--setopt=") for word in argv if word.startswith("--setopt=")}
    assert not any(word.startswith("--setopt") for word in Source(manager).ask([Package("a")]))


def missing(wanted: Package, error: str = "") -> str:
    return os_packages.missing(HERE, [wanted], DNF, error, host="data1", title="cuDNN 8", remedy="set tarball")


def test_a_missing_version_is_told_with_those_that_are_there():
    assert missing(Package("libcudnn8", "8.9.6.50-1.cuda12.2")) == ""
    message = missing(Package("libcudnn8", "8.0.5.39-1.cuda11.0"), "Error: No matching\n Packages")
    assert message == (
        "cuDNN 8 needs the package libcudnn8-8.0.5.39-1.cuda11.0, but the repositories of data1 (http://mirror01:8900/rpm/el9) have: "
        "8.9.7.29-1.cuda12.2, 8.9.6.50-1.cuda12.2; Error: No matching Packages. Add this package to the mirror, or set tarball."
    )
    assert "have: no version of it" in missing(Package("libcudnn9"))


def test_missing_headers_name_the_kernel_and_offer_no_other_version():
    message = missing(Package("kernel-devel", "5.14.0-362.8.1.el9_3", "5.14.0-362.8.1.el9_3.x86_64"))
    version = "5.14.0-362.8.1.el9_3"
    assert f"The module for kernel {version}.x86_64 is compiled with exactly kernel-devel-{version}" in message
    assert message.endswith("Add this package to the mirror. The kernel was not touched.")


FABRIC = Package("nvidia-fabric-manager", "535.104.05", other="nvidia-fabricmanager")


@pytest.mark.parametrize("name", ["nvidia-fabric-manager", "nvidia-fabricmanager"])
def test_a_package_with_two_names_is_taken_by_the_one_that_is_offered(name):
    output = DNF + f"{name}.x86_64   3:535.104.05-1   deeplearning-nvidia-driver\n"
    assert os_packages.missing(HERE, [FABRIC], output, "", host="data1", title="Driver", remedy="wait") == ""
    assert os_packages.offered_names([FABRIC, Package("libcudnn8")], output) == [name, "libcudnn8"]
    assert HERE.ask([FABRIC])[-2:] == ["nvidia-fabric-manager", "nvidia-fabricmanager"]


def test_a_package_with_two_names_that_is_missing_is_told_with_both():
    assert "nvidia-fabric-manager-535.104.05 (or nvidia-fabricmanager)" in missing(FABRIC)


@pytest.mark.parametrize(
    ("least", "offered", "enough"),
    [
        ("3.1.8", ["3.1.8-1.el9"], True),
        ("3.1.8", ["3.0.13-1.el9", "3.2.1-1.el9"], True),
        ("3.1.8", ["3.1.0-2.el9"], False),
        ("3.1.8", ["0:3.1.10-1.el9"], True),
        ("3.1.8", [], False),
        ("", ["2.8.7-1.el7"], True),
    ],
)
def test_a_package_may_have_an_oldest_version(least, offered, enough):
    (dkms,) = os_packages.packages_of([{"name": "dkms", "least": least}])
    assert dkms.offered_in(offered) is enough
    assert dkms.spec == "dkms"


def test_a_package_that_is_too_old_everywhere_is_told_with_what_is_needed():
    message = missing(Package("libcudnn8", least="9.0"))
    assert "needs the package libcudnn8 (9.0 or later), but the repositories of data1" in message
    assert "have: 8.9.7.29-1.cuda12.2, 8.9.6.50-1.cuda12.2" in message


# What the managers print; the first line of each as seen, or as their sources have it.
WRONG_KEY = [
    "Failed to validate GPG signature for libcudnn6-6.0.21-1.cuda8.0.x86_64: Public key for libcudnn6.rpm is not installed",
    "Public key for libcudnn6-6.0.21-1.cuda8.0.x86_64.rpm is not installed",
    'The GPG keys listed for the "CUDA" repository are already installed but they are not correct for this package.',
    "Package libcudnn6-6.0.21-1.cuda8.0.x86_64.rpm is not signed",
    "Failed to fetch GPG key (file:///etc/pki/rpm-gpg/KEY)",
]
NO_SPACE = [
    "Disk Requirements:\n   At least 12MB more space needed on the / filesystem.",
    "installing package cuda-cudart-8-0 needs 211MB more space on the /usr filesystem",
    "unpacking of archive failed on file /usr/bin/x: cpio: write failed - No space left on device",
    "[Errno 28] No space left on device",
]


@pytest.mark.parametrize(
    ("said", "places"),
    [
        (NO_SPACE[0], ["/"]),
        (NO_SPACE[1], ["/usr"]),
        ("installing package a needs 4KB more space on the /usr/src/x-1.05 filesystem", ["/usr/src/x-1.05"]),
        (NO_SPACE[3], []),
    ],
)
def test_the_file_system_that_is_too_small_is_measured_too(said, places):
    assert os_packages.named_places(said) == places


@pytest.mark.parametrize("said", WRONG_KEY)
def test_another_key_is_told_with_the_key_that_was_expected(said):
    message = os_packages.failure(HERE, said, host="data1", title="cuDNN 6.0.21", key="ABCD, NVIDIA <x@nvidia.com>")
    assert "signed with the key files/KEY (ABCD, NVIDIA <x@nvidia.com>)" in message
    assert "Nothing was installed" in message
    assert " ".join(said.split()).rstrip(".") in message


@pytest.mark.parametrize("said", NO_SPACE)
def test_a_full_disk_is_told_with_the_space_there_is(said):
    message = os_packages.failure(HERE, said, host="data1", title="CUDA 8.0", free="/ 3 MB free")
    assert message.startswith("CUDA 8.0 requires more disk space than data1 has (/ 3 MB free); dnf reports:")
    assert "Free some space and run this again: incomplete packages are reinstalled" in message


def test_any_other_failure_is_the_managers_own_and_not_taken_for_one_of_those():
    error = "Depsolve Error occurred: nothing provides kernel >= 6.0 needed by cuda-drivers-560"
    message = os_packages.failure(HERE, error, host="data1", title="CUDA 12.2")
    assert message.endswith(f"dnf reports: {error}. Solve what it names, and run this again.")


def test_the_key_is_shown_by_its_fingerprint_and_owner():
    output = (
        "pub:-:4096:1:F60F4B3D7FA2AF80:1456432000:::-:::scSC::::::23::0:\n"
        "fpr:::::::::889BEE522DA690103C4B085ED88C3D385C37D3BE:\n"
        "uid:-::::1456432000::X::Site packages <packages@site>::::::::::0:\n"
    )
    assert os_packages.key_lines(output) == "889BEE522DA690103C4B085ED88C3D385C37D3BE, Site packages <packages@site>"
    assert os_packages.key_lines("sh: gpg: not found") == ""
    assert os_packages.key_packages(output) == ["gpg-pubkey-7fa2af80"]
    assert os_packages.key_packages("sh: gpg: not found") == []


def test_free_space_is_shown_once_for_each_file_system():
    df = "Filesystem 1048576-blocks Used Available Capacity Mounted on\n" + "/dev/vda 100 90 10 90% /\n" * 3
    assert os_packages.free_lines(df + "/dev/vdb 500 100 400 20% /boot\n") == "/ 10 MB free, /boot 400 MB free"


@pytest.mark.parametrize("item", [{"version": "1"}, {"name": "a", "versoin": "1"}, 3, {"name": ""}])
def test_an_entry_that_names_no_package_is_refused(item):
    with pytest.raises(os_packages.PackageError, match="names must have entries such as"):
        os_packages.packages_of([item])


def test_empty_directories_go_and_others_stay(tmp_path):
    etc, downloads, kept, absent = (tmp_path / name for name in ("etc", "downloads", "kept", "absent"))
    for path in (etc, downloads, kept):
        path.mkdir()
    (kept / "file").touch()
    paths = list(map(str, (etc, downloads, kept, absent, tmp_path)))
    assert empty_directories.remove(paths, True) == paths[:2]
    assert empty_directories.remove(paths, False) == paths[:2]
    assert list(tmp_path.iterdir()) == [kept]
    (kept / "file").unlink()
    for dry in (True, False):
        assert empty_directories.remove([str(kept), str(tmp_path)], dry) == [str(kept), str(tmp_path)]
    assert not tmp_path.exists()


def test_a_failure_other_than_not_empty_is_not_swallowed(tmp_path, monkeypatch):
    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "rmdir", refused)
    with pytest.raises(PermissionError):
        empty_directories.remove([str(tmp_path)], False)
