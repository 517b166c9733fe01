"""What the roles cuda, cudnn and nccl make of their inputs: the expressions of their files, on a host that is a mapping."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import receipt
import yaml
from ansible.module_utils import node_reader
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

ROLES = Path(__file__).resolve().parents[2] / "roles"


def read(role: str, name: str) -> Any:
    return yaml.safe_load((ROLES / role / f"{name}.yml").read_text(encoding="utf-8"))


def task(role: str, name: str, begins: str) -> Any:
    """The task of a file whose name begins so, inside blocks too."""
    waiting = list(read(role, f"tasks/{name}"))
    while waiting:
        found = waiting.pop(0)
        if found["name"].startswith(begins):
            return found
        waiting += [inner for part in ("block", "rescue", "always") for inner in found.get(part, [])]
    raise AssertionError(f"{role}/tasks/{name}.yml has no task {begins!r}")


def answer(role: str, expression: Any, **variables: Any) -> Any:
    """What an expression becomes with the role's defaults and vars."""
    host = {f"__{role}_host": {"gpu_host": {"locks": {"manager": "dnf"}}}}
    known = {**read(role, "defaults/main"), **read(role, "vars/main"), **host, **variables}
    return Templar(loader=DataLoader(), variables=known).template(expression)


def holds(role: str, condition: str, **variables: Any) -> bool:
    return bool(answer(role, "{{ " + condition + " }}", **variables))


EIGHT = {"version": "8.9.7.29", "cuda": "12.2"}
NINE = {"version": "9.1.0.70", "cuda": "12.4"}
NEWER = {"version": "9.3.0.75", "cuda": "12.6"}
NCCL = {"version": "2.18.5", "cuda": "12.2"}


def recorded(role: str, brought: list[Any], source: str) -> dict[str, str]:
    """What slurp answers for the role's record."""
    record = {f"{role}_items": brought, f"{role}_source": source}
    return {"content": base64.b64encode(json.dumps(record).encode()).decode()}


def purged(role: str, brought: list[Any], source: str, wanted: list[Any], now: str) -> tuple[list[str], list[str]]:
    """Packages and paths that go when these were brought from one source, and those are wanted from another."""
    inputs = {f"{role}_versions": wanted, f"{role}_source": now, f"__{role}_record": recorded(role, brought, source)}
    loop = task(role, "purge", "Remove what is not wanted")
    names: list[str] = []
    paths: list[str] = []
    for item in answer(role, loop["loop"], **inputs):
        packages = task(role, "purge_one", "Remove the packages")
        known = {**packages.get("vars", {}), **inputs, "item": item}
        if holds(role, packages["when"], **known):
            names += answer(role, packages["packages_gone"]["names"], **known)
        paths += answer(role, task(role, "purge_one", "Remove from disk")["loop"], **known)
    return names, paths


@pytest.mark.parametrize(
    ("role", "brought", "wanted"),
    [
        ("cudnn", [EIGHT], [{**EIGHT, "version": "8.9.2.26"}]),
        ("cudnn", [NINE], [NEWER]),
        ("nccl", [NCCL], [{**NCCL, "version": "2.20.5"}]),
    ],
)
def test_a_package_that_another_version_replaced_is_not_removed(role: str, brought: Any, wanted: Any) -> None:
    assert purged(role, brought, "package", wanted, "package")[0] == []


def test_cudnn_for_another_cuda_takes_the_place_of_the_package_of_the_first() -> None:
    assert purged("cudnn", [NINE], "package", [{**NINE, "cuda": "11.8"}], "package")[0] == [
        "libcudnn9-cuda-12",
        "libcudnn9-devel-cuda-12",
        "libcudnn9-headers-cuda-12",
    ]


@pytest.mark.parametrize(("role", "item"), [("cudnn", EIGHT), ("nccl", NCCL)])
def test_an_archive_in_place_of_the_packages_of_its_version_stays(role: str, item: Any) -> None:
    names, paths = purged(role, [item], "package", [item], "tarball")
    assert len(names) == 2
    assert paths == []


@pytest.mark.parametrize(("role", "item"), [("cudnn", EIGHT), ("nccl", NCCL)])
def test_an_archive_of_the_same_version_for_another_cuda_goes_alone(role: str, item: Any) -> None:
    names, paths = purged(role, [item], "tarball", [{**item, "cuda": "12.6"}], "tarball")
    assert (names, paths) == ([], [f"/usr/local/cuda-12.2/{role}-{item['version']}"])


@pytest.mark.parametrize(("role", "item"), [("cudnn", EIGHT), ("nccl", NCCL)])
def test_an_archive_that_is_not_wanted_goes_with_its_line_for_the_linker(role: str, item: Any) -> None:
    kept = {**item, "version": "1.2.3"}
    _, paths = purged(role, [item, kept], "tarball", [kept], "tarball")
    name = f"{role}-{item['version']}"
    assert paths == [f"/usr/local/cuda-12.2/{name}", f"/etc/ld.so.conf.d/deeplearning-{name}.conf"]


@pytest.mark.parametrize("role", ["cuda", "cudnn", "nccl"])
def test_another_system_is_refused_before_anything_else(role: str) -> None:
    first, check = read(role, "tasks/preflight")[:2]
    assert "gpu_host" in first
    assert check["name"] == "Check the system"
    found = {"gpu_host": {"family": "Debian", "distribution": "debian", "major": "12"}}
    known = {"inventory_hostname": "data1", f"__{role}_host": found, f"{role}_versions": ["12.2"]}
    assert holds(role, check["when"], **known)
    assert not holds(role, check["when"], **{**known, f"{role}_state": "absent"})
    assert not holds(role, check["ansible.builtin.assert"]["that"], **known)
    said = answer(role, check["ansible.builtin.assert"]["fail_msg"], **known)
    assert "on RHEL 7, 8 and 9 only, but data1 is debian 12." in said
    assert f"set {role}_versions: none. Nothing was changed." in said


@pytest.mark.parametrize("role", ["cudnn", "nccl"])
def test_one_version_for_two_toolkits_is_refused(role: str) -> None:
    item = {"version": "8.9.7.29", "cuda": "12.2"}
    twice = [item, {**item, "cuda": "11.8"}]
    that = task(role, "preflight", "Check that every version is there once")["ansible.builtin.assert"]["that"]
    assert not holds(role, that, **{f"{role}_versions": twice})
    assert holds(role, that, **{f"{role}_versions": [item]})


@pytest.mark.parametrize(
    ("item", "packages"),
    [
        (EIGHT, ["libcudnn8-8.9.7.29-1.cuda12.2", "libcudnn8-devel-8.9.7.29-1.cuda12.2"]),
        (NINE, [f"libcudnn9-{part}cuda-12-9.1.0.70" for part in ("", "devel-", "headers-")]),
    ],
)
def test_every_package_of_cudnn_is_named_with_its_version(item: Any, packages: list[str]) -> None:
    names = task("cudnn", "package", "Look for")["args"]["names"]
    found = answer("cudnn", names, item=item)
    assert [f"{one['name']}-{one['version']}" for one in found] == packages


SHA256 = "ab" * 32


def installs(mark: str | None, compiler: bool = True) -> bool:
    """Whether the installer of CUDA 11.8 runs where its toolkit has this mark."""
    checksum = {} if mark is None else {"checksum": hashlib.sha256(mark.encode()).hexdigest()}
    stats = [{"exists": True}, {"exists": mark is not None, **checksum}, {"exists": compiler}]
    known: dict[str, Any] = {"__cuda_toolkit": "11.8", "__cuda_there": {"results": [{"stat": one} for one in stats]}}
    that = task("cuda", "install_runfile", "Check that the toolkit is not")["ansible.builtin.assert"]["that"]
    assert holds("cuda", that, **known)
    block = task("cuda", "install_runfile", "Install the toolkit")
    known["cuda_runfiles"] = {"11.8": {"file": "x.run", "sha256": SHA256}}
    return holds("cuda", block["when"], __cuda_whole=block["vars"]["__cuda_whole"], **known)


def test_a_whole_toolkit_of_this_installer_is_left_alone() -> None:
    assert not installs(f"{SHA256}\n")


@pytest.mark.parametrize(("mark", "compiler"), [("begun\n", True), (f"{'cd' * 32}\n", True), (f"{SHA256}\n", False)])
def test_half_a_toolkit_one_of_another_installer_and_one_without_compiler_are_installed(
    mark: str, compiler: bool
) -> None:
    assert installs(mark, compiler)


def test_a_toolkit_of_somebody_else_is_not_written_over() -> None:
    with pytest.raises(AssertionError):
        installs(None)
    assert installs(None, compiler=False)


@pytest.mark.parametrize(("toolkit", "verbose"), [("8.0", True), ("10.0", True), ("10.1", False), ("12.2", False)])
def test_the_installer_works_in_a_directory_of_its_own_and_tells_its_log(toolkit: str, verbose: bool) -> None:
    command = task("cuda", "run_installer", "Install nothing but")["locked_command"]
    argv = answer("cuda", command["argv"], __cuda_toolkit=toolkit, __cuda_file="/d/x.run")
    assert argv[:2] == ["sh", "/d/x.run"]
    assert f"--toolkitpath=/usr/local/cuda-{toolkit}" in argv
    assert "--tmpdir=/d/x.run.tmp" in argv
    assert answer("cuda", command["directory"], __cuda_file="/d/x.run") == "/d/x.run.tmp"
    assert ("--verbose" in argv) == verbose


@pytest.mark.parametrize(
    ("stat", "right"),
    [({"exists": False}, True), ({"exists": True, "islnk": True}, True), ({"exists": True, "islnk": False}, False)],
)
def test_a_directory_in_the_place_of_the_link_is_refused(stat: dict[str, bool], right: bool) -> None:
    that = task("cuda", "preflight", "Check that /usr/local/cuda")["ansible.builtin.assert"]["that"]
    assert holds("cuda", that, __cuda_link_there={"stat": stat}) == right


@pytest.mark.parametrize(
    ("versions", "source", "right"),
    [(["12.2"], "runfile", False), (["12.2"], "package", True), (["12.4"], "runfile", True)],
)
def test_a_toolkit_does_not_change_its_source(versions: list[str], source: str, right: bool) -> None:
    check = task("cuda", "preflight", "Check that no toolkit")
    record = base64.b64encode(b'{"cuda": ["12.2"], "cuda_source": "package"}').decode()
    inputs = {"cuda_versions": versions, "cuda_source": source, "__cuda_record": {"content": record}}
    that = check["ansible.builtin.assert"]["that"]
    assert holds("cuda", that, **check["vars"], **inputs) == right
    assert holds("cuda", that, **check["vars"], **{**inputs, "__cuda_record": {}})


def test_what_the_link_led_to_before_is_what_the_first_run_found() -> None:
    link = {"stat": {"exists": True, "lnk_target": "cuda-12.2"}}
    record = base64.b64encode(b'{"cuda": ["12.2"], "cuda_link_before": "cuda-10.0"}').decode()
    later = {"__cuda_recorded": {"stat": {"exists": True}}, "__cuda_record": {"content": record}}
    first = {"__cuda_recorded": {"stat": {"exists": False}}, "__cuda_record": {}}
    assert answer("cuda", "{{ __cuda_link_before }}", __cuda_link_there=link, **later) == "cuda-10.0"
    assert answer("cuda", "{{ __cuda_link_before }}", __cuda_link_there=link, **first) == "cuda-12.2"
    assert answer("cuda", "{{ __cuda_link_before }}", __cuda_link_there={"stat": {"exists": False}}, **first) == ""


def test_an_installers_toolkit_goes_without_what_other_roles_laid_beside_it_and_its_mark_last() -> None:
    listing = task("cuda", "purge_one", "List what was laid down")["ansible.builtin.find"]
    assert listing["hidden"]
    assert listing["excludes"] == ["cudnn-*", "nccl-*"]
    home = "/usr/local/cuda-11.8"
    names = [".deeplearning-runfile", "bin", "lib64", "targets"]
    laid = {"files": [{"path": f"{home}/{name}"} for name in names]}
    loop = task("cuda", "purge_one", "Remove what was laid down")["loop"]
    found = answer("cuda", loop, __cuda_toolkit="11.8", __cuda_laid=laid)
    assert found[0] == "/etc/ld.so.conf.d/cuda-11-8.conf"
    assert found[1:] == [f"{home}/{name}" for name in reversed(names)]


def refused(role: str, begins: str, **variables: Any) -> bool:
    that = task(role, "preflight", begins)["ansible.builtin.assert"]["that"]
    return not holds(role, that, **variables)


@pytest.mark.parametrize("source", ["package", "tarball"])
@pytest.mark.parametrize(
    ("role", "versions", "right"),
    [
        ("cudnn", [{**EIGHT, "version": "7.4.2.24"}, {**EIGHT, "version": "7.6.5.32"}], False),
        ("cudnn", [{"version": "6.0.21", "cuda": "8.0"}, EIGHT], True),
        ("nccl", [{**NCCL, "version": "2.16.5"}, NCCL], False),
        ("nccl", [NCCL], True),
    ],
)
def test_two_libraries_of_one_soname_are_refused(role: str, versions: list[Any], right: bool, source: str) -> None:
    inputs = {f"{role}_versions": versions, f"{role}_source": source}
    assert refused(role, "Check that the linker", **inputs) is not right


@pytest.mark.parametrize("role", ["cudnn", "nccl"])
def test_a_library_does_not_go_under_a_job(role: str) -> None:
    item = EIGHT if role == "cudnn" else NCCL
    check = task(role, "preflight", "Check that no process")
    users = {"gpu_host": {"users": [{"pid": 7, "name": "python"}], "locks": {"manager": "dnf"}}}
    inputs = {f"__{role}_record": recorded(role, [item], "package"), f"__{role}_host": users}
    assert holds(role, check["when"], **inputs, **{f"{role}_versions": []})
    assert not holds(role, check["when"], **inputs, **{f"{role}_versions": [item]})
    assert not holds(role, check["ansible.builtin.assert"]["that"], **inputs)


ARCHIVES = read("cudnn", "vars/archives")
SITE = {"file": "files/x.tgz", "sha256": "ab" * 32}


@pytest.mark.parametrize(
    ("item", "site", "name"),
    [
        ({"version": "6.0.21", "cuda": "8.0"}, {}, "cudnn-8.0-linux-x64-v6.0.tgz"),
        ({"version": "7.6.5.32", "cuda": "10.0"}, {}, "cudnn-10.0-linux-x64-v7.6.5.32.tgz"),
        ({"version": "8.9.7.29", "cuda": "12.2"}, {}, "cudnn-linux-x86_64-8.9.7.29_cuda12-archive.tar.xz"),
        ({"version": "6.0.21", "cuda": "8.0"}, {"6.0.21": SITE}, "x.tgz"),
        ({"version": "1.2.3", "cuda": "8.0"}, {"1.2.3": SITE}, "x.tgz"),
    ],
)
def test_an_archive_that_nvidia_serves_openly_needs_no_line_of_the_site(item: Any, site: Any, name: str) -> None:
    known = {**ARCHIVES, "item": item, "cudnn_tarballs": site}
    assert answer("cudnn", "{{ __cudnn_archive.file }}", **known).endswith("/" + name)
    assert not refused("cudnn", "Check that the archive is known", **known)


def test_an_archive_that_nobody_knows_is_refused() -> None:
    item = {"version": "7.6.5.32", "cuda": "8.0"}
    assert refused("cudnn", "Check that the archive is known", **{**ARCHIVES, "item": item})


def test_a_mirror_of_a_known_archive_needs_no_sha256() -> None:
    known = {
        **ARCHIVES,
        "item": {"version": "6.0.21", "cuda": "8.0"},
        "cudnn_tarballs": {"6.0.21": {"file": "http://mirror01/x.tgz"}},
    }
    found = answer("cudnn", "{{ __cudnn_archive }}", **known)
    assert found == {
        "file": "http://mirror01/x.tgz",
        "sha256": ARCHIVES["__cudnn_open_archives"]["6.0.21/8.0"]["sha256"],
    }


@pytest.mark.parametrize(("toolkit", "cupti"), [("8.0", True), ("10.2", True), ("11.2", False), ("12.2", False)])
def test_the_linker_finds_the_profilers_library_of_older_toolkits(toolkit: str, cupti: bool) -> None:
    content = task("cuda", "activate", "Tell the linker")["ansible.builtin.copy"]["content"]
    lines = answer("cuda", content, item=toolkit).split()
    assert lines[0] == f"/usr/local/cuda-{toolkit}/lib64"
    assert lines[1:] == ([f"/usr/local/cuda-{toolkit}/extras/CUPTI/lib64"] if cupti else [])


def test_a_toolkit_does_not_go_under_a_job() -> None:
    check = task("cuda", "preflight", "Check that no process")
    record = {"content": base64.b64encode(b'{"cuda": ["8.0", "12.2"]}').decode()}
    users = {"gpu_host": {"users": [{"pid": 7, "name": "python"}], "locks": {"manager": "dnf"}}}
    inputs = {"__cuda_record": record, "__cuda_host": users, "cuda_versions": ["12.2"]}
    assert answer("cuda", "{{ __cuda_leaving }}", **inputs) == ["8.0"]
    assert holds("cuda", check["when"], **inputs)
    assert not holds("cuda", check["ansible.builtin.assert"]["that"], **inputs)
    assert not holds("cuda", check["when"], **inputs, cuda_purge_enabled=False)


@pytest.mark.parametrize(("role", "item"), [("cudnn", EIGHT), ("nccl", NCCL)])
@pytest.mark.parametrize("size", [7, receipt.LARGEST_HASHED + 1])
def test_a_library_that_lost_its_content_is_a_problem_of_the_receipt(
    tmp_path: Path, role: str, item: dict[str, str], size: int
) -> None:
    """As after a power failure: the archive's mark is on the disk, the library is empty."""
    paths = answer(role, "{{ " + role + "_paths }}", **{f"{role}_versions": [item], f"{role}_source": "tarball"})
    place = f"/usr/local/cuda-{item['cuda']}/{role}-{item['version']}"
    assert place in paths
    library = tmp_path / place[1:] / "lib" / f"lib{role}.so.{item['version']}"
    for path in (library, tmp_path / place[1:] / ".sha256", *(tmp_path / path[1:] for path in paths if path != place)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")
    with library.open("r+b") as handle:
        handle.truncate(size)
    found, missing = receipt.make_receipt(role, "aa", [str(tmp_path) + path for path in paths])
    assert not missing
    state = tmp_path / f"opt/deeplearning/state/{role}.json"
    state.parent.mkdir(parents=True)
    state.write_text(json.dumps(found).replace(str(tmp_path), ""))
    assert node_reader.Reader(str(tmp_path)).receipts()[role]["problem"] is None
    with library.open("r+b") as handle:
        handle.truncate(0)
    assert str(library.relative_to(tmp_path)) in node_reader.Reader(str(tmp_path)).receipts()[role]["problem"]
