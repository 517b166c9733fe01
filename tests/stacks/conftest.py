"""Every lock of every stack, installed on a node of its operating system. stacks/locks/tested.yml keeps the answers."""

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from node import MIRROR, MIRROR_URL, REPOSITORY, ROOT, Node, borrowed, images_of, last_words

from hadoop_dl.cli import mirror
from hadoop_dl.data import stacks
from hadoop_dl_dev import tested
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.shell import DemoError


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--stack", action="append", default=[], help="only this stack (repeatable)")
    parser.addoption(
        "--image", action="append", default=[], help="only locks whose first image is this one (repeatable)"
    )


@dataclass
class Installed:
    """One lock, installed; `answers` collects what the tests found."""

    stack: stacks.Stack
    python: str
    node: Node | None = None
    skipped: str = ""
    failed: str = ""
    answers: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return f"{ROOT}/envs/{self.stack.name}-{self.stack.lock(self.python).digest}"

    @property
    def spark(self) -> str:
        return f"{ROOT}/spark-{self.stack.data.get('pyspark')}"

    def ask(self, *command: str, timeout: float = 600, **variables: str) -> str:
        """Run a program with the environment's Python."""
        assert self.node
        return self.node.ask([f"{self.path}/bin/python", *command], variables, timeout)


_nodes: dict[str, Node] = {}


def node_of(image: str, requested: Sequence[str]) -> Node:
    if image not in _nodes:
        _nodes[image] = Node(image, borrowed(), requested)
    if not _nodes[image].started:
        _nodes[image].start()
    return _nodes[image]


@pytest.fixture(scope="session", autouse=True)
def _nodes_end() -> Iterator[None]:
    yield
    for node in _nodes.values():
        if node.started:
            node.stop()


def chosen(config: pytest.Config) -> list[tuple[str, str]]:
    """The locks that this run is about, those of one image together."""
    names, requested = config.getoption("--stack"), config.getoption("--image")
    for name in names:
        stacks.load_stack(name)
    locks = [(name, python) for name, python in tested.all_locks() if not names or name in names]
    first = {name: images_of(stacks.load_stack(name))[0] for name, _ in locks}
    return sorted(
        (lock for lock in locks if not requested or first[lock[0]] in requested), key=lambda lock: first[lock[0]]
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    locks = chosen(metafunc.config)
    ids = [f"{name}-py{python}" for name, python in locks]
    metafunc.parametrize("lock", locks, ids=ids, indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A lock is asked only what its stack promises."""
    order = {lock: number for number, lock in enumerate(chosen(config))}
    left_out = [item for item in items if question(item) not in tested.questions(*loaded(item))]
    selected_items = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(selected_items, key=lambda item: order[lock_of(item)])


def lock_of(item: pytest.Item) -> tuple[str, str]:
    return item.callspec.params["lock"]  # type: ignore[attr-defined]


def loaded(item: pytest.Item) -> tuple[stacks.Stack, str]:
    name, python = lock_of(item)
    return stacks.load_stack(name), python


def question(item: pytest.Item) -> str:
    marker = item.get_closest_marker("question")
    assert marker, f"{item.name} needs the mark question"
    return str(marker.args[0])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "question(name): the question of hadoop_dl_dev.tested that the test answers")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    environment = getattr(item, "funcargs", {}).get("lock")
    if call.when == "call" and environment and report.skipped:
        environment.answers[question(item)] = str(report.longrepr[2])
    elif call.when == "call" and environment:
        error = str(call.excinfo.value) if call.excinfo else ""
        environment.answers[question(item)] = (
            tested.YES if report.passed else last_words(error.partition("\nassert ")[0], "")
        )
    return report


@pytest.fixture(scope="module")
def lock(request: pytest.FixtureRequest) -> Iterator[Installed]:
    """Install and seal the environment; remove it when its questions are answered, and write them down."""
    stack, python = stacks.load_stack(request.param[0]), request.param[1]
    environment = Installed(stack, python)
    mirror.fetch_artifacts(stack.artifacts(python), MIRROR)
    place(environment, request.config.getoption("--image"))
    if environment.node:
        try:
            environment.node.install(environment.stack, environment.python, environment.path)
        except DemoError as error:
            environment.failed = message_of(str(error))
    yield environment
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    image = environment.node.image if environment.node else ""
    identity = (stack.name, python, tested.digest(stack, python))
    tested.write(tested.Record(*identity, image, today, environment.answers, environment.skipped))
    if environment.node:
        nodes.execute(environment.node.name, "sh", "-c", f"rm -rf {ROOT}/current {ROOT}/envs")


def message_of(output: str) -> str:
    """The sentence of the task that failed, out of what ansible-playbook printed."""
    match = re.search(r"^\s*msg: (?:\|-|>-)?(.*?)(?=\n\s*\n|PLAY RECAP|\Z)", output, re.MULTILINE | re.DOTALL)
    return " ".join((match[1] if match else last_words(output, "")).split()).strip("'")[:400]


def place(installed: Installed, requested: Sequence[str]) -> None:
    """Choose the node: the first image on which the lock's Python starts."""
    reasons = []
    for image in images_of(installed.stack):
        try:
            node = node_of(image, requested)
            node.interpreter(installed.python)
            installed.node = node
            return
        except DemoError as error:
            reasons.append(str(error))
    installed.skipped = reasons[0]


@pytest.fixture
def connected(lock: Installed) -> Installed:
    """The node with HDFS, Kafka, the Hadoop client's settings and the stack's Spark."""
    assert lock.node
    assert not lock.failed, "the environment was not installed"
    lock.node.start_services()
    files = lock.stack.data.get("files", [])
    spark = next((file for file in files if file["source"] == "pypi:pyspark"), {})
    variables = {"mirror_url": MIRROR_URL, "spark_path": lock.spark, "spark_file": spark}
    lock.node.play(REPOSITORY / "tests" / "stacks" / "client.yml", variables)
    return lock
