"""Sets of Debian packages in a mirror, with the real apt, gpg and dpkg-deb of this machine: what apt chooses, verifies and refuses, and what hosts read."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import pwd
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import host_modules
import pytest
from ansible.module_utils.hadoop_dl_host import deb_sets, mirror_removal, package_sets, processes
from faulty_server import Files, serving_files

from hadoop_dl.data.addresses import package_set_records, package_sets_problem
from hadoop_dl_dev.demo import gpu_debs, signed_packages
from hadoop_dl_dev.demo.shell import run

PROGRAMS = ("apt-get", "dpkg-deb", "gpg", "gpgv")
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason=f"{', '.join(PROGRAMS)} are programs of Debian and Ubuntu"
)
# Names, versions and dependencies as in NVIDIA's repository for Ubuntu 16.04 and its one for machine learning; the content is a stand-in.
PACKAGES = [
    ("cuda-libraries-10-0", "10.0.130-1", "cuda-cudart-10-0 (>= 10.0.130), cuda-cublas-10-0 (>= 10.0.130)"),
    ("cuda-cudart-10-0", "10.0.130-1", "cuda-license-10-0"),
    ("cuda-cublas-10-0", "10.0.130-1", "cuda-license-10-0, libc6 (>= 2.17)"),
    ("cuda-cublas-10-0", "10.0.130.1-1", "cuda-license-10-0, libc6 (>= 2.17)"),
    ("cuda-license-10-0", "10.0.130-1", ""),
    ("libcudnn7", "7.6.5.32-1+cuda10.0", "libc6 (>= 2.6), libstdc++6 | libc++1"),
    ("libcudnn7", "7.6.5.32-1+cuda10.2", "libc6 (>= 2.6), libstdc++6 | libc++1"),
    ("libcudnn7-dev", "7.6.5.32-1+cuda10.0", "libcudnn7 (= 7.6.5.32-1+cuda10.0)"),
    ("nccl", "1", "libold"),  # what only an older version requires
    ("nccl", "2", ""),
]
NAMED = ["cuda-libraries-10-0=10.0.130-1", "libcudnn7=7.6.5.32-1+cuda10.0"]
CHOSEN = [
    "cuda-cublas-10-0_10.0.130.1-1_amd64.deb",
    "cuda-cudart-10-0_10.0.130-1_amd64.deb",
    "cuda-libraries-10-0_10.0.130-1_amd64.deb",
    "cuda-license-10-0_10.0.130-1_amd64.deb",
    "libcudnn7_7.6.5.32-1+cuda10.0_amd64.deb",
]


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    with contextlib.ExitStack() as servers:
        yield lambda directory: servers.enter_context(serving_files(directory))


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A flat repository, signed, with its key and another one."""
    directory = tmp_path_factory.mktemp("debs")
    repository = directory / "repository"
    repository.mkdir()
    entries = []
    for name, version, depends in PACKAGES:
        package = {"name": name, "source": name, "version": version, "depends": depends}
        entries.append(gpu_debs.build(package, directory, directory / "packages", repository))
    home = signed_packages.signing_key(directory / "gpg")
    gpu_debs.write_index(entries, directory, repository, home)
    signed_packages.write_keys(repository, home)
    yield repository
    for gpg_home in (home, home.with_name("gpg-other")):
        run("gpgconf", "--homedir", str(gpg_home), "--kill", "gpg-agent")


@pytest.fixture
def source(signed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(signed, tmp_path / "source"))


class Sets:
    """A mirror whose sets come from the source, which is served, with its key."""

    def __init__(self, root: Path, source: Path, url: str) -> None:
        self.root, self.url, self.key = root, url, source / "RPM-GPG-KEY-fixtures"

    def make(self, packages: list[str] = NAMED) -> dict[str, Any]:
        repositories = [{"url": self.url, "key": self.key.read_text().rstrip()}]
        arguments = {"root": str(self.root), "name": "cuda", "kind": "deb", "packages": packages}
        return host_modules.run("mirror_packages", repositories=repositories, **arguments)

    def files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}


@pytest.fixture
def sets(source: Path, open_directory: Path, serve: Callable[[Path], str]) -> Sets:
    return Sets(open_directory / "mirror", source, serve(source))


def test_a_set_has_what_apt_chooses_and_the_sources_own_signed_index(
    sets: Sets, source: Path, open_directory: Path, serve: Any
) -> None:
    answer = sets.make()
    assert answer.get("changed"), answer
    place = sets.root / "deb" / "cuda"
    assert sorted(path.name for path in place.glob("*.deb")) == CHOSEN
    assert sorted(answer["packages"]) == sorted([*CHOSEN, "InRelease", "Packages"])
    assert answer["elsewhere"] == ["libc++1", "libc6", "libstdc++6"]
    for name in answer["packages"]:
        assert (place / name).read_bytes() == (source / name).read_bytes()
        assert (place / name).stat().st_mode & 0o777 == 0o644
    assert not list(place.parent.glob(".*"))
    second = sets.make()
    assert (second["changed"], second["reason"]) == (False, "")
    address = f"{serve(sets.root)}/deb/cuda"
    hosts = deb_sets.Apt(str(open_directory / "host"), address, sets.key.read_text(), processes.clock() + 60)
    hosts.update()
    files, _ = hosts.chosen(NAMED)
    paths = [str(open_directory / str(number)) for number in range(len(files))]
    assert hosts.fetch([(uri, path, digest) for (uri, digest), path in zip(files, paths, strict=True)]) == ""


def user_of(client: tuple[str, int]) -> int:
    """The user whose process has this end of a connection."""
    port = f":{client[1]:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return next(int(row[7]) for row in rows if row[1].endswith(port))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could fetch as another user")
def test_what_talks_to_the_network_is_not_root(sets: Sets, monkeypatch: pytest.MonkeyPatch) -> None:
    users = set()
    answer = Files.do_GET
    monkeypatch.setattr(Files, "do_GET", lambda self: users.add(user_of(self.client_address)) or answer(self))
    mirror_answer = sets.make()
    assert mirror_answer.get("changed"), mirror_answer
    assert users == {pwd.getpwnam("_apt").pw_uid}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could fetch as another user")
def test_a_directory_that_apts_user_cannot_enter_is_named(sets: Sets, open_directory: Path) -> None:
    (open_directory / "closed").mkdir(mode=0o700)
    sets.root = open_directory / "closed/mirror"
    assert f"must be able to enter {open_directory}/closed (chmod o+x)" in sets.make()["msg"]


def test_a_link_among_what_was_fetched_is_not_followed(open_directory: Path) -> None:
    (open_directory / "secret").write_text("secret")
    (open_directory / "0").symlink_to(open_directory / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        deb_sets.take(str(open_directory / "0"), str(open_directory / "taken"))
    assert not (open_directory / "taken").exists()


def test_a_repository_with_a_detached_signature_and_a_compressed_index(sets: Sets, source: Path, signed: Path) -> None:
    """As NVIDIA's older ones."""
    (source / "Packages.gz").write_bytes(gzip.compress((source / "Packages").read_bytes()))
    files = [(name, (source / name).read_bytes()) for name in ("Packages", "Packages.gz")]
    lines = "".join(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}\n" for name, content in files)
    for name in ("Packages", "InRelease"):  # the first one is listed, and not there
        (source / name).unlink()
    (source / "Release").write_text(f"Date: Thu, 01 Aug 2024 10:00:00 UTC\nSHA256:\n{lines}", encoding="utf-8")
    sign = ("gpg", "--homedir", str(signed.parent / "gpg"), "--batch", "--armor", "--detach-sign")
    run(*sign, "--output", str(source / "Release.gpg"), str(source / "Release"))
    answer = sets.make()
    assert answer.get("changed"), answer
    assert sorted(answer["packages"]) == sorted([*CHOSEN, "Packages.gz", "Release", "Release.gpg"])


def test_another_version_takes_what_is_there_and_the_older_one_goes(sets: Sets, source: Path) -> None:
    sets.make()
    (source / "cuda-cublas-10-0_10.0.130.1-1_amd64.deb").unlink()  # it is not asked for again
    answer = sets.make(["cuda-libraries-10-0"])
    assert answer.get("changed"), answer
    assert sorted(path.name for path in (sets.root / "deb/cuda").glob("*.deb")) == CHOSEN[:4]


def test_what_the_named_version_requires_of_the_system_is_reported(sets: Sets) -> None:
    assert sets.make(["nccl=1"])["elsewhere"] == ["libold"]


@pytest.mark.parametrize(
    ("spoil", "packages", "words"),
    [
        *((fault, NAMED, "signed with the key of the set, but apt reports") for fault in ("key", "index", "unsigned")),
        ("package", NAMED, "could not be fetched: E: "),
        ("", ["cuda-libraries-10-0=10.0.1-1"], "Version '10.0.1-1' for 'cuda-libraries-10-0' was not found"),
        ("", ["libcudnn7-", "-oX"], "must be NAME or NAME=VERSION, but there is libcudnn7-, -oX"),
        ("", ["cuda-nothing"], "Unable to locate package cuda-nothing"),
        ("", ["libcudnn7-dev=7.6.5.32-1+cuda10.0"], "libcudnn7-dev : Depends: libcudnn7 (= 7.6.5.32-1+cuda10.0)"),
    ],
)
def test_what_apt_does_not_verify_or_choose_changes_nothing(
    sets: Sets, source: Path, spoil: str, packages: list[str], words: str
) -> None:
    sets.make()
    before = sets.files()
    if spoil == "key":
        sets.key = source / "RPM-GPG-KEY-other"
    elif spoil == "index":
        (source / "InRelease").write_text((source / "InRelease").read_text().replace("SHA256", "SHA512"))
    elif spoil == "unsigned":
        (source / "InRelease").rename(source / "Release")
    elif spoil == "package":
        packages = [*packages, "libcudnn7-dev=7.6.5.32-1+cuda10.0"]
        (source / "libcudnn7-dev_7.6.5.32-1+cuda10.0_amd64.deb").write_bytes(b"other")
    answer = sets.make([*packages, "cuda-license-10-0"])
    assert answer.get("failed"), answer
    assert words in answer["msg"]
    assert "The set that is served was not changed." in answer["msg"]
    assert sets.files() == before


def test_a_host_without_apt_is_refused(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(open_directory))
    maker = deb_sets.Maker(str(open_directory), "cuda", NAMED, [{"url": "http://x", "key": "x"}])
    words = "requires apt on the mirror host, but it has no apt-get, apt-cache"
    with pytest.raises(package_sets.SetError, match=words):
        maker.make(5)


def test_a_set_with_two_repositories_is_refused_and_each_kind_has_its_folder() -> None:
    package_set = {"name": "cuda", "kind": "deb", "packages": NAMED, "repositories": {"http://a": "k", "http://b": "k"}}
    assert "must have one repository" in package_sets_problem([package_set], "fetch")
    assert package_set_records([package_set, {"name": "el9"}], "/m") == ["/m/deb/cuda/set.json", "/m/rpm/el9/set.json"]


def test_a_removal_takes_the_set(sets: Sets) -> None:
    sets.make()
    mirror_removal.remove(str(sets.root), keep_root=False)
    assert not sets.root.exists()
