"""locked_packages, environment_seal and environment_activate with real environments: small wheels, a mirror on loopback."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import environment_check
import environment_seal
import locked_packages
import pytest
from ansible.module_utils import basic
from ansible.module_utils.hadoop_dl_host import (
    environment_history,
    environment_names,
    environment_packages,
    environment_tree,
    host_reader,
    sandbox_cell,
    wheel_files,
)
from ansible.module_utils.hadoop_dl_host.environment_packages import Refused
from environments import NAME, Module, Site, point, second_environment, wheel
from gpu_check_hosts import NO_CUBLAS
from interpreters import HOST_PYTHONS, UTILITIES, WITHOUT_ANSIBLE
from other_processes import lasting
from python_files import write_script
from source_distributions import interpreter


def test_a_complete_run_and_the_second_one_changes_nothing(site, monkeypatch):
    # Settings of the host must not reach the installation.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "maybe")
    monkeypatch.setenv("PYTHONPATH", "/nonexistent")
    assert site.everything() == [True, True, True, True, True]
    assert site.current == f"envs/{NAME}"
    assert environment_names.problem(str(site.path)) is None
    before = site.content()
    assert site.everything() == [False, False, False, False, False]
    assert site.content() == before


def test_the_path_is_the_same_on_every_host_and_points_to_the_tree(done):
    """A job names its environment by this path, also on hosts where it was repaired."""
    assert os.readlink(done.path) == f"{NAME}.1"
    python = done.path / "bin" / "python"
    program = "import sys, tensorflow; print(sys.prefix, tensorflow.__file__)"
    prefix, module = subprocess.check_output([python, "-c", program], text=True).split()
    assert prefix == str(done.path)
    assert module.startswith(f"{done.path}/lib/")


def test_pip_reads_what_was_installed(site):
    site.take_real_pip()
    site.everything()
    pip = site.path / "bin" / "pip"
    requirements = subprocess.check_output([pip, "list", "--format=freeze"], text=True).split()
    assert {"tensorflow==1.0", "six==1.0", "keras==1.0"} <= set(requirements)
    assert "six.py" in subprocess.check_output([pip, "show", "--files", "six"], text=True)
    assert subprocess.check_output([pip, "check"], text=True).startswith("No broken requirements")


def test_check_mode_on_a_bare_host_reports_and_changes_nothing(site):
    for component in site.lines:
        answer = site.install(component, check=True)
        assert answer["changed"] is True
    assert "six 1.0\n" in site.install("tensorflow", check=True)["diff"]["after"]
    assert site.seal(check=True)["changed"] is True
    assert site.activate(check=True)["changed"] is True
    assert site.activate(check=True, state="ready")["changed"] is False
    assert not site.root.exists()


def test_a_lock_without_hashes_is_refused(site):
    site.lines["pip"] = ["pip==23.0"]
    with pytest.raises(Refused, match="must have one version, one sha256, a file and its size"):
        site.install("pip")


def test_an_address_with_a_password_is_refused_without_showing_it(site):
    site.mirror.url = "http://reader:secret@127.0.0.1:9"
    with pytest.raises(Refused, match="must not contain a user or password") as error:
        site.install("pip")
    assert "secret" not in str(error.value)


def test_the_role_pip_comes_first(site):
    with pytest.raises(Refused, match="Install the component pip first"):
        site.install("tensorflow")


def test_a_directory_with_something_else_is_not_removed(site):
    site.path.mkdir(parents=True)
    (site.path / "data").write_text("precious")
    with pytest.raises(Refused, match="contains something else"):
        site.install("pip")
    assert (site.path / "data").read_text() == "precious"


def test_an_interpreter_without_its_library_is_named(site, tmp_path):
    python = write_script(tmp_path / "python", "echo no module venv >&2\nexit 1")
    words = r"must be able to make an environment, but that ended with status 1: no module venv"
    with pytest.raises(Refused, match=words):
        site.install("pip", python=str(python))
    assert site.everything() == [True, True, True, True, True]


def test_a_process_that_hangs_is_ended():
    assert environment_packages.run(["/bin/sleep", "60"], 0.5, {})[0] is None


def test_a_sealed_environment_refuses_another_lock(done, tmp_path):
    done.lines["keras"] = [done.mirror.add(wheel(tmp_path, "keras", "2.0"))]
    with pytest.raises(Refused, match="A sealed environment never changes"):
        done.install("keras")


def test_the_tree_digest_does_not_depend_on_the_interpreter(done):
    pythons = [parameter.values[0] for parameter in HOST_PYTHONS if parameter.values[0]]
    code = f"{WITHOUT_ANSIBLE}from {environment_tree.__name__} import digest, lines; print(digest(lines(sys.argv[2])))"
    (done.packages / "spaces and ümläuts.txt").write_text("x")
    answers = {subprocess.check_output([python, "-B", "-c", code, UTILITIES, str(done.path)]) for python in pythons}
    assert len(answers) == 1


# --- the checks before the seal ------------------------------------------------------------------------------------


def change_and_forget(site: Site) -> None:
    """The changed file's row is deleted from the installed RECORD."""
    (site.packages / "six.py").write_text("evil = True\n")
    record = next(site.packages.glob("six-*.dist-info")) / "RECORD"
    record.write_text("".join(line for line in record.read_text().splitlines(True) if "six.py" not in line))


def change_and_keep_size(site: Site) -> None:
    path = site.packages / "six.py"
    path.write_bytes(path.read_bytes().replace(b"1.0", b"6.6"))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda s: (s.packages / "six.py").write_text("evil = True\n"), "six.py differs from the verified wheel (tensorflow)"),
        (change_and_forget, "six.py differs from the verified wheel"),
        (change_and_keep_size, "six.py differs from the verified wheel"),
        (lambda s: (s.packages / "six.py").unlink(), "six.py is missing (tensorflow)"),
        (lambda s: (s.packages / "six-1.0.dist-info" / "RECORD").write_text(""), "RECORD differs"),
        (lambda s: (s.packages / "stray.py").write_text(""), "stray.py is in no verified wheel"),
        (lambda s: (s.packages / "x.pth").write_text("import os\n"), "x.pth is in no verified wheel"),
        (lambda s: (s.packages / "stray.pyc").write_text(""), "stray.pyc is in no verified wheel"),
        (lambda s: (s.tree / "bin" / "nvcc").write_text(""), "bin/nvcc is in no verified wheel"),
        (lambda s: (s.tree / "bin" / "python").unlink(), "bin/python is missing (made)"),
        (lambda s: (s.tree / ".deeplearning" / "tensorflow.files").write_text(""), "tensorflow.files was changed"),
        (lambda s: (s.tree / ".deeplearning" / "keras.json").unlink(), "keras is not completely installed"),
        (lambda s: s.lines["keras"].append(s.lines["keras"][0].replace("keras==", "yaml==")), "keras was installed from another"),
    ],
    ids=["changed", "row deleted", "size kept", "missing", "no record", "stranger", "pth", "stray bytecode", "bin", "interpreter",
         "list changed", "incomplete", "other lock"],
)  # fmt: skip
def test_what_is_not_verified_does_not_become_active(unproved, damage, words):
    damage(unproved)
    with pytest.raises(Refused) as error:
        unproved.seal()
    assert words in str(error.value)
    assert "was not activated" in str(error.value)
    assert "The active environment is unchanged" in str(error.value)
    assert unproved.current is None
    with pytest.raises(Refused, match="is not ready: not completed"):
        unproved.activate()
    assert unproved.current is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (f"raise ImportError({NO_CUBLAS!r})", "libcublas.so.8.0: cannot open shared object file: No such file or directory. The GPU"),
        (f"import os; os.kill(os.getpid(), {int(signal.SIGILL)})", "illegal instruction"),
        ("raise RuntimeError('riddle')", "import keras fails: RuntimeError: riddle"),
        ("import time; time.sleep(60)", "import keras did not end within 2 s"),
    ],
    ids=["cuda", "avx", "other", "hang"],
)  # fmt: skip
def test_an_import_that_fails_is_explained(unproved, code, words):
    unproved.put("keras", code)
    [problem] = environment_seal.import_problems(str(unproved.tree), ["keras"], 2)
    assert words in problem


def test_the_difference_names_what_is_there_and_what_comes(with_pip):
    diff = with_pip.install("tensorflow", check=True)["diff"]
    assert (diff["before"].startswith("pip "), "six 1.0\n" in diff["after"]) == (True, True)


def test_all_imports_that_fail_are_reported_in_their_order(unproved):
    problems = environment_seal.import_problems(str(unproved.tree), ["nothing_a", "tensorflow", "nothing_b"], 60)
    assert [problem.split()[1] for problem in problems] == ["nothing_a", "nothing_b"]


def test_a_path_that_two_wheels_promise_may_have_the_content_of_either(with_pip, tmp_path):
    """TensorFlow 1.4: bin/tensorboard comes with the wheels tensorflow and tensorflow-tensorboard."""
    for project, component in (("tensorflow", "tensorflow"), ("board", "tensorflow"), ("keras", "keras")):
        script = {"tensorboard": f"#!python\nprint({project!r})\n"}
        line = with_pip.mirror.add(wheel(tmp_path, project, "1.4", scripts=script))
        with_pip.lines[component] = [*(with_pip.lines[component] if project == "board" else []), line]
    assert with_pip.everything() == [False, True, True, True, True]
    assert subprocess.check_output([with_pip.path / "bin" / "tensorboard"], text=True) == "keras\n"
    assert with_pip.everything() == [False, False, False, False, False]


def test_everybody_can_read_and_only_root_can_write(site):
    mask = os.umask(0o077)
    try:
        site.everything()
    finally:
        os.umask(mask)
    for directory, _, files in os.walk(site.root / "envs"):
        for name in [directory, *(os.path.join(directory, file) for file in files)]:
            if not os.path.islink(name):
                mode = os.stat(name).st_mode
                assert mode & stat.S_IROTH, name
                assert not mode & (stat.S_IWGRP | stat.S_IWOTH), name


def test_the_path_must_be_the_one_of_stack_and_digest(done):
    with pytest.raises(Refused, match="Correct environment_path"):
        done.seal(digest="ffffffffffff")


# --- activation ----------------------------------------------------------------------------------------------------


def test_what_is_not_installed_is_not_sealed(site):
    with pytest.raises(Refused, match="must be installed before it is sealed. Run site.yml, which does both"):
        site.seal()


def test_sealing_activates_nothing(unproved):
    assert unproved.seal()["sealed"] is True
    assert unproved.current is None
    assert unproved.activate(state="ready")["changed"] is False
    assert unproved.current is None
    assert unproved.activate()["activated"] is True


def test_current_must_be_a_link(done):
    (done.root / "current").unlink()
    (done.root / "current").mkdir()
    with pytest.raises(Refused, match="must be a link"):
        done.activate()


def test_the_draft_of_a_killed_switch_is_no_obstacle(done):
    (done.root / "current").unlink()
    (done.root / ".new-current").symlink_to("nowhere")
    assert done.activate()["activated"] is True
    assert done.current == f"envs/{NAME}"


def old(site: Site, name: str, number: int, age: int = 0, sealed: bool = True) -> Path:
    """Another environment, last activated as the `number`th; its seal is `age` seconds old."""
    path = site.root / "envs" / f"{name}.1"
    (path / ".deeplearning").mkdir(parents=True)
    path.with_name(name).symlink_to(path.name)
    (path / ".deeplearning" / "activated.json").write_text(f'{{"number": {number}}}')
    if sealed:
        (path / ".deeplearning" / "sealed.json").write_text("{}")
        os.utime(path / ".deeplearning" / "sealed.json", (time.time() - age,) * 2)
    return path


A, B, C, D = (f"{letter}-{letter * 12}" for letter in "abcd")


def test_old_environments_go_and_the_ones_that_were_active_last_stay(done):
    for number, name in enumerate((A, B, C)):
        old(done, name, number + 1, age=-86400 if name == A else 0)  # A was sealed while the clock was a day ahead
    old(done, D, 4, sealed=False)
    (done.root / "envs" / "notes").mkdir()
    (done.root / "envs" / f"{A}.client").mkdir()
    assert sorted(done.activate(check=True)["removed"]) == [A, B, D]
    assert sorted(done.activate()["removed"]) == [A, B, D]
    names = sorted(p.name for p in (done.root / "envs").iterdir() if not p.name.startswith("."))
    assert names == [C, f"{C}.1", NAME, f"{NAME}.1", "notes"]
    assert done.activate()["changed"] is False


def test_one_that_was_never_active_goes_unless_it_is_named_and_is_no_way_back(done):
    for name, number in ((A, 5), (B, 0), (C, 0)):
        old(done, name, number)
    assert done.activate(keep=None)["removed"] == [], "while hosts switch"
    assert done.activate(check=True, keep_names=[C])["removed"] == [B]
    assert done.activate(keep_names=[C])["removed"] == [B]
    assert done.activate()["removed"] == [C]


def test_old_ones_are_removed_without_a_switch_to_one_that_is_requested(done):
    """As after a rollback, or if the requested one is not complete yet."""
    for name, number in ((A, 5), (B, 0), (C, 0)):
        old(done, name, number)
    done.path = done.root / "envs" / C
    assert done.activate(state="cleaned", check=True)["removed"] == [B]
    answer = done.activate(state="cleaned")
    assert (answer["removed"], answer["activated"], done.current) == ([B], False, f"envs/{NAME}")
    assert done.activate(state="cleaned")["changed"] is False
    (done.root / "current").unlink()
    assert done.activate(state="cleaned", keep=0)["removed"] == []


def test_the_previous_environment_stays_even_if_it_never_got_a_number(done):
    old(done, A, 5)
    (old(done, B, 0) / ".deeplearning" / "activated.json").unlink()
    point(done.root, f"envs/{B}")
    assert done.activate()["removed"] == [A]


def test_an_old_environment_that_a_process_runs_from_stays(done):
    path = old(done, A, 1)
    done.activate()
    with lasting(cwd=path) as process:
        answer = done.activate(keep=0)
        assert answer["spared"] == {A: [process.pid]}
        assert answer["changed"] is False
        assert path.is_dir()
    assert done.activate(keep=0)["removed"] == [A]


def test_the_clients_settings_go_with_the_environment(done):
    """Switching `current` back switches Spark, Java and Hadoop back as well."""
    client = done.root / "envs" / f"{NAME}.client"
    client.mkdir()
    (client / "hadoop-env.sh").write_text("export JAVA_HOME=/java/8\n")
    (done.root / "etc").mkdir()
    (done.root / "etc" / "hadoop-env.sh").write_text("an older version wrote a file\n")
    assert done.activate()["changed"] is True
    assert (done.root / "etc" / "hadoop-env.sh").read_text() == "export JAVA_HOME=/java/8\n"
    assert done.activate()["changed"] is False
    assert done.seal()["changed"] is False
    second_environment(done.root, A, 5)
    (done.root / "envs" / f"{A}.client").mkdir()
    (done.root / "envs" / f"{A}.client" / "hadoop-env.sh").write_text("export JAVA_HOME=/java/17\n")
    point(done.root, f"envs/{A}")
    assert (done.root / "etc" / "hadoop-env.sh").read_text() == "export JAVA_HOME=/java/17\n"


# --- every byte ----------------------------------------------------------------------------------------------------


def check(site: Site) -> dict[str, object]:
    return environment_check.work(Module({"path": str(site.path)}, False))


def quietly(path: Path, content: bytes) -> None:
    """As a failing disk does it: neither size nor time change."""
    status = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda s: quietly(s.packages / "six.py", b"VERSION = '1.1'\n"), "1 with other bytes (lib/python3.11/site-packages/six.py)"),
        (lambda s: [quietly(p, b"x" * p.stat().st_size) for p in (s.packages / "__pycache__").glob("six.*")], "1 with other bytes"),
        (lambda s: (s.packages / "__pycache__" / "six.cpython-311.opt-1.pyc").write_bytes(b"x"), "1 bytecode that was not compiled"),
        (lambda s: [p.unlink() for p in (s.packages / "__pycache__").glob("six.*")], "1 gone"),
        (lambda s: (s.tree / ".deeplearning" / "files.txt").write_text(""), "files.txt was changed"),
    ],
    ids=["bit rot", "exchanged bytecode", "planted bytecode", "bytecode gone", "list"],
)  # fmt: skip
def test_damage_that_only_all_bytes_show_is_found_and_repaired_by_the_next_run(done, damage, words):
    assert check(done) == {"changed": False, "added": []}
    damage(done)
    assert environment_names.problem(str(done.path)) is None
    for expected in (words, ""):
        with pytest.raises(Refused) as error:
            check(done)
        assert expected in str(error.value)
    assert environment_names.problem(str(done.path)).startswith("damaged: ")
    assert done.everything() == [True, True, True, True, False]  # the link points there already
    assert check(done) == {"changed": False, "added": []}
    assert os.readlink(done.path) == f"{NAME}.2"


def test_a_repair_that_ends_before_the_switch_leaves_the_way_back(done):
    """The next run finds the environment whole and active, so it switches nothing."""
    old(done, A, 3)
    (done.tree / ".deeplearning" / "activated.json").write_text('{"number": 4, "before": 0}')
    shutil.rmtree(done.tree / "lib")
    for component in ("pip", "tensorflow", "keras"):
        done.install(component)
    assert done.seal()["removed"] == [f"{NAME}.1"]
    assert environment_history.activations(str(done.root)) == {A: 3, NAME: 4}


def files(tree: Path) -> dict[str, tuple[float, bytes]]:
    """Time and bytes of every file that a tree has of its own, without bytecode."""
    return {
        str(path.relative_to(tree)): (path.stat().st_mtime, path.read_bytes())
        for path in tree.rglob("*")
        if path.is_file() and not path.is_symlink() and path.suffix != ".pyc" and ".deeplearning" not in path.parts
    }


def test_two_installations_of_a_lock_have_the_same_bytes_and_times(site, tmp_path):
    """On two hosts, and after a repair."""

    def digest() -> str:
        return environment_tree.seal_of(str(site.tree))["contents_sha256"]

    site.lines["keras"] = [site.mirror.add(wheel(tmp_path, "keras", scripts={"tool": "#!python\n"}))]
    site.everything()
    first, tree_digest = files(site.tree), digest()
    shutil.rmtree(site.root)
    site.everything()
    assert (files(site.tree), digest()) == (first, tree_digest)
    shutil.rmtree(site.tree / "lib")
    site.everything()
    assert site.tree.name.endswith(".2")
    assert (files(site.tree), digest()) == (first, tree_digest)
    assert {moment for moment, _ in first.values()} == {wheel_files.TIME}


def test_bytecode_is_loaded_without_looking_at_its_source(done):
    """A source whose time changes must not make root's Python write new bytecode, nor users' Pythons compile it each time."""
    [pyc] = (done.packages / "__pycache__").glob("six.*")
    assert pyc.read_bytes()[4:8] == b"\x01\x00\x00\x00"  # PEP 552: by hash of the source, not checked


def test_added_files_are_reported_and_nothing_else(done):
    (done.packages / "extra.py").write_text("")
    (done.packages / "__pycache__" / "new.cpython-311.pyc").write_bytes(b"x")
    assert environment_names.problem(str(done.path)) is None
    assert environment_tree.state(str(done.path)) == (None, ["lib/python3.11/site-packages/extra.py"])
    done.mirror.url = "http://127.0.0.1:9"  # nothing is fetched
    assert done.everything() == [False, False, False, False, False]
    assert done.seal()["added"] == ["lib/python3.11/site-packages/extra.py"]


def test_an_environment_is_read_once_by_its_name_and_additions_are_no_problem(tmp_path, done):
    """Its trees (NAME.1) and its settings (NAME.client) are no environments of their own."""
    (tmp_path / "host/opt").mkdir(parents=True)
    (tmp_path / "host/opt/deeplearning").symlink_to(done.root)
    (done.root / "envs" / f"{done.path.name}.client").mkdir()
    (done.packages / "extra.py").write_text("")
    facts = host_reader.read(str(tmp_path / "host"))["deeplearning"]
    assert facts["current"] == done.path.name
    additions = [str((done.packages / "extra.py").relative_to(done.tree))]
    [(name, environment)] = facts["environments"].items()
    assert (name, environment["problem"], environment["added"]) == (done.path.name, None, additions)
    assert environment["contents"] == environment_tree.seal_of(str(done.tree))["contents_sha256"]
    version = subprocess.run([done.tree / "bin/python", "--version"], check=True, capture_output=True, text=True).stdout
    assert environment["python"].split()[0] == version.split()[1]


INSTALL = """
import json
sys.modules["ansible.module_utils"].__path__.append(sys.argv[3])
sys.path.insert(0, sys.argv[2])
import environment_seal, locked_packages

class Module(object):
    check_mode = False

    def __init__(self, params):
        self.params = params

for name, params in json.loads(sys.stdin.read()):
    sys.modules[name].work(Module(params))
"""


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_every_python_of_hosts_installs(site, tmp_path, python):
    """The modules in Python 2.7 and 3.6. Some packages have sources of another Python's grammar, which get no bytecode."""
    site.lines["keras"].append(site.mirror.add(wheel(tmp_path, "grammar", code="print 1 2\n")))
    has_venv = subprocess.run([python, "-m", "venv", "-h"], capture_output=True, check=False).returncode == 0
    host_python = python if has_venv else interpreter() or sys.executable
    calls: list[tuple[str, dict[str, Any]]] = []

    def note(name: str) -> Callable[[Any], dict[str, bool]]:
        return lambda module: calls.append((name, module.params)) or {"changed": True}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(locked_packages, "work", note("locked_packages"))
        patch.setattr(environment_seal, "work", note("environment_seal"))
        for component in site.lines:
            site.install(component, python=host_python)
        if os.geteuid() != 0 or not sandbox_cell.closed([host_python]):  # imports are by a user without rights
            site.seal()
    places = [UTILITIES, UTILITIES.replace("module_utils", "modules"), str(Path(basic.__file__).parent)]
    argv = [python, "-c", WITHOUT_ANSIBLE + INSTALL, *places]
    subprocess.run(argv, input=json.dumps(calls), text=True, check=True, timeout=120)
    compiled = site.tree.glob("lib/python*/site-packages/__pycache__/*.pyc")
    assert sorted(path.name.split(".")[0] for path in compiled) == ["keras", "pip", "six", "tensorflow"]
    code = "import tensorflow, keras; print(tensorflow.__file__)"
    output = subprocess.check_output([site.path / "bin/python", "-c", code], text=True)
    assert output.startswith(str(site.path))


def test_what_release_02_told_on_a_host_goes_with_the_next_activation(done):
    notices = [done.root / "CURRENT.txt", done.root / "envs" / f"{NAME}.client" / "CURRENT.txt"]
    notices[1].parent.mkdir(exist_ok=True)
    notices[1].write_text("active: another")
    notices[0].symlink_to("current/.deeplearning/client/CURRENT.txt")
    assert done.activate()["changed"] is True
    assert [path for path in notices if path.is_symlink() or path.exists()] == []
    assert done.activate()["changed"] is False
