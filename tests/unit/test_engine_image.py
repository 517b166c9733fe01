"""Engine images: the Dockerfile of every stack, and the module that builds them, with a stand-in of Docker's command."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker_stand_in
import host_modules
import pytest
import python_files
from ansible.module_utils.hadoop_dl_host import engine_docker, source_wheels
from engine_requests import BASE, CPU, GPU, WITH_WHEELS, given
from faulty_server import Index, serving
from interpreters import HOST_PYTHONS

from hadoop_dl.data import engine_image, stacks
from hadoop_dl.data.engine_image import EngineError

REPOSITORY = Path(__file__).resolve().parents[2]
PROBE = REPOSITORY / "roles/cdsw_engine/files/engine_probe.py"
KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nbWluZQ==\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n"
CUDA = {
    "cuda_packages": ["cuda-libraries-10-0=10.0.130-1", "libcudnn7=7.6.5.32-1+cuda10.0"],
    "cuda_repository": "http://mirror01/apt/ubuntu1804",
    "cuda_key": KEY,
}


def text_of(work: dict[str, Any], name: str = "Dockerfile") -> str:
    return base64.b64decode(work["files"][name]).decode()


# What is built.


@pytest.mark.parametrize("name", [name for name in stacks.stack_names() if not stacks.load_stack(name).is_built])
def test_every_stack_has_a_dockerfile_whose_files_are_there(name):
    stack = stacks.load_stack(name)
    for python in stack.pythons:
        work = engine_image.work(given(name, python=python))
        lines = text_of(work).splitlines()
        assert lines[1] == f"FROM {BASE}"
        files = [word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]]
        assert sorted(files) == sorted(set(work["files"]) - {"Dockerfile"})
        assert not [line for line in lines if " pip " in line]  # the build has a network
        installs = work["install"].split(" && ")[:-1]
        assert installs
        options = (f"python{python} -m pip install ", " --no-index ", " --only-binary :all: ", " --require-hashes ")
        assert all(option in line for line in installs for option in options)
        requirements = "".join(text_of(work, file) for file in work["files"] if file.startswith("requirements"))
        entries = {entry.sha256: entry for entry in stack.lock(python).entries if entry.project != "virtualenv"}
        assert {entry["sha256"] for entry in work["wheels"]} == set(entries)
        hashes = {sha256 for sha256, entry in entries.items() if source_wheels.is_wheel(entry.name)}
        hashes |= {source_wheels.RECIPES[sha256].sha256 for sha256 in set(entries) - hashes}
        assert set(re.findall(r"(?:[.]whl|==\S+) --hash=sha256:(\w{64})$", requirements, re.MULTILINE)) == hashes
        assert bool(stack.version("cuda")) is any(line.startswith("ENV LD_LIBRARY_PATH=") for line in lines)


def test_the_digest_changes_with_everything_that_is_built_and_with_nothing_else():
    requests = (given(), given(base=BASE + "4"), given(GPU), given(GPU, **CUDA))
    digests = [engine_image.work(request)["digest"] for request in requests]
    assert len(set(digests)) == 4
    assert engine_image.work(given(mirror_url="http://other:8900"))["digest"] == digests[0]
    assert engine_image.work(given())["digest"] == digests[0]


def test_cuda_comes_from_packages_where_the_stack_has_none_among_its_own():
    work = engine_image.work(given(GPU, **CUDA))
    (line,) = [line for line in text_of(work).splitlines() if "apt-get" in line]
    assert "--no-install-recommends cuda-libraries-10-0=10.0.130-1 libcudnn7=7.6.5.32-1+cuda10.0 &&" in line
    assert line.count("Dir::Etc::SourceParts=/dev/null") == 2  # no repository of the base
    assert text_of(work, "cuda.list") == "deb http://mirror01/apt/ubuntu1804 /\n"
    repositories = "http://mirror01/deb/cuda http://mirror01/deb/cudnn"
    two = engine_image.work(given(GPU, **{**CUDA, "cuda_repository": repositories}))
    assert text_of(two, "cuda.list") == "deb http://mirror01/deb/cuda /\ndeb http://mirror01/deb/cudnn /\n"
    assert base64.b64decode(work["files"]["cuda.gpg"]) == b"mine"
    assert work["questions"]["libraries"] == ["libcudart.so.10.0", "libcublas.so.10.0", "libcudnn.so.7"]
    assert engine_image.work(given(WITH_WHEELS))["questions"]["libraries"] == []


@pytest.mark.parametrize(
    ("cuda", "cudnn", "expected"),
    [
        ("8.0", "6", "libcudart.so.8.0 libcublas.so.8.0 libcudnn.so.6"),
        ("10.1", "7.6", "libcudart.so.10.1 libcublas.so.10 libcudnn.so.7"),
        ("11.2", "8.1", "libcudart.so.11.0 libcublas.so.11 libcudnn.so.8"),
        ("12.2", None, "libcudart.so.12 libcublas.so.12"),
        (None, None, ""),
    ],
)
def test_the_libraries_by_the_names_that_tensorflow_loads(cuda, cudnn, expected):
    assert " ".join(engine_image.libraries(cuda, cudnn)) == expected


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"stack": "tf1.15"}, "none is called 'tf1.15'"),
        ({"python": "3.7"}, "is made for Python 3.6, but a lock for 3.7 was requested"),
        ({"base": ""}, "cdsw_engine_base must name Cloudera's engine image on the build host"),
        ({"base": "x\nRUN rm -r /"}, "cdsw_engine_base must name"),
        ({"mirror_url": "http://me:s3cret@mirror01"}, "without user and password, but is not"),
        (
            {"stack": "tf2.21-cpu-py311", "version": "13"},
            "Engine 13 has Python 2.7 and 3.6, but tf2.21-cpu-py311 requires Python 3.11. Stacks for this engine: tf1.15-cpu-py27-el7",
        ),
        (
            {"stack": "tf1.15-cpu-py36-el8", "version": "10"},
            "Engine 10 is Ubuntu 16.04 with glibc 2.23, but tf1.15-cpu-py36-el8 requires glibc 2.28 or later.",
        ),
        (CUDA, f"{CPU} uses no CUDA, but cdsw_engine_cuda_packages are named"),
        ({**CUDA, "stack": WITH_WHEELS}, "has CUDA among its packages, but"),
        (
            {**CUDA, "stack": GPU, "cuda_packages": ["libcudnn7"]},
            "entries such as cuda-libraries-10-0=10.0.130-1, but has libcudnn7",
        ),
        ({**CUDA, "stack": GPU, "cuda_key": ""}, "come from a repository that is signed"),
        ({**CUDA, "stack": GPU, "cuda_key": "key"}, "must be an armoured public key"),
    ],
)
def test_what_cannot_work_is_refused_before_a_host_is_asked(changed, words):
    with pytest.raises(EngineError) as error:
        engine_image.work(given(**{"stack": CPU, **changed}))
    assert words in str(error.value)
    assert "s3cret" not in str(error.value)


# The module, with a stand-in of Docker's command.


class Host:
    def __init__(self, directory: Path, mirror: Index, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory, self.file, self.mirror = directory, directory / "docker.json", mirror
        base = {"python": "3.6.9", "wide": True, "glibc": "2.27", "pip": "9.0.3", "uid": 8536}
        base["system"] = "Ubuntu 18.04.6 LTS"
        image = {"problems": [], "driver": False, "uid": 8536}
        self.save(
            images={BASE: {"id": "sha256:" + "0" * 64, "size": 3 * 10**9, "labels": {}}},
            calls=[], fail="", held=[], size=4 * 10**9, root=str(directory), gpu_check="PASS",
            programs=["python3.6"], base=base, image=image,
        )  # fmt: skip
        (directory / "bin").mkdir()
        program = directory / "bin/docker"
        python_files.write_program(program, docker_stand_in, self.file)
        monkeypatch.setenv("PATH", str(directory / "bin"), prepend=":")
        self.record = directory / "opt/etc/cdsw_engine.json"

    def save(self, **changed: Any) -> None:
        state = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.file.write_text(json.dumps({**state, **changed}))

    @property
    def state(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())

    @property
    def images(self) -> set[str]:
        return set(self.state["images"]) - {BASE}

    def calls(self, command: str) -> list[list[str]]:
        return [call for call in self.state["calls"] if call[0] == command]

    def run(self, **changed: Any) -> dict[str, Any]:
        work = engine_image.work(given(changed.pop("stack", CPU), **changed.pop("given", {})))
        argument_names = ("stack", "python", "glibc", "digest", "files", "questions", "megabytes")
        arguments = {name: work[name] for name in argument_names}
        self.save(programs=[f"python{work['python']}"])
        places: dict[str, Any] = {"archives": str(self.directory / "engines"), "record": str(self.record)}
        # One small file in place of the stack's.
        wheel = {**self.mirror.artifact("six-1.0-py3-none-any.whl", b"six"), "file": "six-1.0-py3-none-any.whl"}
        places.update(mirror_url=self.mirror.url, wheels=[wheel], install=work["install"])
        constants = {"base": BASE, "socket": "/run/docker.sock", "probe": PROBE.read_text(), **places}
        return host_modules.run("engine_image", **{**arguments, **constants, **changed})


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with serving(Index()) as mirror:
        yield Host(tmp_path, mirror, monkeypatch)


def test_an_image_is_built_tested_saved_and_then_active(host):
    answer = host.run()
    assert (answer["changed"], answer["built"]) == (True, True), answer
    assert re.fullmatch(rf"deeplearning-engine:{CPU}-[0-9a-f]{{12}}", answer["image"])
    assert host.images == {answer["image"]}  # its draft is gone
    record = json.loads(host.record.read_text())
    assert record["active"] == answer["image"]
    content = Path(answer["archive"]).read_bytes()
    assert content.decode() == f"all of {answer['image']}"
    expected = f"{hashlib.sha256(content).hexdigest()}  {Path(answer['archive']).name}\n"
    assert Path(answer["archive"] + ".sha256").read_text() == expected
    assert host.state["modes"]["gpu-check"] == 0o755
    for call in host.calls("run"):
        assert call[call.index("--user") + 1] == "8536:8536"
        assert call[call.index("--network") + 1] == "none"
    assert host.calls("build")[0][1:3] == ["--network", "host"]


def test_only_verified_wheels_are_installed_and_without_a_network(host):
    """The build, which has a network, sees none of them; the image begins as its base does."""
    host.run()
    (begin,) = host.calls("create")
    assert begin[begin.index("--network") + 1] == "none"
    command = host.state["container"]["command"]
    assert command == engine_image.work(given())["install"]
    assert command.endswith(" && rm -rf /opt/deeplearning/wheels")
    assert host.state["wheels"] == {"six-1.0-py3-none-any.whl": "six"}
    assert host.state["begins"] == ["ENTRYPOINT []", 'CMD ["bash"]']
    assert [call[-1] for call in host.calls("rm")].count("cdsw-engine-installation") == 2
    assert not (host.record.parents[1] / "engine-build").exists()


@pytest.mark.parametrize(
    ("fault", "words"),
    [("flip", "Every file must have the sha256 of the lock."), ("404", "but the answer was: status 404")],
)
def test_a_mirror_with_other_files_makes_no_image(host, fault, words):
    host.mirror.faults["six-1.0-py3-none-any.whl"] = [fault]
    answer = host.run()
    assert words in answer["msg"]
    assert answer["msg"].endswith("Nothing of it is left. No image of this project is active.")
    assert (host.images, host.calls("build"), host.calls("create")) == (set(), [], [])
    assert not (host.record.parents[1] / "engine-build").exists()


def test_the_second_run_changes_nothing_and_a_lost_archive_is_saved_again(host):
    first = host.run()
    second = host.run()
    assert (second["changed"], second["image"], len(host.calls("create"))) == (False, first["image"], 1)
    Path(first["archive"]).unlink()
    third = host.run()
    assert (third["changed"], third["built"], len(host.calls("create"))) == (True, False, 1)
    assert Path(first["archive"]).exists()


def test_check_mode_says_what_would_be_built_and_changes_nothing(host):
    answer = host.run(_ansible_check_mode=True, _ansible_diff=True)
    assert (answer["changed"], answer["diff"]["before"]) == (True, "\n"), answer
    assert answer["diff"]["after"].startswith(f"deeplearning-engine:{CPU}-")
    assert (host.images, host.record.exists(), host.calls("run")) == (set(), False, [])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"fail": "build"}, "the build failed: E: Failed to fetch http://...@mirror/cuda.deb"),
        ({"fail": "install"}, "the installation failed: ERROR: Hash mismatch for http://...@mirror/wheels/six.whl"),
        ({"fail": "save"}, "could not be saved as"),
        ({"size": 11 * 10**9}, "it has 11.0 GB, and CDSW takes images of at most 10 GB"),
        ({"image": {"problems": ["numpy must be 1.18.5 but is missing"], "driver": False}}, "numpy must be 1.18.5 but is missing"),
        ({"gpu_check": "FAIL"}, "gpu-check tensorflow_computes_on_cpu: TF 1: 134.0"),
        ({"base": {"python": "3.6.9", "wide": True, "glibc": "2.12", "system": "CentOS 6", "pip": "9.0.3"}}, "is CentOS 6 with Python 3.6.9 and glibc 2.12, but tf1.15-py36-el7 requires glibc 2.17"),
        ({"base": {"python": "3.6.9", "wide": True, "glibc": "2.27", "system": "Ubuntu", "pip": ""}}, "but it has no pip"),
        ({"base": {"python": "2.7.9", "wide": False, "glibc": "2.27", "system": "Ubuntu", "pip": "9"}}, "narrow characters"),
    ],
)  # fmt: skip
def test_an_image_that_is_not_made_leaves_the_old_one_active(changed, words, host):
    first = host.run()
    host.save(**changed)
    answer = host.run(stack=GPU)
    assert answer["failed"]
    assert words in answer["msg"], answer
    assert answer["msg"].endswith(f"{first['image']} is still active.")
    assert json.loads(host.record.read_text())["active"] == first["image"]
    assert not [name for name in host.images if name.endswith("-draft") or name.startswith("sha256:")]
    assert not list((host.directory / "engines").glob("*.draft"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"socket": "/run/other.sock"}, "Docker must answer on /run/other.sock, but: Cannot connect to the Docker daemon"),
        ({"base": "cdsw/engine:99"}, "The base image cdsw/engine:99 must be on this host, but is not."),
        ({"python": "3.9"}, f"{BASE} must have python3.9 for uid 8536, but: Error response from daemon"),
        ({"megabytes": 10**9}, "needs about 4000000000 MB but has"),
    ],
)  # fmt: skip
def test_what_the_host_lacks_is_a_sentence(changed, words, host):
    answer = host.run(**changed)
    assert answer["failed"]
    assert words in answer["msg"]
    assert answer["msg"].endswith("No image of this project is active.")
    assert host.images == set()


# What docker run of 20.10 (time="…") and of 29 print where runc cannot start a program; the last line is not the cause.
DAEMON = 'Error response from daemon: OCI runtime create failed: exec: "python3.6": executable file not found in $PATH: unknown'
WAITING = 'time="2026-11-22T23:50:01Z" level=error msg="error waiting for container: context canceled"'


@pytest.mark.parametrize(
    ("printed", "cause"),
    [
        (f"docker: {DAEMON}.\n{WAITING} ", DAEMON),
        (f"docker: {DAEMON}.\nERRO[0000] error waiting for container: context canceled \n", DAEMON),
        (f"docker: {DAEMON}.\nSee 'docker run --help'.", DAEMON),
        (f"docker: {DAEMON}\n\nRun 'docker run --help' for more information", DAEMON),
        (f"{WAITING}\ndocker: {DAEMON}", DAEMON),
        ("Segmentation fault\n" + WAITING, "Segmentation fault"),
        ("Illegal instruction\nERRO[0000] error waiting for container: ", "Illegal instruction"),
        (WAITING + "\n\n", WAITING),
        # An error inside the container is the cause, whatever Docker prints after it.
        (f"Traceback (most recent call last):\nImportError: libcublas.so\n{WAITING}", "ImportError: libcublas.so"),
    ],
)
def test_the_reason_is_the_cause_and_not_what_docker_prints_after_it(printed, cause):
    assert engine_docker.reason(printed) == cause


def test_after_a_build_that_failed_the_same_command_makes_the_image(host):
    host.save(fail="save")  # the image has its name by then
    assert host.run()["failed"]
    host.save(fail="")
    answer = host.run()
    assert (answer["changed"], host.images, len(host.calls("create"))) == (True, {answer["image"]}, 1)


def test_an_image_of_somebody_else_with_its_name_is_refused(host):
    name = host.run(_ansible_check_mode=True)["image"]
    host.save(images={**host.state["images"], name: {"id": "sha256:1", "size": 1, "labels": {}}})
    answer = host.run()
    assert "must be an image of this project, but another has its name" in answer["msg"]
    assert host.images == {name}


def test_an_earlier_stack_again_is_the_way_back_without_a_build(host):
    first, second = host.run(), host.run(stack=GPU)
    assert second["earlier"] == [first["image"]]
    back = host.run()
    assert (back["changed"], back["built"], back["image"]) == (True, False, first["image"])
    assert (back["earlier"], len(host.calls("create"))) == ([second["image"]], 2)


def test_older_images_go_by_policy_and_what_a_container_uses_stays(host):
    names = ["tf1.4-cpu-py27-el7", CPU, GPU, "tf1.15-cpu-py27-el7"]
    answers = [host.run(stack=name, keep=9) for name in names]
    host.save(held=[answers[0]["image"]])
    answer = host.run(stack=names[3], keep=1)
    assert (answer["changed"], answer["removed"]) == (True, [answers[1]["image"]])
    assert "conflict: unable to remove" in answer["held"][0]
    assert answer["earlier"] == [answers[2]["image"], answers[0]["image"]]
    assert not Path(answers[1]["archive"]).exists()
    assert Path(answers[0]["archive"]).exists()
    host.save(held=[])
    assert host.run(stack=names[3], keep=1)["removed"] == [answers[0]["image"]]
    removal = host.run(stack=names[3], state="absent")
    assert (removal["changed"], host.images, host.record.exists()) == (True, set(), False)
    assert list((host.directory / "engines").iterdir()) == []
    assert host.run(stack=names[3], state="absent")["changed"] is False


@pytest.mark.parametrize(
    ("driver", "gpu_check"), [(True, "FAIL"), (False, "SKIP")], ids=["needed to import", "a host without GPUs"]
)
def test_an_image_is_made_where_gpu_check_cannot_pass(host, driver, gpu_check):
    host.save(image={"problems": [], "driver": driver, "uid": 8536}, gpu_check=gpu_check)
    answer = host.run(stack=GPU)
    assert (answer["driver"], answer["built"]) == (driver, True)


# The probe, in a Python of this machine.


def probed(python: str, *arguments: Any) -> dict[str, Any]:
    texts = [json.dumps(argument) for argument in arguments]
    completed = subprocess.run([python, str(PROBE), *texts], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(completed.stdout.splitlines()[-1])


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_a_base_tells_its_python_glibc_and_system(python):
    answer = probed(python)
    assert re.fullmatch(r"\d\.\d+\.\d+", answer["python"])
    assert re.fullmatch(r"2\.\d+", answer["glibc"])
    assert answer["wide"] is True


def test_an_image_is_asked_for_versions_libraries_and_imports(tmp_path):
    questions = {"imports": ["no_such_module"], "libraries": ["libno.so.1"]}
    answer = probed(sys.executable, {**questions, "projects": {"PyYAML": "0.1", "nothing": "1.0"}})
    assert answer["driver"] is False
    assert answer["problems"][0].startswith("nothing must be 1.0 but is missing")
    assert re.match(r"pyyaml must be 0\.1 but is \d", answer["problems"][1])
    assert "libno.so.1 must load but does not: libno.so.1: cannot open shared object file" in answer["problems"][2]
    error = "ModuleNotFoundError: No module named 'no_such_module'"
    assert answer["problems"][3] == f"no_such_module must be importable, but is not: {error}"


def test_a_library_that_nobody_has_is_a_problem_and_the_drivers_is_none(tmp_path, monkeypatch):
    probe = python_files.load(PROBE)
    text = "\tlibcuda.so.1 => not found\n\tlibgone.so.3 => not found\n\tlibown.so => not found\n\tlibc.so.6 => /lib/libc.so.6\n"
    python_files.write_script(tmp_path / "ldd", f"printf '{text}'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    files = [str(tmp_path / name) for name in ("a.so", "libown.so", "b.py")]
    for file in files:
        Path(file).touch()
    assert probe.missing_libraries(files) == {"libgone.so.3": files[0]}
