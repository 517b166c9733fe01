"""What the roles cuda, cudnn and nccl make of their inputs and of a host's record, and what their files share."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import receipt
import toolkit_files
import yaml
from ansible.module_utils.hadoop_dl_host import host_reader, recorded_files
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_programs import tasks_of

from hadoop_dl.data import cuda_packages
from hadoop_dl.plan import digests as plan_digests

REPOSITORY = Path(__file__).resolve().parents[2]
ROLES = REPOSITORY / "roles"
CALLERS = ["cuda", "cudnn", "nccl"]


def read(role: str, name: str) -> Any:
    return yaml.safe_load((ROLES / role / f"{name}.yml").read_text(encoding="utf-8"))


def task(role: str, name: str, begins: str) -> Any:
    """The task of a file whose name begins so, inside blocks too."""
    return next(entry for entry in tasks_of(read(role, f"tasks/{name}")) if entry["name"].startswith(begins))


def answer(role: str, expression: Any, **variables: Any) -> Any:
    """What an expression becomes with the role's defaults and vars."""
    archives = read("cudnn", "vars/archives") if role == "cudnn" else {}
    private = read(role, "vars/main") if role != "_cuda_package" else {}
    defaults = read(role, "defaults/main") if role != "_cuda_package" else {}
    return Templar(loader=DataLoader(), variables={**archives, **defaults, **private, **variables}).template(expression)


def holds(role: str, condition: str, **variables: Any) -> bool:
    return bool(answer(role, "{{ " + condition + " }}", **variables))


def given(role: str, **inputs: Any) -> Any:
    """What a role gives to _cuda_package, with its defaults and these inputs."""
    return answer(role, "{{ __" + role + "_package }}", **inputs)


def work(role: str, record: Any = None, **inputs: Any) -> Any:
    slurped = {"content": base64.b64encode(json.dumps(record).encode()).decode()} if record else {}
    return cuda_packages.work(given(role, **inputs), slurped)


EIGHT = {"version": "8.9.7.29", "cuda": "12.2"}
NINE = {"version": "9.1.0.70", "cuda": "12.4"}
NEWER = {"version": "9.3.0.75", "cuda": "12.6"}
NCCL = {"version": "2.18.5", "cuda": "12.2"}
SHA256 = "ab" * 32


def test_a_change_of_what_the_roles_share_changes_their_digests_and_no_others(tmp_path):
    for path in ("roles", "lib/hadoop_dl", "plugins/filter"):
        shutil.copytree(REPOSITORY / path, tmp_path / path, ignore=shutil.ignore_patterns("__pycache__"))

    def digests() -> dict[str, str]:
        plan_digests.role_digests.cache_clear()
        plan_digests.tree_digest.cache_clear()
        return {name: plan_digests.role_digests(tmp_path, (name,)) for name in (*CALLERS, "gpu_check", "hadoop_client")}

    for changed in (
        "roles/_cuda_package/tasks/package.yml",
        "lib/hadoop_dl/data/cuda_packages.py",
        "plugins/filter/cuda_packages.py",
    ):
        before = digests()
        with (tmp_path / changed).open("a", encoding="utf-8") as handle:
            handle.write("# changed\n")
        after = digests()
        assert {name for name in before if before[name] != after[name]} == set(CALLERS), changed


# What the roles of earlier versions recorded: hosts have these.
CUDA_INPUTS = {"cuda_versions": ["8.0", "12.2"], "__cuda_link_stat": {"stat": {"lnk_target": "cuda-12.2"}}}
CUDA_RECORD = {
    "cuda": ["8.0", "12.2"],
    "cuda_default": "12.2",
    "cuda_link_before": "cuda-10.0",
    "cuda_source": "package",
}
CUDNN_RECORD = {
    "cudnn": {"8.9.7.29": "/usr/local/cuda-12.2/cudnn-8.9.7.29"},
    "cudnn_items": [EIGHT],
    "cudnn_source": "tarball",
}
NCCL_RECORD = {"nccl": {"2.18.5": "/usr"}, "nccl_items": [NCCL], "nccl_source": "package"}


@pytest.mark.parametrize(
    ("role", "source", "inputs", "record"),
    [
        ("cuda", "package", CUDA_INPUTS, CUDA_RECORD),
        ("cudnn", "tarball", {"cudnn_versions": [EIGHT]}, CUDNN_RECORD),
        ("nccl", "package", {"nccl_versions": [NCCL]}, NCCL_RECORD),
    ],
)
def test_a_host_of_an_earlier_version_keeps_everything_and_its_record(role, source, inputs, record):
    planned_work = work(role, record, **inputs, **{f"{role}_source": source})
    assert planned_work["leaving"] == []
    assert planned_work["other_source"] == []
    assert not planned_work["nothing_left"]
    content = task("_cuda_package", "write_record", "Record the installed")["ansible.builtin.copy"]["content"]
    record_text = Templar(loader=DataLoader(), variables={"__cuda_package_work": planned_work}).template(content)
    assert record_text == json.dumps(record, indent=4, sort_keys=True) + "\n"


def leaves(role: str, record: Any, **inputs: Any) -> tuple[list[str], list[str]]:
    """Packages and paths that are removed."""
    leaving = work(role, record, **inputs)["leaving"]
    return [name for item in leaving for name in item["packages"]], [path for item in leaving for path in item["paths"]]


def removed(role: str, installed: list[Any], source: str, wanted: list[Any], now: str) -> tuple[list[str], list[str]]:
    """Packages and paths that are removed when these were installed from one source, and those are requested from another."""
    record = {f"{role}_items": installed, f"{role}_source": source}
    return leaves(role, record, **{f"{role}_versions": wanted, f"{role}_source": now})


@pytest.mark.parametrize(
    ("role", "installed", "wanted"),
    [
        ("cudnn", [EIGHT], [{**EIGHT, "version": "8.9.2.26"}]),
        ("cudnn", [NINE], [NEWER]),
        ("nccl", [NCCL], [{**NCCL, "version": "2.20.5"}]),
    ],
)
def test_a_package_that_another_version_replaced_is_not_removed(role, installed, wanted):
    assert removed(role, installed, "package", wanted, "package")[0] == []


def test_cudnn_for_another_cuda_takes_the_place_of_the_package_of_the_first():
    names = removed("cudnn", [NINE], "package", [{**NINE, "cuda": "11.8"}], "package")[0]
    assert names == [f"libcudnn9-{part}cuda-12" for part in ("", "devel-", "headers-")]


@pytest.mark.parametrize(("role", "item"), [("cudnn", EIGHT), ("nccl", NCCL)])
def test_an_archive_is_removed_with_its_line_for_the_linker_if_nothing_of_its_version_stays(role, item):
    names, paths = removed(role, [item], "package", [item], "tarball")
    assert (len(names), paths) == (2, []), "it takes the place of the packages of its version"
    archive, line = f"/usr/local/cuda-12.2/{role}-{item['version']}", f"deeplearning-{role}-{item['version']}.conf"
    other_cuda, other_version = {**item, "cuda": "12.6"}, {**item, "version": "1.2.3"}
    assert removed(role, [item], "tarball", [other_cuda], "tarball") == ([], [archive])
    assert removed(role, [item, other_version], "tarball", [other_version], "tarball")[1] == [
        archive,
        f"/etc/ld.so.conf.d/{line}",
    ]


TWO_TOOLKITS = {"cuda": ["8.0", "12.2"], "cuda_source": "package"}


@pytest.mark.parametrize(
    ("inputs", "packages", "nothing_left"),
    [
        ({"cuda_versions": ["12.2"]}, ["8-0"], False),
        ({"cuda_versions": ["12.2"], "cuda_purge_enabled": False}, [], False),
        ({"cuda_versions": [], "cuda_purge_enabled": False}, [], False),
        ({"cuda_versions": []}, ["8-0", "12-2"], True),
        ({"cuda_versions": ["12.2"], "cuda_state": "absent", "cuda_purge_enabled": False}, ["8-0", "12-2"], True),
    ],
)
def test_toolkits_that_are_no_longer_requested_are_removed_unless_the_site_keeps_them(inputs, packages, nothing_left):
    planned_work = work("cuda", TWO_TOOLKITS, **inputs)
    names = [name for item in planned_work["leaving"] for name in item["packages"]]
    assert names == [f"cuda-toolkit-{package}" for package in packages]
    assert planned_work["nothing_left"] is nothing_left


def test_a_toolkit_is_removed_with_its_line_for_the_linker_and_one_of_an_installer_has_no_package():
    record = {"cuda": ["8.0", "11.8"], "cuda_source": "runfile"}
    names, paths = leaves("cuda", record, cuda_versions=["8.0"], cuda_source="runfile")
    assert (names, paths) == ([], ["/etc/ld.so.conf.d/deeplearning-cuda-11.8.conf"])


def test_versions_that_yaml_reads_as_numbers_are_those_of_the_record():
    assert work("cuda", {"cuda": ["8.0", 12.2], "cuda_source": "package"}, cuda_versions=[8.0, "12.2"])["leaving"] == []
    record = {"nccl_items": [{"version": "2.18.5", "cuda": 12.2}], "nccl_source": "package"}
    assert work("nccl", record, nccl_versions=[NCCL])["leaving"] == []


def asserted(role: str, file: str, begins: str, **variables: Any) -> tuple[bool, bool, str]:
    """Whether a check is made, whether it holds, and its message."""
    check = task(role, file, begins)
    facts = {"inventory_hostname": "data1", **check.get("vars", {}), **variables}
    body = check["ansible.builtin.assert"]
    applies = holds(role, check.get("when", "true"), **facts)
    return applies, holds(role, body["that"], **facts), answer(role, body["fail_msg"], **facts)


def shared_check(role: str, begins: str, host: Any, record: Any = None, **inputs: Any) -> tuple[bool, bool, str]:
    facts = {"__cuda_package_work": work(role, record, **inputs), "__cuda_package_host": {"gpu_host": host}}
    return asserted("_cuda_package", "preflight", begins, _cuda_package=given(role, **inputs), **facts)


ONE = {"cuda": "12.2", "cudnn": EIGHT, "nccl": NCCL}


@pytest.mark.parametrize("role", CALLERS)
def test_another_system_is_refused_before_anything_else(role):
    readers = {"gpu_host_info", *(f"ansible.builtin.{name}" for name in ("stat", "slurp", "debug", "assert"))}
    assert [task["name"] for task in read("_cuda_package", "tasks/preflight") if not readers & set(task)] == []
    host = {"family": "Debian", "distribution": "debian", "major": "12"}
    applies, passes, message = shared_check(role, "Check the system", host, **{f"{role}_versions": [ONE[role]]})
    assert (applies, passes) == (True, False)
    assert "on RHEL 7, 8 and 9 only, but data1 is debian 12." in message
    assert f"set {role}_versions: none (the role alone: []). Nothing was changed." in message
    inputs = {f"{role}_versions": [ONE[role]], f"{role}_state": "absent"}
    assert not shared_check(role, "Check the system", host, **inputs)[0]


@pytest.mark.parametrize("role", CALLERS)
def test_nothing_is_removed_under_a_job(role):
    record = {f"{role}_items": [ONE[role]], "cuda": ["12.2"], f"{role}_source": "package"}
    host = {"users": [{"pid": 7, "name": "python"}]}
    applies, passes, message = shared_check(role, "Check that no process", host, record)
    assert (applies, passes) == (True, False)
    assert "python (pid 7)" in message
    assert not shared_check(role, "Check that no process", host, record, **{f"{role}_versions": [ONE[role]]})[0]


PARTS = ("", "devel-", "headers-")


@pytest.mark.parametrize(
    ("role", "item", "packages"),
    [
        ("cudnn", EIGHT, ["libcudnn8-8.9.7.29-1.cuda12.2", "libcudnn8-devel-8.9.7.29-1.cuda12.2"]),
        ("cudnn", NINE, [f"libcudnn9-{part}cuda-12-9.1.0.70" for part in PARTS]),
        ("cudnn", {"version": "10.0.0.1", "cuda": "13.0"}, [f"libcudnn10-{part}cuda-13-10.0.0.1" for part in PARTS]),
        ("nccl", NCCL, ["libnccl-2.18.5-1+cuda12.2", "libnccl-devel-2.18.5-1+cuda12.2"]),
    ],
)
def test_every_package_of_a_library_is_named_with_its_version(role, item, packages):
    (request,) = work(role, **{f"{role}_versions": [item]})["requested"]
    assert [f"{package['name']}-{package['version']}" for package in request["packages"]] == packages
    assert request["downgrade"]


def test_a_toolkit_is_the_newest_of_its_number_unless_the_site_names_one():
    exact = {"8.0": "8.0.61"}
    old, new = work("cuda", cuda_versions=["8.0", "12.2"], cuda_package_versions=exact)["requested"]
    assert (old["packages"], old["downgrade"]) == ([{"name": "cuda-toolkit-8-0", "version": "8.0.61"}], True)
    assert (new["packages"], new["downgrade"]) == ([{"name": "cuda-toolkit-12-2", "version": ""}], False)


def installs(home: Path, managed: bool, compiler: bool = True) -> bool:
    """Whether the installer of CUDA 11.8 runs where its toolkit is so."""
    stats = [{"exists": True}, {"exists": managed}, {"exists": compiler}]
    facts: dict[str, Any] = {
        "__cuda_toolkit": "11.8",
        "__cuda_home_stats": {"results": [{"stat": stat} for stat in stats]},
        "__cuda_files": {"problem": toolkit_files.problem(str(home), SHA256)},
    }
    that = task("cuda", "install_toolkit", "Check that the toolkit is managed")["ansible.builtin.assert"]["that"]
    assert holds("cuda", that, **facts)
    return holds("cuda", task("cuda", "install_toolkit", "Install the toolkit")["when"], **facts)


def toolkit(home: Path) -> Path:
    """What the installer left, complete; beside it what the role cudnn installed. Answers with a library."""
    for name in ("bin/nvcc", "lib64/libcublas.so.11", "doc/notes.txt", "cudnn-8/lib/libcudnn.so.8"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("content")
    (home / "lib64/libcublas.so").symlink_to("libcublas.so.11")
    toolkit_files.complete(str(home), SHA256)
    return home / "lib64/libcublas.so.11"


def test_a_whole_toolkit_of_this_installer_is_left_alone(tmp_path):
    toolkit(tmp_path)
    (tmp_path / "cudnn-8/lib/libcudnn.so.8").write_text("")  # its own role looks at it
    (tmp_path / "lib64/libadded.so").write_text("of the site")
    assert not installs(tmp_path, managed=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (".deeplearning-runfile", "begun\n"),
        (".deeplearning-runfile", f"{'cd' * 32}\n"),
        (".deeplearning-runfile.json", ""),
        (".deeplearning-runfile.json", None),
        ("bin/nvcc", None),
        ("lib64/libcublas.so.11", ""),
        ("lib64/libcublas.so.11", "CONTENT"),
        ("lib64/libcublas.so", None),
        ("doc/notes.txt", ""),
    ],
)
def test_half_a_toolkit_one_of_another_installer_and_one_that_lost_content_are_installed(tmp_path, name, content):
    toolkit(tmp_path)
    (tmp_path / name).unlink()
    if content is not None:
        (tmp_path / name).write_text(content)
    assert installs(tmp_path, managed=True)


def test_a_library_that_lost_its_content_is_removed_before_the_installer_runs(tmp_path):
    """An installer may keep a file that exists. What others added, and what the role cudnn installed, stays."""
    library = toolkit(tmp_path)
    extra_library = tmp_path / "lib64/libadded.so"
    for path in (library, extra_library, tmp_path / "cudnn-8/lib/libcudnn.so.8"):
        path.write_text("")
    toolkit_files.begin(str(tmp_path))
    assert not library.exists()
    assert extra_library.exists()
    assert (tmp_path / "cudnn-8/lib/libcudnn.so.8").exists()
    assert (tmp_path / "bin/nvcc").exists()
    assert installs(tmp_path, managed=True)


@pytest.mark.parametrize("name", ["lib64/libcublas.so.11", "bin/nvcc"])
def test_an_installer_that_left_a_library_empty_gets_no_mark(tmp_path, name):
    """As on a full disk, if the installer ends with 0."""
    toolkit(tmp_path)
    toolkit_files.begin(str(tmp_path))
    (tmp_path / name).write_text("")
    with pytest.raises(OSError, match=f"left 1 libraries or programs empty: {tmp_path}/{name}"):
        toolkit_files.complete(str(tmp_path), SHA256)
    assert installs(tmp_path, managed=True)


def test_every_file_of_a_toolkit_is_on_the_disk_before_its_record_and_its_mark(tmp_path, disk_events):
    toolkit(tmp_path)
    record, mark = ".deeplearning-runfile.json", ".deeplearning-runfile"
    last_events = [event for name in (record, mark) for event in (f".draft-{name}", f"rename to {name}", tmp_path.name)]
    assert disk_events[-6:] == last_events
    assert set(disk_events[:-6]) >= {"libcublas.so.11", "nvcc", "lib64", "bin"}


def problem(root: Path, role: str, paths: list[str]) -> str | None:
    """What the next plan says of a receipt that is written now, of these files below the root."""
    content, missing_paths = receipt.make_receipt(role, "aa", [f"{root}{path}" for path in paths])
    assert not missing_paths
    state = root / f"opt/deeplearning/state/{role}.json"
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text(json.dumps(content).replace(str(root), ""))
    answer = host_reader.Reader(str(root)).receipts()[role]["problem"]
    assert answer is None or isinstance(answer, str)
    return answer


@pytest.mark.parametrize("size", [0, 5])
def test_a_toolkit_that_lost_a_library_is_a_problem_of_the_receipt_also_of_the_next_one(tmp_path, size):
    """The receipt has the record of the installation: one that is written after the damage does not hide it."""
    inputs = {"cuda_versions": ["11.8"], "cuda_source": "runfile", "cuda_profile_enabled": False}
    paths = answer("cuda", "{{ cuda_paths }}", **inputs)
    library = toolkit(tmp_path / "usr/local/cuda-11.8")
    file_list = library.parents[1] / ".deeplearning-runfile.json"
    file_list.write_text(file_list.read_text().replace(str(tmp_path), ""))
    for path in [tmp_path / path[1:] for path in paths]:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("content")
    assert problem(tmp_path, "cuda", paths) is None
    with library.open("r+b") as handle:
        handle.truncate(size)
    assert problem(tmp_path, "cuda", paths) == "/usr/local/cuda-11.8/lib64/libcublas.so.11 was changed"


def test_a_toolkit_that_this_project_does_not_manage_is_not_written_over(tmp_path):
    with pytest.raises(AssertionError):
        installs(tmp_path, managed=False)
    assert installs(tmp_path, managed=False, compiler=False)


@pytest.mark.parametrize(("toolkit", "verbose"), [("8.0", True), ("10.0", True), ("10.1", False), ("12.2", False)])
def test_the_installer_works_in_a_directory_of_its_own_and_tells_its_log(toolkit, verbose):
    installing = task("cuda", "run_installer", "Install nothing but")
    command = installing["locked_command"]
    argv = answer("cuda", command["argv"], **installing["vars"], __cuda_toolkit=toolkit, __cuda_file="/d/x.run")
    assert argv[:2] == ["sh", "/d/x.run"]
    assert {f"--toolkitpath=/usr/local/cuda-{toolkit}", "--tmpdir=/d/x.run.tmp"} <= set(argv)
    assert answer("cuda", command["directory"], __cuda_file="/d/x.run") == "/d/x.run.tmp"
    assert ("--verbose" in argv) == verbose


@pytest.mark.parametrize(
    ("stat", "right"),
    [({"exists": False}, True), ({"exists": True, "islnk": True}, True), ({"exists": True, "islnk": False}, False)],
)
def test_a_directory_in_the_place_of_the_link_is_refused(stat, right):
    variables = {"__cuda_link_stat": {"stat": stat}, "__cuda_package_work": {"requested": ["12.2"]}}
    applies, passes, message = asserted("cuda", "preflight", "Check that /usr/local/cuda", **variables)
    assert (applies, passes) == (True, right)
    assert "on data1 it is no link: it was not touched" in message


@pytest.mark.parametrize(
    ("versions", "source", "refused"),
    [(["12.2"], "runfile", ["12.2"]), (["12.2"], "package", []), (["12.4"], "runfile", [])],
)
def test_a_toolkit_does_not_change_its_source(versions, source, refused):
    inputs = {"cuda_versions": versions, "cuda_source": source}
    assert work("cuda", {"cuda": ["12.2"], "cuda_source": "package"}, **inputs)["other_source"] == refused
    assert work("cuda", None, **inputs)["other_source"] == []


def test_what_the_link_pointed_to_before_is_what_the_first_run_found():
    link = {"cuda_versions": ["12.2"], "__cuda_link_stat": {"stat": {"exists": True, "lnk_target": "cuda-12.2"}}}
    record = {"cuda": ["12.2"], "cuda_link_before": "cuda-10.0"}
    assert work("cuda", record, **link)["record"]["cuda_link_before"] == "cuda-10.0"
    assert work("cuda", None, **link)["record"]["cuda_link_before"] == "cuda-12.2"
    nowhere = {"__cuda_link_stat": {"stat": {"exists": False}}}
    assert work("cuda", None, cuda_versions=["12.2"], **nowhere)["record"]["cuda_link_before"] == ""


@pytest.mark.parametrize(("default", "link"), [("", "12.2"), ("8.0", "8.0")])
def test_the_default_toolkit_is_the_last_unless_the_site_names_one(default, link):
    assert work("cuda", cuda_versions=["8.0", "12.2"], cuda_default=default)["record"]["cuda_default"] == link


@pytest.mark.parametrize("source", ["package", "tarball"])
@pytest.mark.parametrize(
    ("role", "versions", "words"),
    [
        ("cudnn", [EIGHT, {**EIGHT, "cuda": "11.8"}], "one cuDNN of a version"),
        ("nccl", [NCCL, {**NCCL, "cuda": "11.8"}], "one NCCL of a version"),
        ("cudnn", [{**EIGHT, "version": "7.4.2.24"}, {**EIGHT, "version": "7.6.5.32"}], "of each major number"),
        ("cudnn", [{"version": "6.0.21", "cuda": "8.0"}, EIGHT], ""),
        ("nccl", [{**NCCL, "version": "2.16.5"}, NCCL], "one NCCL (libnccl.so.2)"),
        ("nccl", [NCCL], ""),
    ],
)
def test_two_libraries_of_one_version_or_soname_are_refused(role, versions, words, source):
    archives = {f"{role}_tarballs": {item["version"]: {"file": "x.tgz", "sha256": SHA256} for item in versions}}
    inputs = {f"{role}_versions": versions, f"{role}_source": source}
    refusals = work(role, **inputs, **archives)["refusals"]
    assert len(refusals) == bool(words)
    assert words in "".join(refusals)


UNKNOWN = {"version": "7.6.5.32", "cuda": "8.0"}
SITE = {"file": "files/x.tgz", "sha256": SHA256}
KNOWN = read("cudnn", "vars/archives")["__cudnn_open_archives"]


def tarball(role: str, item: Any, site: Any) -> Any:
    inputs = {f"{role}_versions": [item], f"{role}_tarballs": site, f"{role}_source": "tarball"}
    planned_work = work(role, **inputs)
    return planned_work["requested"][0], planned_work["refusals"]


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
def test_an_archive_that_nvidia_serves_openly_needs_no_line_of_the_site(item, site, name):
    request, refusals = tarball("cudnn", item, site)
    assert request["archive"]["file"].endswith("/" + name)
    assert refusals == []


@pytest.mark.parametrize(
    ("role", "item", "site", "words"),
    [
        ("cudnn", UNKNOWN, {}, "neither cudnn_tarballs nor this role has them for 7.6.5.32; this"),
        ("nccl", NCCL, {}, "nccl_tarballs has none for 2.18.5. Get it from https://developer.nvidia.com/nccl/"),
        ("nccl", NCCL, {"2.18.5": {"file": "x.tgz", "sha256": "AB" * 32}}, 'set nccl_tarballs: {"2.18.5": {file: PATH'),
        ("nccl", NCCL, {"2.18.5": {"file": "x.tgz", "sha256": "ab"}}, "requires a file and its sha256"),
        ("nccl", NCCL, {"2.18.5": {"sha256": SHA256}}, "requires a file and its sha256"),
    ],
)
def test_an_archive_that_nobody_knows_is_refused(role, item, site, words):
    (refusal,) = tarball(role, item, site)[1]
    assert words in refusal


def test_a_mirror_of_a_known_archive_needs_no_sha256():
    item = {"version": "6.0.21", "cuda": "8.0"}
    request, refusals = tarball("cudnn", item, {"6.0.21": {"file": "http://mirror01/x.tgz"}})
    assert request["archive"] == {"file": "http://mirror01/x.tgz", "sha256": KNOWN["6.0.21/8.0"]["sha256"]}
    assert refusals == []


@pytest.mark.parametrize(("toolkit", "cupti"), [("8.0", True), ("10.2", True), ("11.2", False), ("12.2", False)])
def test_the_linker_finds_the_profilers_library_of_older_toolkits(toolkit, cupti):
    (request,) = work("cuda", cuda_versions=[toolkit])["requested"]
    home = f"/usr/local/cuda-{toolkit}"
    assert request["linker_file"] == f"/etc/ld.so.conf.d/deeplearning-cuda-{toolkit}.conf"
    # Byte by byte as earlier versions wrote it.
    assert request["linker_text"] == f"{home}/lib64\n" + (f"{home}/extras/CUPTI/lib64\n" if cupti else "")


OF_CUDA = [
    "/opt/deeplearning/etc/gpu-check-cuda.json",
    "/usr/local/cuda",
    "/etc/profile.d/deeplearning-cuda.sh",
    "/etc/ld.so.conf.d/deeplearning-cuda-12.2.conf",
    "/usr/local/cuda-12.2/bin/nvcc",
]


@pytest.mark.parametrize(
    ("inputs", "paths"),
    [
        ({"cuda_versions": []}, []),
        ({"cuda_versions": ["12.2"], "cuda_state": "absent", "cuda_source": "runfile"}, []),
        ({"cuda_versions": ["12.2"]}, OF_CUDA),
    ],
)
def test_a_later_run_sees_these_files_of_cuda(inputs, paths):
    assert answer("cuda", "{{ cuda_paths }}", **inputs) == paths
    shorter_paths = [path for path in paths if "profile" not in path]
    assert answer("cuda", "{{ cuda_paths }}", **inputs, cuda_profile_enabled="no") == shorter_paths


@pytest.mark.parametrize("role", CALLERS)
def test_the_published_record_is_the_one_that_is_written(role):
    template = read("_cuda_package", "vars/main")["__cuda_package_record_file"]
    paths = cuda_packages.paths(given(role, **{f"{role}_versions": [ONE[role]]}))
    assert answer("_cuda_package", template, _cuda_package={"name": role}) == paths[0]


@pytest.mark.parametrize(("role", "item"), [("cudnn", EIGHT), ("nccl", NCCL)])
@pytest.mark.parametrize("size", [7, recorded_files.LARGEST_HASHED + 1])
def test_a_library_that_lost_its_content_is_a_problem_of_the_receipt(tmp_path, role, item, size):
    """As after a power failure: the archive's mark is on the disk, the library is empty."""
    paths = answer(role, "{{ " + role + "_paths }}", **{f"{role}_versions": [item], f"{role}_source": "tarball"})
    place = f"/usr/local/cuda-{item['cuda']}/{role}-{item['version']}"
    assert place in paths
    library = tmp_path / place[1:] / "lib" / f"lib{role}.so.{item['version']}"
    for path in (
        library,
        tmp_path / place[1:] / ".deeplearning.json",
        *(tmp_path / path[1:] for path in paths if path != place),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")
    with library.open("r+b") as handle:
        handle.truncate(size)
    assert problem(tmp_path, role, paths) is None
    with library.open("r+b") as handle:
        handle.truncate(0)
    assert str(library.relative_to(tmp_path)) in host_reader.Reader(str(tmp_path)).receipts()[role]["problem"]
