"""scripts/bench install: how long an environment takes, beside `cp -a` and sync of the same tree. Also a second stack.

The modules of the roles run here, in this process's Python, with a directory of this machine as /opt/deeplearning and the controller's cache as
mirror (a web server on loopback). What counts is the ratio within a round; absolute times belong to the machine.
"""

import http.server
import importlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hadoop_dl.cli.mirror import fetch_artifacts
from hadoop_dl.data import stacks
from hadoop_dl_dev import measurements
from hadoop_dl_dev.measurements import Cost

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache" / "mirror"
STACKS, PYTHON, INTERPRETER = ("tf2.15-cpu-py3-el9", "tf2.17-cpu-py311"), "3.11", "/usr/bin/python3.11"
DIRECTORY = Path("/var/tmp/deeplearning-bench")  # noqa: S108
HEAD = ("what", "files", "MB", "install, s", "`cp -a` and `sync`, s", "ratio")


class Module:
    """As much of an AnsibleModule as the work of a module reads."""

    check_mode = False

    def __init__(self, **params: Any) -> None:
        self.params = params


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing about each file."""


@contextmanager
def mirror(directory: Path, port: int = 0) -> Iterator[str]:
    """A process of its own: on a host no thread of the mirror waits for the installer's interpreter lock."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), partial(Quiet, directory=str(directory)))
    process = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        process.terminate()
        process.join()
        server.server_close()


def host_modules() -> tuple[Any, Any]:
    """The modules locked_packages and environment_seal, importable as on a host."""
    sys.path.insert(0, str(REPOSITORY / "plugins" / "modules"))
    return importlib.import_module("locked_packages"), importlib.import_module("environment_seal")


def install(root: Path, url: str, stack: str) -> Path:
    """Install and seal an environment; its tree."""
    locked_packages, environment_seal = host_modules()
    lock = stacks.load_stack(stack).lock(PYTHON)
    path = root / "envs" / f"{stack}-{lock.digest}"
    common: dict[str, Any] = {"environment": str(path), "mirror_url": url, "mirror_ca": None, "mirror_login": None}
    common.update(python=INTERPRETER, timeout=3600)
    for component in lock.components:
        locked_packages.work(Module(component=component, lock=lock.component(component), **common))
    environment_seal.work(
        Module(path=str(path), stack=stack, digest=lock.digest, lock=lock.text, imports=["tensorflow"], timeout=600)
    )
    return path.resolve()


def copy(tree: Path, target: Path) -> None:
    """What any installation must do at least: write these files to the disk."""
    subprocess.run(["cp", "-a", str(tree), str(target)], check=True)
    subprocess.run(["sync", "-f", str(target)], check=True)


def size(tree: Path) -> tuple[int, int]:
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    return len(files), sum(path.stat().st_size for path in files) // 10**6


def measure(rounds: int) -> str:
    """A Markdown table: for the first stack, and the second one beside it, seconds and the ratio to a copy.

    In brackets the processor time, which can be compared where the machine has other work. The mirror's does not count.
    """
    first, second = STACKS
    steps = ((first, first), (f"{second}, beside it", second))
    times: dict[str, list[tuple[Cost, Cost]]] = {title: [] for title, _ in steps}
    trees: dict[str, tuple[int, int]] = {}
    for stack in STACKS:
        fetch_artifacts(stacks.load_stack(stack).artifacts(PYTHON), CACHE, progress=print)
    with mirror(CACHE) as url:
        for _ in range(rounds):
            root = DIRECTORY / "deeplearning"
            shutil.rmtree(DIRECTORY, ignore_errors=True)
            DIRECTORY.mkdir(parents=True)
            os.sync()  # what was deleted is written now, and not during the installation
            for step, (title, stack) in enumerate(steps):
                began = measurements.now()
                tree = install(root, url, stack)
                spent, installed = measurements.since(began), measurements.now()
                copy(tree, DIRECTORY / f"copy-{step}")  # deleted later: that slows the disk down
                times[title].append((spent, measurements.since(installed)))
                trees[title] = size(tree)
    shutil.rmtree(DIRECTORY)
    rows: list[tuple[object, ...]] = []
    for title, pairs in times.items():
        ratio = measurements.spread((spent.wall / copied.wall for spent, copied in pairs), 1)
        seconds = [measurements.medians([pair[index] for pair in pairs]) for index in (0, 1)]
        rows.append((title, *trees[title], *seconds, ratio))
    return measurements.table(HEAD, rows)
