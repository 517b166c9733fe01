"""The role bazel: what it decides from its inputs and a host's state, and what its modules do with executables of bazel."""

import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import host_modules
import pytest
from ansible.module_utils.hadoop_dl_host import bazel_versions
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock
from ansible_programs import REPOSITORY, tasks_in
from bazel_stand_in import executable
from python_files import write_script

from hadoop_dl.data import bazel
from hadoop_dl.plan import forms

SHA256 = "ab" * 32
TOOLS = {
    **dict.fromkeys(("compiler", "python", "bash", "zip", "unzip", "which"), "/usr/bin/x"),
    "jdk": {"javac": "/usr/bin/javac", "version": "8", "home": ""},
}
HOST = {
    "root": "/opt/bazel",
    "home": "/home/builder",
    "user": "root",
    "is_root": True,
    "architecture": "x86_64",
    "manager": "dnf",
    "versions": {},
    "leftovers": [],
    "work": "/opt/bazel/.deeplearning",
    "package": {},
    "link": {"path": "/home/builder/bin/bazel", "target": ""},
    "tools": {},
}
USER = {**HOST, "root": "/home/builder/bazel", "user": "builder", "is_root": False, "tools": TOOLS}


def work(host: dict[str, Any] | None = None, **given: Any) -> Any:
    inputs = {"state": "present", "versions": ["0.26.1"], "source": "binary", "package": "bazel"}
    files = {version: {"file": f"http://mirror01/{version}", "sha256": SHA256} for version in ("0.11.1", "0.26.1")}
    return bazel.work({**inputs, "files": files, **given}, {**HOST, **(host or {})})


def installed(source: str = "binary", **mark: Any) -> dict[str, Any]:
    return {"managed": True, "complete": True, "source": source, "sha256": SHA256, "package": "", **mark}


def versions(items: list[dict[str, Any]]) -> list[str]:
    return [item["version"] for item in items]


# --- what is installed and removed ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("has", "named", "installs"),
    [
        ({"0.26.1": installed()}, ["0.26.1", "0.11.1", "0.11.1"], ["0.11.1"]),
        ({"0.26.1": installed(complete=False)}, ["0.26.1"], ["0.26.1"]),
        ({"0.26.1": installed(sha256="cd" * 32)}, ["0.26.1"], ["0.26.1"]),  # another one in the inventory
        ({"0.11.1": installed(), "0.26.1": installed()}, ["0.26.1"], []),
    ],
)
def test_what_is_missing_incomplete_or_another_is_installed_once_and_the_rest_stays(has, named, installs):
    planned_work = work({"versions": has}, versions=named)
    assert (versions(planned_work["install"]), planned_work["remove"]) == (installs, [])


@pytest.mark.parametrize(
    ("named", "left"), [(["0.11.1"], False), ([], True), (["0.11.1", "0.26.1"], True), (["0.9.0"], False)]
)
def test_only_what_this_project_installed_is_removed(named, left):
    host_versions = {"0.11.1": installed(), "0.26.1": installed(), "1.0.0": {"managed": False, "complete": False}}
    planned_work = work({"versions": host_versions}, state="absent", versions=named)
    assert versions(planned_work["remove"]) == [name for name in named or ["0.11.1", "0.26.1"] if name != "0.9.0"]
    assert planned_work["nothing_left"] is left


def test_the_repository_leaves_with_the_last_version_that_came_from_it():
    host_versions = {"0.11.1": installed("repository"), "0.26.1": installed("repository"), "1.0.0": installed()}
    partial_removal = work({"versions": host_versions}, state="absent", versions=["0.11.1"])
    full_removal = work({"versions": host_versions}, state="absent", versions=["0.11.1", "0.26.1"])
    assert (partial_removal["repository_used"], partial_removal["repository_leaves"]) == (True, False)
    assert (full_removal["repository_used"], full_removal["repository_leaves"]) == (False, True)
    assert work({"versions": host_versions}, state="absent", versions=["1.0.0"])["repository_leaves"] is False


@pytest.mark.parametrize(
    ("package", "mark", "ours"),
    [
        ({}, "", "bazel-0.26.1"),
        ({"name": "bazel-0.26.1-1.x86_64", "version": "0.26.1"}, "", ""),
        ({"name": "bazel-0.28.1-1.x86_64", "version": "0.28.1"}, "bazel-0.28.1-1.x86_64", "bazel-0.26.1"),
        ({"name": "bazel-0.28.1-1.x86_64", "version": "0.28.1"}, "bazel-0.28.1", "bazel-0.26.1"),
    ],
)
def test_a_package_that_the_site_installed_is_not_recorded_as_ours(package, mark, ours):
    host_versions = {"0.28.1": installed("repository", package=mark)}
    planned_work = work({"versions": host_versions, "package": package}, source="repository")
    assert planned_work["problems"] == []
    assert [item["package"] for item in planned_work["install"]] == [ours]


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "given", "words"),
    [
        ({}, {"versions": ["newest"]}, "exact versions"),
        ({}, {"versions": ["0.9.0"]}, "bazel-0.9.0-linux-x86_64 with its sha256, but bazel_files has none"),
        ({}, {"files": {"0.26.1": {"file": "x", "sha256": "abc"}}}, "bazel_files has none for it"),
        ({"architecture": "ppc64le"}, {}, "for x86_64, but this host is ppc64le"),
        ({"versions": {"0.26.1": {"managed": False, "complete": False}}}, {}, "not managed by this project"),
        ({"versions": {"0.26.1": installed("repository")}}, {}, "is from repository"),
        ({"manager": ""}, {"source": "repository"}, "requires dnf or yum"),
        (
            {"package": {"name": "bazel-0.24.0-1.x86_64", "version": "0.24.0"}},
            {"source": "repository"},
            "bazel-0.24.0-1.x86_64, which this project did not install",
        ),
        ({**USER, "is_root": True}, {"source": "bootstrap"}, "but this is root"),
        (USER, {"source": "bootstrap", "versions": ["0.9.0"]}, "bazel-0.9.0-dist.zip with its sha256"),
        (USER, {"source": "bootstrap", "files": {"0.26.1": {"file": "a.zip", "sha256": SHA256}}}, "requires URLs"),
        ({**USER, "link": {"path": "/home/builder/bin/bazel", "target": "-"}}, {"source": "bootstrap"}, "Rename it"),
        (
            {**USER, "tools": {**TOOLS, "jdk": {"javac": "/x/javac", "version": "11", "home": ""}}},
            {"source": "bootstrap", "versions": ["0.11.1"]},
            "requires JDK 8, but /x/javac is version 11",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(host, given, words):
    (problem,) = work(host, **given)["problems"]
    assert words in problem
    assert problem.endswith(".")


def test_everything_that_is_missing_for_a_bootstrap_is_one_list():
    tools = {**dict.fromkeys(TOOLS, ""), "jdk": {"javac": "", "version": "", "home": ""}}
    (problem,) = work({**USER, "tools": tools}, source="bootstrap", versions=["0.11.1"])["problems"]
    assert "a JDK (javac): 8; a C++ compiler (g++); Python; bash; zip; unzip; which" in problem


def test_a_bootstrap_that_has_everything_is_not_refused_nor_a_jdk_that_only_unverified_data_is_against():
    assert work(USER, source="bootstrap", versions=["0.11.1", "0.26.1"])["problems"] == []
    jdk = {"javac": "/x/javac", "version": "17", "home": ""}
    assert work({**USER, "tools": {**TOOLS, "jdk": jdk}}, source="bootstrap")["problems"] == []


# --- executables ----------------------------------------------------------------------------------------------------


def put(root: Path, program: Path, version: str = "0.26.1", **more: Any) -> dict[str, Any]:
    return host_modules.run(
        "bazel_program", root=str(root), version=version, program=str(program), source="binary", sha256=SHA256, **more
    )


@pytest.mark.parametrize("old", [False, True])
def test_an_executable_is_known_by_its_own_version(tmp_path, old):
    program = executable(tmp_path / "bazel", "0.26.1", old=old)
    assert bazel_versions.label(str(program)) == "0.26.1"
    assert bazel_versions.problem(str(program), "0.26.1") is None
    assert bazel_versions.problem(str(program), "0.26.2") == "it is bazel 0.26.1"
    assert bazel_versions.problem(str(program), "0.26") == "it is bazel 0.26.1"
    binary = executable(tmp_path / "compiled", "4.2.3- (@non-git)", old=old)
    assert bazel_versions.problem(str(binary), "4.2.3") is None


def test_debians_has_the_version_of_its_package(tmp_path, monkeypatch):
    """Debian's bazel-bootstrap answers "no_version" itself, and has its server in /usr/share/bazel; dpkg-query's answers are those of Debian 12."""
    answers = 'case $1 in --search) [ "$2" = /usr/bin/bazel-4 ] && echo "bazel-bootstrap: $2";; --show) printf "4.2.3+ds-9";; esac'
    program = write_script(tmp_path / "dpkg-query", answers)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bazel_versions.packaged("/usr/bin/bazel-4") == "4.2.3"
    assert bazel_versions.packaged("/opt/bazel") is None
    program.unlink()
    assert bazel_versions.packaged("/usr/bin/bazel-4") is None


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\necho bazel\n", b"PK\x03\x04 broken"])
def test_another_file_is_no_bazel(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    assert "no executable of bazel" in str(bazel_versions.problem(str(tmp_path / "file"), "0.26.1"))


def test_an_executable_for_a_newer_c_library_is_refused(tmp_path, monkeypatch):
    """As ldd of RHEL 6 answers about an executable for RHEL 7."""
    answer = 'echo "$1: /lib64/libc.so.6: version \\`GLIBC_2.17\' not found (required by $1)" >&2'
    write_script(tmp_path / "ldd", answer)
    program = executable(tmp_path / "bazel", "0.26.1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert bazel_versions.problem(str(program), "0.26.1") == "this host has no GLIBC_2.17"


def test_a_version_is_complete_with_its_mark_or_not_there(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    answer = put(root, executable(tmp_path / "bazel", "0.26.1"))
    assert answer["changed"] is True
    entry = bazel_versions.versions(str(root))["0.26.1"]
    assert (entry["managed"], entry["complete"], entry["source"], entry["sha256"]) == (True, True, "binary", SHA256)
    assert subprocess.run([answer["path"]], check=False).returncode == 0
    answer = put(root, executable(tmp_path / "other", "0.27.0"), "0.28.0")
    assert "must be bazel 0.28.0, but it is bazel 0.27.0" in answer["msg"]
    assert sorted(os.listdir(root)) == [".lock", "0.26.1"]


def test_a_damaged_version_is_replaced(tmp_path):
    program = executable(tmp_path / "bazel", "0.26.1")
    put(tmp_path, program)
    place = tmp_path / "0.26.1" / "bin" / "bazel"
    place.write_bytes(b"")
    assert bazel_versions.versions(str(tmp_path))["0.26.1"]["complete"] is False
    put(tmp_path, program)
    assert place.read_bytes() == program.read_bytes()


def test_what_a_killed_run_left_is_removed_and_is_no_version(tmp_path):
    (tmp_path / ".0.26.1.new-999999999" / "bin").mkdir(parents=True)
    assert bazel_versions.versions(str(tmp_path)) == {}
    put(tmp_path, executable(tmp_path / "bazel", "0.26.1"))
    assert sorted(os.listdir(tmp_path)) == [".lock", "0.26.1", "bazel"]


def test_a_killed_run_leaves_a_mark_that_names_the_package(tmp_path):
    arguments = {"root": str(tmp_path), "version": "0.26.1", "source": "repository", "package": "bazel-0.26.1"}
    assert host_modules.run("bazel_program", state="begun", **arguments)["changed"] is True
    version = bazel_versions.versions(str(tmp_path))["0.26.1"]
    assert (version["managed"], version["complete"], version["package"]) == (True, False, "bazel-0.26.1")
    assert host_modules.run("bazel_program", state="begun", **arguments)["changed"] is False
    package = {"name": "bazel-0.26.1-1.x86_64", "version": "0.26.1"}
    host_facts = {"versions": {"0.26.1": version}, "package": package}
    assert [item["package"] for item in work(host_facts, source="repository")["install"]] == ["bazel-0.26.1"]
    removals = work(host_facts, source="repository", state="absent")["remove"]
    assert [item["installed_package"] for item in removals] == ["bazel-0.26.1"]


def test_one_run_at_a_time_changes_the_versions(tmp_path):
    with HostLock("another run", root=str(tmp_path / "root")):
        answer = put(tmp_path / "root", executable(tmp_path / "bazel", "0.26.1"), wait=0)
    assert "Only one run at a time" in answer["msg"]
    assert bazel_versions.versions(str(tmp_path / "root")) == {}


def test_check_mode_changes_nothing(tmp_path):
    answer = put(tmp_path, tmp_path / "not-fetched", _ansible_check_mode=True)
    assert answer["changed"] is True
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_compilation_has_left_leaves_with_the_versions(tmp_path):
    put(tmp_path, executable(tmp_path / "bazel", "0.26.1"))
    for name in ("bootstrap-0.26.1.log", "of_the_user", "bootstrap-0.11.1.log"):
        (tmp_path / name).touch()
    for name in ("download-0.11.1", "source-0.11.1-abababababab", "source-0.26.1-abababababab", "tmp"):
        (tmp_path / ".deeplearning" / name).mkdir(parents=True)
    leftover_names = ["bootstrap-0.11.1.log", ".deeplearning"]
    leftovers = host_modules.run("bazel_info", root=str(tmp_path))["bazel_info"]["leftovers"]
    assert leftovers == [str(tmp_path / name) for name in leftover_names]
    assert work({"leftovers": leftovers}, state="absent")["leftovers"] == leftovers
    assert work({"leftovers": leftovers})["leftovers"] == []  # a compilation may be running


def test_what_the_user_has_in_the_directory_is_no_leftover(tmp_path):
    """It may be ~/bazel, and these names are anybody's."""
    for name in (".download-0.11.1", ".source-0.11.1-abababababab", "bootstrap-0.11.1.log", "bootstrap.sh", "tmp"):
        (tmp_path / name).mkdir()
    assert host_modules.run("bazel_info", root=str(tmp_path))["bazel_info"]["leftovers"] == []


def test_what_is_not_managed_by_this_project_is_neither_replaced_nor_removed(tmp_path):
    (tmp_path / "root" / "0.26.1").mkdir(parents=True)
    assert "not managed" in put(tmp_path / "root", executable(tmp_path / "bazel", "0.26.1"))["msg"]
    answer = host_modules.run("bazel_program", root=str(tmp_path / "root"), version="0.26.1", state="absent")
    assert answer["changed"] is False
    assert (tmp_path / "root" / "0.26.1").is_dir()


def test_no_secret_input_is_in_a_command_line_through_environment():
    """The keyword `environment` of a task is in the command lines of ssh and of the host."""
    secrets = {name for name, limits in forms.limits().items() if limits.get("secret")}
    assert "bazel_environment" in secrets
    files = [*REPOSITORY.glob("roles/*/*/*.yml"), *REPOSITORY.glob("playbooks/**/*.yml")]
    tasks = [task for file in files for task in tasks_in(file)]
    assert [task["name"] for task in tasks if any(name in str(task.get("environment")) for name in secrets)] == []


def test_the_environment_of_a_bootstrap_is_in_no_output(tmp_path):
    environment = {"HTTPS_PROXY": "http://service:a-secret@proxy:3128", "JOBS": "2"}
    script = 'echo "$HTTPS_PROXY $JOBS"; tr "\\0" " " < /proc/$PPID/cmdline'
    argv = ["sh", "-c", script]
    answer = host_modules.run("locked_command", argv=argv, purpose="it", root=str(tmp_path), environment=environment)
    assert answer["stdout"].splitlines()[0] == "******** 2"
    assert "a-secret" not in str(answer)
    assert "a-secret" not in str(host_modules.run("bazel_info", tools=True, environment=environment))


def test_a_bootstrap_has_no_sudo_and_no_network(tmp_path):
    tasks = tasks_in(REPOSITORY / "roles/bazel/tasks/install_bootstrap.yml")
    [command] = [task["locked_command"] for task in tasks if "locked_command" in task]
    argv = ["sh", "-c", "grep NoNewPrivs /proc/self/status; grep -c : /proc/net/dev"]
    answer = host_modules.run("locked_command", argv=argv, purpose="it", root=str(tmp_path), foreign=command["foreign"])
    assert answer["stdout"].split() == ["NoNewPrivs:", "1", "1"]


def test_the_tools_of_a_bootstrap_are_those_that_compile_sh_would_find(tmp_path):
    for path, text in (("jdk/bin/javac", "echo 'javac 1.8.0_352' >&2"), ("bin/g++", ""), ("bin/unzip", "")):
        write_script(tmp_path / path, text)
    environment = {"PATH": str(tmp_path / "bin"), "JAVA_HOME": str(tmp_path / "jdk")}
    tools = host_modules.run("bazel_info", tools=True, environment=environment)["bazel_info"]["tools"]
    assert tools["jdk"] == {"javac": f"{tmp_path}/jdk/bin/javac", "version": "8", "home": f"{tmp_path}/jdk"}
    assert tools["compiler"] == str(tmp_path / "bin/g++")
    assert (tools["zip"], tools["which"], tools["python"]) == ("", "", "")


# --- the program that compiles --------------------------------------------------------------------------------------


def compile_once(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    with zipfile.ZipFile(folder / "dist.zip", "w") as archive:
        archive.writestr("compile.sh", script)
    program = REPOSITORY / "roles/bazel/files/bootstrap.sh"
    argv = [str(program), *(str(folder / name) for name in ("dist.zip", "source", "log"))]
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


WORKS = 'echo "in $TMPDIR"; mkdir output; echo x > output/bazel; chmod 755 output/bazel\n'


def test_a_compilation_keeps_its_log_and_is_not_repeated(tmp_path):
    assert compile_once(tmp_path, WORKS).returncode == 0
    assert (tmp_path / "log").read_text() == f"in {tmp_path}/tmp/source\n"
    assert compile_once(tmp_path, "exit 1\n").returncode == 0  # nobody waited for the first one


@pytest.mark.parametrize("script", ["echo 'ERROR: no JDK' >&2\nexit 1\n", "echo 'ERROR: no JDK'\n"])
def test_a_compilation_that_fails_or_makes_nothing_begins_again(tmp_path, script):
    completed = compile_once(tmp_path, script)
    assert (completed.returncode, completed.stderr) == (1, "ERROR: no JDK\n")
    assert compile_once(tmp_path, WORKS).returncode == 0


def test_what_a_killed_compilation_left_in_tmpdir_is_gone_when_the_next_one_begins(tmp_path):
    compile_once(tmp_path, 'mkdir "$TMPDIR/bazel_killed"\nkill -KILL $PPID $$\n')
    (tmp_path / "tmp/of_the_user").mkdir()
    completed = compile_once(tmp_path, 'ls "$TMPDIR"\n' + WORKS)
    assert (completed.returncode, (tmp_path / "log").read_text().count("bazel_killed")) == (0, 0)
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == ["of_the_user"]


def test_the_last_words_are_those_of_a_real_bazel_without_the_codes_of_a_terminal(tmp_path):
    progress = r"\r\033[1A\033[K\033[32m[510 / 1,687]\033[0m 2 actions running\n"
    error = r"\033[31m\033[1mERROR: \033[0mno such package\n\n\nERROR: Could not build Bazel\n"
    completed = compile_once(tmp_path, f"printf '{progress}{error}' >&2\nexit 1\n")
    assert completed.stderr == "[510 / 1,687] 2 actions running\nERROR: no such package\nERROR: Could not build Bazel\n"
