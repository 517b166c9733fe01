"""TensorBoard of two locks over the events that examples/digits writes, in a browser: what tests/e2e looks at on the cluster, and what it must miss."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import browser
import interpreters
import pytest
import tensorboard_page

from hadoop_dl.data import stacks

REPOSITORY = Path(__file__).resolve().parents[2]
# TensorBoard 1.15.0 and 2.15.2, as on the two demo clusters. Python 2.7 makes no venv.
STACKS = ("tf1.15-cpu-py36-el7", "tf2.15-cpu-py3-el9")
WITHOUT_A_GRAPH = f"""
import sys, tensorflow as tf
tf.compat.v1.disable_eager_execution()
writer = tf.compat.v1.summary.FileWriter(sys.argv[1] + "/scalars")
for step in range({tensorboard_page.FEWEST}):
    writer.add_summary(tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="loss", simple_value=1.0 / (step + 1))]), step)
writer.close()
"""


@dataclass(frozen=True)
class Environment:
    stack: str
    python: Path
    events: Path

    @contextmanager
    def shown(self, events: Path, tag: str) -> Iterator[str]:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = str(probe.getsockname()[1])
        command = [self.python, "-m", "tensorboard.main", "--logdir", events, "--host", "127.0.0.1", "--port", port]
        board = subprocess.Popen(command)
        try:
            tensorboard_page.wait(f"http://127.0.0.1:{port}", tag)
            yield f"http://127.0.0.1:{port}"
        finally:
            board.terminate()
            board.wait(timeout=30)


@pytest.fixture(scope="module", params=STACKS)
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    browser.program()
    stack = stacks.load_stack(request.param)
    found = [(version, path) for version in stack.pythons if (path := interpreters.found(version))]
    if not found:
        pytest.skip(f"Python {' or '.join(stack.pythons)} is not installed on this machine")
    version, interpreter = found[0]
    directory = tmp_path_factory.mktemp(stack.name)
    subprocess.run([interpreter, "-m", "venv", directory / "venv"], check=True)
    python = directory / "venv/bin/python"
    lock = stack.lock(version)
    for component in ("pip", "tensorflow", "keras", "tensorflowonspark"):  # old pips know few wheels: theirs is first
        (directory / "lock.txt").write_text(lock.component(component))
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", directory / "lock.txt"], check=True)
    program, examples = REPOSITORY / "tests/long/digits_alone.py", REPOSITORY / "examples/digits"
    subprocess.run([python, program, examples, directory / "output"], check=True)
    yield Environment(stack.name, python, directory / "output")
    shutil.rmtree(directory)  # a gigabyte


def test_a_browser_shows_the_curves_and_the_graph(environment: Environment, tmp_path: Path) -> None:
    with environment.shown(environment.events, "loss") as page:
        found = tensorboard_page.seen(page, tmp_path)
    assert tensorboard_page.problems(found, environment.stack) == [], found


def test_events_without_a_graph_and_with_one_scalar_are_told(environment: Environment, tmp_path: Path) -> None:
    subprocess.run([environment.python, "-c", WITHOUT_A_GRAPH, tmp_path / "events"], check=True)
    with environment.shown(tmp_path / "events", "loss") as page:
        found = tensorboard_page.seen(page, tmp_path / "profile")
    assert found == {"scalars": {"loss": tensorboard_page.FEWEST}, "graphs": []}
    accuracy, network = tensorboard_page.problems(found, environment.stack)
    assert (accuracy, network.startswith("no node ")) == ("accuracy: None points", True)


def test_an_empty_directory_is_told(environment: Environment, tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    with environment.shown(tmp_path / "events", "{}") as page:
        found = tensorboard_page.seen(page, tmp_path / "profile")
    assert found == {"scalars": {}, "graphs": []}
    assert len(tensorboard_page.problems(found, environment.stack)) == 3
