"""The role tensorflow_build: what it decides from its inputs and a host, and what its runner does with sources, logs and wheels."""

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import host_modules
import pytest
import python_files
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils.hadoop_dl_host import tensorflow_builder
from ansible.module_utils.hadoop_dl_host.host_lock import HostLock
from ansible_programs import REPOSITORY
from built_wheel import CHECKER, COMMIT, GIVEN, INFO, KNOWN, TENSORFLOW
from other_processes import ended

from hadoop_dl.data import compat
from hadoop_dl.data import tensorflow_build as build

CUDA = {"version": "10.0", "cudnn": "7.6", "path": "/usr/local/cuda-10.0", "cudnn_path": "/usr/local/cudnn"}


def work(info: dict[str, Any] | None = None, **given: Any) -> Any:
    return build.work({**GIVEN, **given}, {**INFO, **(info or {})})


# --- configure and bazel --------------------------------------------------------------------------------------------


def test_the_answers_are_the_lines_own_with_this_hosts_values():
    answers = work()["spec"]["answers"]
    assert answers["PYTHON_BIN_PATH"] == "/opt/python/bin/python"
    assert answers["PYTHON_LIB_PATH"].endswith("site-packages")
    assert answers["CC_OPT_FLAGS"] == "-msse4.2 -mavx"
    assert answers["TF_NEED_CUDA"] == "0"
    assert "TF_NEED_HDFS" not in answers  # gone since 1.12


def test_the_white_papers_answers_for_1_6():
    """jemalloc, HDFS and Kafka yes; GCP, S3, XLA, GDR, VERBS, OpenCL, TensorRT, clang, MPI no; CUDA 8.0, cuDNN 6, capability 6.0."""
    cuda = {"version": "8.0", "cudnn": "6.0", "path": "/usr/local/cuda-8.0", "cudnn_path": ""}
    old = {"bazel": {**INFO["bazel"], "version": "0.9.0"}, "compiler": {"path": "/usr/bin/gcc", "version": "4.8.5"}}
    toolkit = {
        "cuda_headers": {**INFO["cuda_headers"], "found": ["8000"]},
        "cudnn_headers": {**INFO["cudnn_headers"], "found": ["6", "0", "21"]},
    }
    result = work({**old, **toolkit}, version="1.6.0", cuda=cuda, capabilities=["6.0"])
    assert result["problems"] == []
    answers = result["spec"]["answers"]
    yes = {name for name, value in answers.items() if value == "1" and name.startswith("TF_NEED")}
    assert yes == {"TF_NEED_JEMALLOC", "TF_NEED_HDFS", "TF_NEED_KAFKA", "TF_NEED_CUDA"}
    assert answers["CUDA_TOOLKIT_PATH"] == answers["CUDNN_INSTALL_PATH"] == "/usr/local/cuda-8.0"
    assert (answers["TF_CUDA_VERSION"], answers["TF_CUDNN_VERSION"]) == ("8.0", "6")
    assert answers["TF_CUDA_COMPUTE_CAPABILITIES"] == "6.0"


@pytest.mark.parametrize("row", compat.load().rows("tensorflow_build", "profiles"), ids=lambda row: row["profile"])
@pytest.mark.parametrize("cuda", [{}, CUDA], ids=["cpu", "gpu"])
def test_no_placeholder_of_any_profile_reaches_configure(row, cuda):
    inputs = {**GIVEN, "version": f"{row['lines']['last']}.0", "cuda": cuda, "capabilities": ["7.0"]}
    answers = build.configure_answers(inputs, {**INFO, "clang": {"path": "/usr/bin/clang", "version": "17"}}, row)
    assert [name for name, value in answers.items() if "<" in value] == []
    assert "native" not in answers["CC_OPT_FLAGS"]


def test_an_intersection_without_features_compiles_for_any_cpu():
    assert build.cpu_options([]) == "-mtune=generic"


@pytest.mark.parametrize(
    ("version", "features", "flag"),
    [
        ("1.15.0", {"hdfs": False}, "--config=nohdfs"),
        ("1.15.0", {"kafka": False}, "--config=nokafka"),
        ("2.4.0", {"hdfs": False, "kafka": False}, "--config=nohdfs"),
        ("2.8.0", {"hdfs": True, "kafka": False}, "--define=no_hdfs_support=false"),
    ],
)
def test_switches_of_features_are_flags_where_configure_does_not_ask(version, features, flag):
    assert flag in flags(version, **features)
    assert flag not in flags(version, **{name: not value for name, value in features.items()})


def flags(version: str, **given: Any) -> list[str]:
    return build.build_flags({**GIVEN, "version": version, **given}, build.profile(version))


def test_tensorflow_2_0_gets_no_switch_for_the_kafka_that_it_lacks():
    assert "--config=nokafka" not in flags("2.0.0", kafka=False)


@pytest.mark.parametrize("cuda", [{}, {**CUDA, "version": "12.3", "cudnn": "8.9"}])
def test_the_wheel_of_2_17_is_of_the_project_that_the_built_lock_names(cuda):
    assert "--repo_env=WHEEL_NAME=tensorflow" in flags("2.17.0", cuda=cuda, kafka=False, hdfs=False)


@pytest.mark.parametrize(("memory", "cores", "jobs"), [(32000, 16, 15), (4000, 16, 1), (64000, 4, 4), (1000, 2, 1)])
def test_jobs_are_what_cores_and_memory_allow(memory, cores, jobs):
    assert build.jobs(GIVEN, {**INFO, "memory_mb": memory, "cores": cores}) == jobs


def test_the_memory_of_bazel_is_capped():
    assert work()["spec"]["flags"][-2:] == ["--jobs=15", "--local_ram_resources=31488"]
    old = {"bazel": {**INFO["bazel"], "version": "0.24.1"}}
    assert work(old)["spec"]["flags"][-1] == "--local_resources=31488,15,1.0"


# --- the key --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "given"),
    [
        ({}, {"commit": "6" * 40}),
        ({}, {"cpu_features": ["avx", "avx2"]}),
        ({}, {"kafka": False}),
        ({}, {"flags": ["--copt=-O3"]}),
        ({"compiler": {"path": "gcc", "version": "8.3.1"}}, {}),
        ({"bazel": {**INFO["bazel"], "sha256": "0" * 64}}, {}),
        ({"os": {"short": "el8", "name": "RHEL 8.9"}}, {}),
        ({"python": {**INFO["python"], "abi": "cp27m"}}, {}),
        ({}, {"cuda": CUDA, "capabilities": ["7.0"]}),
    ],
)
def test_the_key_changes_with_what_decides_the_wheel(info, given):
    result = work(info, **given)
    assert result["problems"] == []
    assert result["key"] != work()["key"]


def test_the_key_stays_where_only_the_speed_differs():
    assert work({"memory_mb": 16000}, jobs=3, timeout=60, disk_min_mb=1)["key"] == work()["key"]


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("info", "given", "words"),
    [
        ({}, {"commit": "v1.15.0"}, "must be the 40 hexadecimal digits"),
        ({}, {"source": {}}, "git clone --branch v1.15.0 https://github.com/tensorflow/tensorflow"),
        ({}, {"version": "9.9.9"}, "The build of TensorFlow 9.9.9 is not known"),
        ({}, {"version": "2.18.0", "hdfs": True, "kafka": False}, "cannot be built with hdfs"),
        ({}, {"cpu_features": ["mmx"]}, "but has mmx"),
        ({"memory_mb": 4000}, {}, "8000 MB of memory are required, but this host has 4000 MB"),
        ({"disk_free_mb": 10}, {}, "20000 MB of free disk in /var/lib/deeplearning-build are required"),
        ({"architecture": "ppc64le"}, {}, "this host is ppc64le"),
        ({"foreign_entries": ["source", "thesis.tex"]}, {}, "must be a new or empty directory, because builds write and remove there"),
        ({"tools": {"git": "", "objdump": ""}}, {}, "Install the package binutils"),
        ({"compiler": {"path": "/usr/bin/gcc", "version": "4.8.5"}}, {}, "requires gcc 7.3.1 or later, but /usr/bin/gcc is 4.8.5"),
        ({"compiler": {"path": "", "version": ""}}, {}, "gcc 7.3.1 or later is required, but is missing"),
        ({"bazel": {"path": ""}}, {}, "bazel 0.24.1 to 0.26.1 is required in /opt/bazel/0.26.1/bin/bazel"),
        ({"bazel": {**INFO["bazel"], "version": "0.28.1"}}, {}, "requires bazel 0.24.1 to 0.26.1, but"),
        ({"python": {}}, {}, "does not answer"),
        ({"python": {**INFO["python"], "include": False}}, {}, "Install python-devel for Python 2.7"),
        ({"python": {**INFO["python"], "packages": {}}}, {}, "must have numpy, wheel, setuptools"),
        ({"nvcc": ""}, {"cuda": CUDA, "capabilities": ["7.0"]}, "/usr/local/cuda-10.0/bin/nvcc is missing"),
        ({"cuda_headers": {"path": "", "sha256": "", "found": []}}, {"cuda": CUDA, "capabilities": ["7.0"]}, "cuda.h is missing"),
        ({"cudnn_headers": {"path": "", "sha256": "", "found": []}}, {"cuda": CUDA, "capabilities": ["7.0"]}, "no header was found"),
        ({}, {"cuda": CUDA}, "no host that runs the wheel shows a GPU"),
        ({}, {"cuda": CUDA, "capabilities": ["7.0", "8.0"]}, "does not know the compute capabilities 8.0"),
    ],
)  # fmt: skip
def test_refusals(info, given, words):
    result = work(info, **given)
    assert words in " ".join(result["problems"])
    assert (result["key"], result["spec"]) == ("", {})


def test_everything_that_is_missing_is_named_at_once():
    bare = {"tools": {"git": "", "objdump": ""}, "bazel": {"path": ""}, "python": {}, "disk_free_mb": 1}
    assert len(work(bare)["problems"]) == 5


# --- what logs say --------------------------------------------------------------------------------------------------


def test_a_question_is_recognised_as_it_is_printed():
    output = (
        "You have bazel 0.26.1 installed.\n"
        "Do you wish to build TensorFlow with XLA JIT support? [Y/n]: XLA JIT support will be enabled for TensorFlow.\n\n"
        "Please specify a list of comma-separated CUDA compute capabilities you want to build with.\n"
        "Would you like to interactively configure ./WORKSPACE for Android builds? [y/N]: Not configuring.\n"
    )
    assert tensorflow_builder.unanswered(output) == [
        "Do you wish to build TensorFlow with XLA JIT support?",
        "Please specify a list of comma-separated CUDA compute capabilities you want to build with",
        "Would you like to interactively configure ./WORKSPACE for Android builds?",
    ]
    text = "You have bazel 0.26.1 installed.\nPreconfigured Bazel build configs. You can use any of the below.\nConfiguration finished\n"
    assert tensorflow_builder.unanswered(text) == [], "it asked nothing"


def test_the_last_counters_of_bazel_count():
    log = "[5 / 16] Compiling a.cc\nINFO: x\n[1,204 / 20,011] 8 actions running\n"
    assert tensorflow_builder.counters(log) == [1204, 20011]
    assert tensorflow_builder.counters("Analyzing: target") is None


def new_build(root: Path) -> tensorflow_builder.Build:
    builder = tensorflow_builder.Build(str(root), "key", {"version": "1.15.0", "jobs": 8, "timeout": 60})
    os.makedirs(builder.place)
    return builder


@pytest.mark.parametrize(
    ("log", "status", "words"),
    [
        ("gcc: fatal error: Killed signal terminated program cc1plus", 1, "Lower tensorflow_build_jobs (now 8)"),
        ("Server terminated abruptly (error code: 14)", 37, "ran out of memory"),
        ("", -9, "ran out of memory"),
        ("a.cc: No space left on device", 1, "is full. Free some space there"),
        ("ERROR: a/BUILD:3:1: no such target", 1, "ERROR: a/BUILD:3:1: no such target"),
        # bazelbuild/bazel#11123
        (
            "ERROR: An error occurred during the fetch of repository 'gflags':\n   java.io.IOException: Error downloading "
            "[https://mirror.bazel.build/github.com/gflags/gflags/archive/v2.2.2.tar.gz] to /x/v2.2.2.tar.gz: Network is unreachable",
            1,
            "v2.2.2.tar.gz: Network is unreachable. Name the archive in tensorflow_build_archives",
        ),
        # tensorflow/tensorflow#47815
        (
            "ERROR: An error occurred during the fetch of repository 'io_bazel_rules_docker':\n   Traceback (most recent call last):\n"
            "Error in fail: error running 'git fetch origin refs/heads/*' while working with @io_bazel_rules_docker:\n"
            "fatal: unable to access 'https://github.com/bazelbuild/rules_docker.git/': Could not resolve host: github.com\n"
            "ERROR: Error fetching repository: Traceback (most recent call last):",
            1,
            "rules_docker.git/': Could not resolve host: github.com",
        ),
        # tensorflow/tensorflow#38718
        (
            "ERROR: /tmp/BUILD:29:1: SWIGing calibration_wrapper.i failed (Exit 1)\n/x/process-wrapper: /usr/lib64/libstdc++.so.6: "
            "version `GLIBCXX_3.4.21' not found (required by /x/process-wrapper)",
            1,
            "it has no GLIBCXX_3.4.21",
        ),
    ],
)
def test_why_bazel_ended(tmp_path, log, status, words):
    builder = new_build(tmp_path)
    Path(builder.log).write_text(f"$ ./configure\n\n$ bazel build\n{log}\n", encoding="utf-8")
    answer = tensorflow_builder.processes.Answer(status, "", "", False, "ended")
    assert words in builder.why(answer)
    assert "what is compiled stays" in builder.why(answer)


@pytest.mark.parametrize(("left", "words"), [(100, "is full. Free some space there"), (10**6, "status 36")])
def test_a_disk_that_is_full_is_named_where_no_program_says_so(tmp_path, monkeypatch, left, words):
    """bazel's write of its own files ends in the middle, without an error, and then bazel with status 36."""
    builder = new_build(tmp_path)
    monkeypatch.setattr(tensorflow_builder.os, "statvfs", lambda _: SimpleNamespace(f_bavail=left, f_frsize=4096))
    answer = tensorflow_builder.processes.Answer(36, "", "", False, "bazel version ended with status 36")
    with pytest.raises(tensorflow_builder.Failed, match=words):
        builder.need(answer, "configure must succeed")
    assert words in builder.why(answer)


def test_a_disk_that_is_full_where_the_build_itself_writes_is_named_too(tmp_path, monkeypatch):
    builder = new_build(tmp_path)

    def fill() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(builder, "do_source", fill)
    builder.run()
    status = json.loads((Path(builder.place) / "status.json").read_text(encoding="utf-8"))
    assert "is full. Free some space there. Run the same command again" in status["message"]


def test_the_status_of_a_build_that_filled_the_disk_is_written(tmp_path, monkeypatch):
    builder = new_build(tmp_path)
    Path(builder.reserve).write_bytes(b"0")

    def write(path: str, value: Any) -> None:
        if os.path.exists(builder.reserve):
            raise OSError(28, "No space left on device")
        Path(path).write_text(json.dumps(value), encoding="utf-8")

    monkeypatch.setattr(tensorflow_builder, "write_json", write)
    builder.tell("failed", "build", "The file system is full.")
    assert json.loads((Path(builder.place) / "status.json").read_text(encoding="utf-8"))["state"] == "failed"


@pytest.mark.parametrize("kind", ["link", "directory", "pipe", "of another user"])
def test_only_a_file_of_the_builds_user_is_published(tmp_path, kind):
    source = tmp_path / "tensorflow.whl"
    owner = os.geteuid()
    if kind == "link":
        source.symlink_to("/etc/passwd")
    elif kind == "directory":
        source.mkdir()
    elif kind == "pipe":
        os.mkfifo(source)
    else:
        source.write_bytes(b"wheel")
        owner += 1
    with pytest.raises((tensorflow_builder.Failed, OSError)):
        tensorflow_builder.copy_regular(str(source), str(tmp_path / "published"), owner)
    assert not (tmp_path / "published").exists()


# --- the wheel ------------------------------------------------------------------------------------------------------


UNKNOWN = "ValueError(\"File system scheme 'hdfs' not implemented (file: 'hdfs://localhost:1/')\")"


def check(path: Path, request: dict[str, Any], error: str = KNOWN, first: str = "7.0") -> Any:
    wheel = path / "tensorflow-1.15.0-py3-none-any.whl"
    text = TENSORFLOW.format(error=error, first=first)
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tensorflow-1.15.0.data/purelib/tensorflow/__init__.py", text)
    (path / "request.json").write_text(json.dumps(request), encoding="utf-8")
    argv = [sys.executable, "-s", "-E", str(CHECKER), str(wheel), str(path / "request.json")]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=False).stdout)["problems"]


def test_a_wheel_as_asked_for_passes(tmp_path):
    assert check(tmp_path, {"version": "1.15.0", "hdfs": True, "cuda": False}) == []


@pytest.mark.parametrize(
    ("request_", "error", "first", "words"),
    [
        ({"hdfs": True}, UNKNOWN, "7.0", "hdfs must be true but is false"),
        ({"kafka": True}, KNOWN, "7.0", "kafka must be true but is false"),
        ({"cuda": True}, KNOWN, "7.0", "cuda must be true but is false"),
        ({"version": "1.15.1"}, KNOWN, "7.0", 'version must be "1.15.1" but is "1.15.0"'),
        ({}, KNOWN, "7.5", "product must be [[7.0, 10.0], [15.0, 22.0]]"),
        ({}, KNOWN, "1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_wheel_that_lacks_something_does_not(tmp_path, request_, error, first, words):
    assert words in " ".join(check(tmp_path, request_, error, first))


# --- builds that run, were killed, or are done ----------------------------------------------------------------------


def status(root: Path, key: str, **changes: str) -> None:
    place = root / "builds" / key
    place.mkdir(parents=True)
    fields = {"state": "running", "step": "build", "message": "", "key": key, "log": str(place / "build.log")}
    (place / "status.json").write_text(json.dumps({**fields, **changes}), encoding="utf-8")
    (root / "running.json").write_text(json.dumps({"key": key, "pid": 1}), encoding="utf-8")


def asked(root: Path, key: str) -> dict[str, Any]:
    return host_modules.run("tensorflow_build", root=str(root), key=key, state="asked")


def test_a_build_that_runs_tells_its_counters(tmp_path):
    status(tmp_path, "key")
    (tmp_path / "builds/key/build.log").write_text("$ bazel\n[3 / 9] Compiling\n", encoding="utf-8")
    with HostLock("building", 0, str(tmp_path)):
        result = asked(tmp_path, "key")
    assert (result["build_state"], result["step"], result["actions"]) == ("running", "build", [3, 9])


def test_a_build_whose_process_is_gone_was_stopped_also_if_another_one_runs(tmp_path):
    status(tmp_path, "key")
    assert asked(tmp_path, "key")["build_state"] == "stopped"
    status(tmp_path, "other")
    with HostLock("building", 0, str(tmp_path)):
        assert asked(tmp_path, "key")["build_state"] == "stopped"


def test_while_another_wheel_is_built_a_build_is_refused(tmp_path):
    status(tmp_path, "other")
    with HostLock("building", 0, str(tmp_path)):
        result = host_modules.run("tensorflow_build", root=str(tmp_path), key="key", spec={"version": "1.15.0"})
    assert "One build at a time" in result["msg"]


@pytest.mark.parametrize("told", [True, False])
def test_a_damaged_wheel_of_a_build_that_is_done_is_built_again(tmp_path, told):
    published(tmp_path, "key")
    if told:
        status(tmp_path, "key", state="done", step="publish")
    (tmp_path / "published/key/a.whl").write_bytes(b"other")
    assert asked(tmp_path, "key")["build_state"] == "none"


def imported(kind: str) -> Any:
    """The module, or the action plugin of its name."""
    return python_files.load(REPOSITORY / "plugins" / kind / "tensorflow_build.py")


def starting(root: Path) -> subprocess.Popen[str]:
    """A start of the build "key", whose sources are missing: it ends at its first step."""
    spec = {"version": "1.15.0", "user": os.geteuid(), "bazel": "/x/bazel", "path": ["/usr/bin", "/bin"], "home": str(root), "tag": "v1", "commit": COMMIT, "bundle": "/nowhere.bundle"}  # fmt: skip
    return host_modules.start("tensorflow_build", root=str(root), key="key", spec=spec)


def killed(root: Path, key: str) -> None:
    """The build "key" runs no longer; the last process that told of itself, and is gone, built this key."""
    status(root, "key")
    (root / "running.json").write_text(json.dumps({"key": key, "pid": ended()}), encoding="utf-8")


def test_a_build_that_has_not_told_its_key_yet_is_waited_for(tmp_path):
    """Of two starts at once the second one finds the lock held before the first one has written which wheel it builds."""
    killed(tmp_path, "of a killed build")
    with HostLock("building", 0, str(tmp_path)):
        process = starting(tmp_path)
        time.sleep(2)
        (tmp_path / "running.json").write_text(json.dumps({"key": "key", "pid": os.getpid()}), encoding="utf-8")
        result = host_modules.answer(process)
    assert (result.get("msg"), result["changed"], result["build_state"]) == (None, False, "running")


def test_who_asks_for_a_killed_build_does_not_hold_up_its_resumption(tmp_path):
    """A question takes the lock for a moment; the start of the build must not take it for a build."""
    killed(tmp_path, "key")
    with HostLock("a question", 0, str(tmp_path)):
        process = starting(tmp_path)
        time.sleep(2)
    assert host_modules.answer(process)["changed"] is True


def test_a_wheel_that_another_start_has_just_published_is_not_built_again(tmp_path):
    with HostLock("building", 0, str(tmp_path)):
        process = starting(tmp_path)
        time.sleep(2)
        published(tmp_path, "key")
    result = host_modules.answer(process)
    assert (result["changed"], result["build_state"]) == (False, "done")


def test_a_lock_whose_holder_tells_nothing_is_named(tmp_path):
    with HostLock("something", 0, str(tmp_path)):
        result = host_modules.answer(starting(tmp_path))
    assert "is held, but no build tells of itself" in result["msg"]
    assert f"fuser -v {tmp_path}/.lock" in result["msg"]


def test_a_build_that_ends_while_it_is_asked_for_has_its_end(tmp_path, monkeypatch):
    """It fails after its status was read, and before its lock is looked at."""
    status(tmp_path, "key")
    module = imported("modules")
    read = tensorflow_builder.read_json

    def ends(root: str) -> bool:
        path = tmp_path / "builds/key/status.json"
        path.write_text(json.dumps({**read(str(path)), "state": "failed", "message": "why"}), encoding="utf-8")
        return False

    monkeypatch.setattr(module, "is_held", ends)
    result = module.progress(str(tmp_path), "key")
    assert (result["build_state"], result["message"]) == ("failed", "why")


def published(root: Path, key: str) -> None:
    place = root / "published" / key
    place.mkdir(parents=True)
    (place / "a.whl").write_bytes(b"wheel")
    digest = tensorflow_builder.atomic_files.sha256_of(str(place / "a.whl"))
    (place / "provenance.json").write_text(json.dumps({"wheel": {"name": "a.whl", "sha256": digest}}), encoding="utf-8")


# --- following a build ----------------------------------------------------------------------------------------------


KEY = "0123456789abcdef"
DECIDED = {"version": "1.15.0", "commit": "c0ffee"}
PROVENANCE = {
    "wheel": {"name": f"tf-1-0{KEY[:12]}-cp27.whl", "built_as": "tf-1-cp27.whl", "sha256": "ab" * 32, "size": 9},
    "symbols": {"GLIBC": "2.14"},
    "check": {"hdfs": True},
    "built": "2026-11-22T16:35:25Z",
    "seconds": 3,
    "key": KEY,
    "schema": 1,
    **DECIDED,
}
DONE = {"build_state": "done", "step": "publish", "provenance": PROVENANCE}
RUNNING = {"build_state": "running", "step": "build", "actions": [3, 9], "log": "/x/build.log"}


def follow(answers: list[Any], check: bool = False, started: dict[str, Any] | None = None) -> dict[str, Any]:
    """The action plugin on a host that answers this, one question after the other; an exception is raised."""
    module = imported("action")
    module.POLL = 0
    action = module.ActionModule.__new__(module.ActionModule)
    action.args = {"root": "/x", "key": KEY, "spec": {"version": "1.15.0", "provenance": DECIDED}}
    action._task = SimpleNamespace(check_mode=check, action="tensorflow_build", args=action.args)
    action.variables, action.changed, action.diff = {"inventory_hostname": "build01"}, False, []
    results = [{"changed": True, **(started or RUNNING)}, *answers]

    def ask(name: str, **_: Any) -> Any:
        answer = results.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    action.ask_module = ask
    return {**action.act(), "changed": action.changed, "left": results}


def test_a_build_is_followed_to_its_end():
    assert follow([RUNNING, RUNNING, DONE]) == {"provenance": PROVENANCE, "changed": True, "left": []}


@pytest.mark.parametrize(
    "change",
    [
        {"wheel": {**PROVENANCE["wheel"], "name": f"../../../secret-0{KEY[:12]}-.whl"}},
        {"wheel": {**PROVENANCE["wheel"], "name": "numpy-1-cp27.whl"}},
        {"wheel": {**PROVENANCE["wheel"], "name": ["a.whl"]}},
        {"wheel": {**PROVENANCE["wheel"], "sha256": "{{ x }}"}},
        {"wheel": {**PROVENANCE["wheel"], "size": 10**400}},
        {"wheel": None},
        {"symbols": {"GLIBC": "2.14\nevil"}},
        {"built": "{{ x }}"},
    ],
)
def test_a_name_that_a_build_host_answers_is_no_path_of_the_controller(change):
    with pytest.raises(AnsibleActionFail, match="build01 must answer what wheel it built"):
        follow([{**DONE, "provenance": {**PROVENANCE, **change}}])


def test_what_was_decided_about_a_wheel_is_not_the_hosts_to_say():
    provenance = {**PROVENANCE, "version": "1.15.0\nevil==1", "commit": "{{ x }}", "more": "text"}
    assert follow([{**DONE, "provenance": provenance}])["provenance"] == PROVENANCE


def test_a_lost_connection_does_not_end_it():
    failure = AnsibleConnectionFailure("No route to host")
    assert follow([RUNNING, failure, failure, DONE])["left"] == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"build_state": "failed", "step": "build", "message": "The disk is full.\x1b[2J"}, "The disk is full.\ufffd"),
        ({"build_state": "stopped", "step": "build", "message": ""}, "It was stopped in the step build"),
        ({"failed": True, "msg": "no Python"}, "no Python"),
    ],
)
def test_a_build_that_ends_without_a_wheel_says_why(answer, words):
    with pytest.raises(AnsibleActionFail) as refusal:
        follow([RUNNING, answer])
    assert words in str(refusal.value)


def test_in_check_mode_nothing_is_followed():
    none = {"build_state": "none", "step": "", "message": ""}
    assert follow([], check=True, started=none) == {"provenance": {}, "changed": True, "left": []}
