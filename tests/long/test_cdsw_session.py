"""A project for CDSW sessions, used as a session uses it: by uid 8536, with an engine's Python 2.7 and old pip, from the mirror.

The container is a stand-in (el7 with Python 2.7 of Debian), not Cloudera's engine: see docs/train/cdsw_session.md.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hadoop_dl.cli import cdsw_project, mirror
from hadoop_dl.data import stacks
from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.engine_base import OLD_PIP
from hadoop_dl_dev.demo.shell import run

REPOSITORY = Path(__file__).resolve().parents[2]
MIRROR = REPOSITORY / ".cache" / "mirror"
STACK = "tf1.4-cpu-py27-el7"
NAME, HOME, PORT = "cdsw-session", "/home/cdsw", "8100"
PYTHON = "/usr/bin/python2.7"


def execute(command: str, user: str = "8536:8536", check: bool = True, **environment: str) -> tuple[int, str]:
    variables = {"HOME": HOME, "PATH": f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin", **environment}
    options = [text for key, value in variables.items() for text in ("--env", f"{key}={value}")]
    argv = ["docker", "exec", "--user", user, "--workdir", HOME, *options, NAME, "sh", "-c", command]
    completed = run(*argv, check=False)
    output = completed.stdout + completed.stderr
    assert not check or completed.returncode == 0, output
    return completed.returncode, output


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A session with the project in its home, nothing installed yet."""
    directory = tmp_path_factory.mktemp("session")
    stack = stacks.load_stack(STACK)
    mirror.fetch_artifacts(stack.lock().artifacts, MIRROR)
    mirror.fetch_artifacts([OLD_PIP], directory / "pip")
    cdsw_project.command([STACK, str(directory / "project"), "--mirror", "http://127.0.0.1:8000"])
    mounts = [f"{MIRROR}:/srv/mirror:ro", f"{directory}:/srv/session:ro"]
    run("docker", "rm", "--force", NAME, check=False)
    volumes = [text for mount in mounts for text in ("--volume", mount)]
    options = ["--name", NAME, "--network", "none", "--workdir", HOME]  # docker makes that directory
    run("docker", "run", "--detach", *options, *volumes, images.ensure("el7"), "sleep", "3600")
    try:
        unpack = (
            "import zipfile; zipfile.ZipFile('/srv/session/pip/wheels/pip-9.0.3-py2.py3-none-any.whl').extractall(d)"
        )
        target = "/usr/local/lib/python2.7/dist-packages"
        execute(f"mkdir -p {target} && {PYTHON} -c \"d = '{target}'; {unpack}\"", user="root")
        execute(f"cp -r /srv/session/project/. {HOME} && chown -R 8536:8536 {HOME}", user="root")
        serve = ("/usr/bin/python3", "-m", "http.server", "8000", "--directory", "/srv/mirror")
        run("docker", "exec", "--detach", NAME, *serve)
        yield
    finally:
        run("docker", "rm", "--force", "--volumes", NAME, check=False)


@pytest.fixture(scope="module")
def installed(session: None) -> str:
    _, output = execute(f"{PYTHON} install.py", http_proxy="http://someone:s3cret@127.0.0.1:1", no_proxy="127.0.0.1")
    return output


def test_a_mirror_that_is_not_reached_is_a_sentence(session):
    """The proxy of the session does not reach it, and its password is not printed."""
    code, output = execute(f"{PYTHON} install.py", check=False, http_proxy="http://someone:s3cret@127.0.0.1:1")
    assert code == 1
    line = output.strip().splitlines()[-1]
    assert re.match(r"install.py: The mirror must serve http://127.0.0.1:8000/wheels/\S+, but: .*refused", line), line
    assert "no_proxy must name the mirror's host" in line
    assert "s3cret" not in output


def test_the_stack_is_installed_for_the_user_alone(installed):
    assert f"{STACK} is installed in {HOME}/.local." in installed
    assert installed.strip().endswith("Start a new session: this one keeps the packages that it has imported.")
    assert "s3cret" not in installed
    _, output = execute(f"{PYTHON} -c 'import tensorflow, keras; print(tensorflow.__version__, tensorflow.__file__)'")
    assert f"'1.4.1', '{HOME}/.local/lib/python2.7/site-packages/tensorflow" in output
    _, owners = execute(f"find {HOME} -not -user 8536 | head -3")
    assert owners.strip() == ""


def test_a_second_run_changes_nothing(installed):
    listing = f"find {HOME}/.local -type f -not -name '*.pyc' -printf '%p %s\\n' | sort | sha256sum"
    _, before = execute(listing)
    execute(f"{PYTHON} install.py", no_proxy="127.0.0.1")
    assert execute(listing)[1] == before


@pytest.mark.parametrize("program", ["digits_cnn.py", "digits_with_summaries.py"])
def test_an_example_learns_the_digits_without_a_gpu(program, installed):
    _, output = execute(f"{PYTHON} {program}", CUDA_VISIBLE_DEVICES="-1")
    (line,) = re.findall(r"^RESULT (.*)$", output, re.MULTILINE)
    result = json.loads(line)
    assert result["accuracy"] >= 0.95, result
    assert result["held_out"] == 360


def test_the_benchmark_trains_its_networks(installed):
    _, output = execute(f"{PYTHON} benchmark.py --seconds 1 resnet110 conv1d lstm conv-lstm 2>benchmark.txt")
    rows = [line.split() for line in output[output.index("network ") :].splitlines()[1:]]
    assert [row[0] for row in rows] == ["resnet110", "conv1d", "lstm", "conv-lstm"], output
    assert all(float(row[3]) > 0 for row in rows)
    assert "TensorFlow sees no GPU" in output


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        ("CDSW_PUBLIC_PORT", "http://engine1.cdsw.example.com"),
        ("CDSW_READONLY_PORT", "https://read-only-engine1.cdsw.example.com"),
    ],
)
def test_tensorboard_answers_on_the_port_of_the_session(variable, address, installed):
    execute("mkdir -p logs")
    environment = {variable: PORT, "CDSW_ENGINE_ID": "engine1", "CDSW_DOMAIN": "cdsw.example.com"}
    execute(f"{PYTHON} run_tensorboard.py >tensorboard.txt 2>&1 & echo $! >tensorboard.pid", **environment)
    ask = f"import urllib2; print(urllib2.urlopen('http://127.0.0.1:{PORT}/', timeout=5).read()[:200])"
    try:
        deadline = time.monotonic() + 90
        while True:
            code, output = execute(f'{PYTHON} -c "{ask}"', check=False, no_proxy="127.0.0.1")
            if code == 0 or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert code == 0, output + execute("cat tensorboard.txt")[1]
        assert "<" in output
        assert execute("cat tensorboard.txt")[1].splitlines()[0] == f"TensorBoard: {address}"
    finally:
        execute("pkill -P $(cat tensorboard.pid); kill $(cat tensorboard.pid); sleep 1; true")
