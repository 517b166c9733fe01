"""scripts/stack cdsw-project: a project that installs a small stack with the real pip, for a user with a home of its own."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import python_files
import yaml
from ansible.module_utils.hadoop_dl_host import source_wheels
from environments import Mirror, wheel
from faulty_server import serving
from source_distributions import FILES, NAME, Recipe, digest

from hadoop_dl.cli import cdsw_project
from hadoop_dl.cli import stack as stack_cli
from hadoop_dl.data import cdsw, locks, stacks

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples" / "cdsw"
HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
NAMES = ("six", "tensorflow", "keras")
TINY = {
    "name": "tiny",
    "description": "A stack of three small wheels",
    "os": ["el9"],
    "python": HERE,
    "tensorflow": "1.0",
    "tensorflow_package": "tensorflow",
    "tensorflow_source": "prebuilt",
    "keras": "1.0",
    "glibc_min": "2.17",
    "sources": ["https://example.com/"],
}


install, run_tensorboard = (python_files.load(EXAMPLES / f"{name}.py") for name in ("install", "run_tensorboard"))


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving(Mirror()) as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site's stacks directory with the small stack, whose wheels the mirror has."""
    monkeypatch.setattr(stacks, "_site", [])
    engine = cdsw.Engine("of the tests", None, None, None, (HERE,))
    monkeypatch.setattr(cdsw, "engines", lambda: [engine])
    directory = tmp_path / "stacks"
    (directory / "locks").mkdir(parents=True)
    lines = []
    for name in NAMES:
        lines += [f"# component: {'pip' if name == 'six' else name}", mirror.add(wheel(tmp_path, name))]
    (directory / "tiny.yml").write_text(yaml.safe_dump(TINY), encoding="utf-8")
    (directory / "locks" / "tiny.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return directory


def made(site: Path, mirror: Mirror, *options: str) -> Path:
    directory = site.parent / "project"
    arguments = ["cdsw-project", "tiny", str(directory), "--mirror", mirror.url, "--stacks", str(site), *options]
    assert stack_cli.main(arguments) == 0
    return directory


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with pip that looks into the user's packages, as an engine's does."""
    directory = tmp_path_factory.mktemp("engine")
    subprocess.check_output([sys.executable, "-m", "venv", "--system-site-packages", directory])
    return directory / "bin" / "python"


def session(engine: Path, project: Path, program: str = "install.py", **environment: str) -> tuple[int, str]:
    variables = {"HOME": str(project / "home"), "PATH": os.environ["PATH"], "no_proxy": "127.0.0.1", **environment}
    (project / "home").mkdir(exist_ok=True)
    words = [engine, project / program]
    completed = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in completed.stdout + completed.stderr
    return completed.returncode, completed.stdout + completed.stderr


def test_a_session_installs_the_stack_for_itself(site, mirror, engine):
    project = made(site, mirror)
    code, output = session(engine, project)
    assert code == 0, output
    assert "tiny is installed in" in output
    assert output.strip().endswith("Start a new session: this one keeps the packages that it has imported.")
    packages = next((project / "home" / ".local" / "lib").glob("python*")) / "site-packages"
    assert {f"{name}.py" for name in NAMES} <= {path.name for path in packages.iterdir()}
    paths = [path for path, _ in mirror.requests]
    assert set(paths) == {f"/wheels/{name}-1.0-py2.py3-none-any.whl" for name in NAMES}  # no index, no list of files


@pytest.fixture
def source(tmp_path: Path, site: Path, mirror: Mirror, recipe: Recipe) -> str:
    """The small stack has a source distribution, too; what a project needs to know its recipe."""
    line = mirror.add(tmp_path / NAME).replace("==1.0 ", "==1.0.post2 ")
    with (site / "locks" / "tiny.txt").open("a", encoding="utf-8") as handle:
        handle.write(f"{line}\n")
    return f"\nRECIPES[{digest(tmp_path / NAME)!r}] = Recipe(*{tuple(recipe)!r})\n"


def test_a_session_runs_no_setup_of_a_source_distribution(site, mirror, engine, source):
    project = made(site, mirror)
    with (project / "source_wheels.py").open("a", encoding="utf-8") as handle:
        handle.write(source)
    code, output = session(engine, project)
    assert code == 0, output
    [package] = (project / "home" / ".local").rglob("evil/__init__.py")
    assert package.read_text() == FILES["src/evil/__init__.py"]


@pytest.mark.parametrize(
    ("fault", "words"), [("flip", "must have the sha256 of the lock, but has not"), ("404", "but: HTTP Error 404")]
)
def test_another_source_distribution_than_the_locked_one_is_refused(fault, words, site, mirror, engine, source):
    project = made(site, mirror)
    mirror.faults[NAME] = [fault]
    code, output = session(engine, project)
    assert code == 1
    assert words in output
    assert not list((project / "home").rglob("six*"))


@pytest.mark.parametrize("fault", ["flip", "404", "login"])
def test_a_wheel_that_is_not_the_locked_one_is_refused(fault, site, mirror, engine):
    project = made(site, mirror)
    mirror.faults["tensorflow-1.0-py2.py3-none-any.whl"] = [fault] * 9
    code, output = session(engine, project)
    assert code == 1
    assert f"install.py: pip must install requirements.txt from {mirror.url}, but ended with status 1" in output
    assert not list((project / "home").rglob("tensorflow*"))


def test_a_package_that_cannot_be_imported_is_told(site, mirror, engine):
    project = made(site, mirror)
    settings = json.loads((project / "stack.json").read_text())
    (project / "stack.json").write_text(json.dumps({**settings, "imports": ["tensorflow", "missing_one"]}))
    code, output = session(engine, project)
    assert code == 1
    assert "missing_one must be importable, but is not: ModuleNotFoundError: No module named 'missing_one'" in output
    assert "Start a new session" not in output


@pytest.mark.parametrize(
    ("changed", "environment", "words"),
    [
        ({"python": "2.7"}, {}, "tiny requires Python 2.7, but this is Python"),
        ({"glibc": "9.99"}, {}, "tiny requires glibc 9.99 or later, but this engine has"),
        ({"megabytes": 10**9}, {}, "MB free, but has"),
        ({}, {"PYTHONNOUSERSITE": "1"}, "Packages in ~/.local must be visible"),
    ],
    ids=["python", "glibc", "room", "user site"],
)
def test_what_does_not_fit_is_refused_before_anything_is_installed(changed, environment, words, site, mirror, engine):
    project = made(site, mirror)
    settings = json.loads((project / "stack.json").read_text())
    (project / "stack.json").write_text(json.dumps({**settings, **changed}))
    code, output = session(engine, project, **environment)
    assert (code, words in output) == (1, True), output
    assert mirror.requests == []
    assert not (project / "home" / ".local").exists()


def test_a_program_that_does_not_end_is_ended_and_prints_no_password():
    shell = "echo http://me:s3cret@proxy/; sleep 60"
    status, last = install.run(["sh", "-c", shell], 0.5, shown=False)
    assert status < 0
    assert last == ["http://...@proxy/"]


MISMATCH = "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE FILE"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Collecting six", "ERROR: Hash mismatch.", "    Expected x"], "ERROR: Hash mismatch"),
        (
            ["Exception:", "Traceback (most recent call last):", "    hashes=hashes)", "ProxyError: no"],
            "ProxyError: no",
        ),
        ([f"{MISMATCH}.", "    Got x"], MISMATCH),
        (["killed", ""], "killed"),
        ([], "no output"),
    ],
)
def test_the_line_of_pip_that_names_the_cause(lines, expected):
    assert install.reason(lines) == expected


def test_dask_is_a_hint_for_tensorflow_1_alone(monkeypatch, capsys):
    answers = {"import dask": (0, []), "import dask.dataframe": (1, ["AttributeError: no attribute 'computation'"])}
    monkeypatch.setattr(install, "run", lambda argv, seconds, shown: answers[argv[-1]])
    install.hint_about_dask({"tensorflow": "2.15.1", "stack": "x"})
    assert capsys.readouterr().out == ""
    for python, dask in (("2.7", "dask==1.2.2"), ("3.6", "dask")):
        install.hint_about_dask({"tensorflow": "1.15.0", "stack": "x", "python": python})
        output = capsys.readouterr().out
        assert f"lock x --extra {dask} --stacks " in output
        assert output.endswith(f"pip install --user --upgrade {dask}\n")
    answers["import dask"] = (1, [])  # an engine without it
    install.hint_about_dask({"tensorflow": "1.15.0", "stack": "x", "python": "3.6"})
    assert capsys.readouterr().out == ""


def test_tensorboard_outside_of_a_session_or_without_logs(site, mirror, engine):
    project = made(site, mirror)
    code, output = session(engine, project, "run_tensorboard.py")
    assert (code, "Run it in a session of CDSW." in output) == (1, True)
    code, output = session(engine, project, "run_tensorboard.py", CDSW_PUBLIC_PORT="8080")
    assert (code, "logs must be a directory with logs, but there is none. Train first." in output) == (1, True)


def test_the_build_of_a_model_installs_the_stack(site, mirror, engine, tmp_path):
    """CDSW calls it by its path, in an image that has the project's files and nothing of its sessions."""
    project = made(site, mirror)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / f"python{HERE}"  # no link: one to Debian's Python would lose the engine's pyvenv.cfg
    command.write_text(f'#!/bin/sh\nexec {engine} "$@"\n')
    command.chmod(0o755)
    code, output = session(Path("/bin/sh"), project, "cdsw-build.sh", PATH=f"{tmp_path}/bin:/usr/bin:/bin")
    assert (code, "tiny is installed in " in output) == (0, True), output


def test_the_project_has_everything_and_its_readme_no_gap(site, mirror):
    project = made(site, mirror, "--ca", "/etc/ssl/site.pem")
    assert {path.name for path in project.iterdir()} == {
        *("README.md", "benchmark.py", "data", "digits.py", "digits_cnn.py", "digits_with_summaries.py", "install.py"),
        *("networks.py", "requirements-pip.txt", "requirements.txt", "run_tensorboard.py", "source_wheels.py"),
        *("cdsw-build.sh", "stack.json"),
    }
    readme = (project / "README.md").read_text()
    assert "@" not in readme
    assert readme.startswith("# tiny in a session of CDSW")
    for name in re.findall(r"`python[\d.]+ (\S+\.py)`", readme):
        assert (project / name).is_file()
    assert json.loads((project / "stack.json").read_text())["ca"] == "/etc/ssl/site.pem"
    made(site, mirror)  # again, over itself


@pytest.mark.parametrize("name", [name for name in stacks.stack_names() if not stacks.load_stack(name).is_built])
def test_every_lock_becomes_requirements(name, tmp_path):
    stack = stacks.load_stack(name)
    for python in stack.pythons:
        cdsw_project.write(stack, stack.lock(python), tmp_path, "http://m:1/x")
        text = (tmp_path / "requirements-pip.txt").read_text() + (tmp_path / "requirements.txt").read_text()
        form = r"(?:http://m:1/x/wheels/(\S+[.]whl)|[\w-]+==\S+) --hash=sha256:([0-9a-f]{64})"
        lines = [re.fullmatch(form, line) for line in text.splitlines()]
        assert all(lines)
        lock: locks.Lock = stack.lock(python)
        entries = {entry.sha256: entry.name for entry in lock.entries if entry.project != "virtualenv"}
        sources = {source["sha256"] for source in json.loads((tmp_path / "stack.json").read_text())["sources"]}
        assert sources == {sha256 for sha256, file in entries.items() if not file.endswith(".whl")}
        expected_hashes = set(entries) - sources | {source_wheels.RECIPES[sha256].sha256 for sha256 in sources}
        assert {line[2] for line in lines if line} == expected_hashes


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert stack_cli.main(["cdsw-project", *arguments]) == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tf2.15-cpu-py3-el9", "Engine 15 has Python 2.7 and 3.6, but tf2.15-cpu-py3-el9 requires Python 3.11"),
        ("tf2.4-cpu-py38-el8", "but tf2.4-cpu-py38-el8 requires Python 3.8"),
    ],
)
def test_a_stack_that_no_base_engine_can_run_is_refused(name, reason, tmp_path, capsys):
    text = refusal(capsys, name, str(tmp_path / "project"), "--mirror", "http://mirror01:8900")
    assert reason in text
    assert "Nothing was written." in text
    assert not (tmp_path / "project").exists()


def test_misuse_is_a_sentence_and_nothing_is_written(tmp_path, capsys):
    directory = tmp_path / "there"
    name, mirror = "tf1.4-cpu-py27-el7", ("--mirror", "http://mirror01:8900")
    assert "--mirror" in refusal(capsys, name, str(directory))
    text = refusal(capsys, name, str(directory), "--mirror", "http://me:s3cret@mirror01:8900")
    assert "without user and password, but is not" in text
    assert "s3cret" not in text
    assert "tf1.4-cpu" in refusal(capsys, "tf1.4-cpu", str(directory), *mirror)
    assert "2.7" in refusal(capsys, name, str(directory), *mirror, "--python", "3.6")
    assert not directory.exists()
    directory.mkdir()
    (directory / "mine.txt").write_text("mine")
    assert "must be new, empty or such a project, but has other files" in refusal(capsys, name, str(directory), *mirror)
    assert "must be a directory, but is a file" in refusal(capsys, name, str(directory / "mine.txt"), *mirror)
    assert [path.name for path in directory.iterdir()] == ["mine.txt"]
