"""scripts/bench install: how long an environment takes, beside `cp -a` and sync of the same tree. Also a second stack and a repair, and other
tools with the same wheels: uv, pip, and an archive of the tree.

The modules of the roles run here, in this process's Python, with a directory of this machine as /opt/deeplearning and the controller's cache as
mirror (a web server on loopback). What counts is the ratio within a round; absolute times belong to the machine.
"""

from __future__ import annotations

import http.server
import importlib
import multiprocessing
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hadoop_dl.cli.mirror import fetch_artifacts
from hadoop_dl.data import stacks

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = REPOSITORY / ".cache" / "mirror"


class Module:
    """As much of an AnsibleModule as the work of a module reads."""

    check_mode = False

    def __init__(self, **params: Any) -> None:
        self.params = params


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing about each file."""


@contextmanager
def mirror(directory: Path) -> Iterator[str]:
    """A process of its own: on a host no thread of the mirror waits for the installer's interpreter lock."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(directory)))
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


def install(root: Path, url: str, stack: str, python: str, interpreter: str) -> Path:
    """Install and seal an environment; its tree."""
    locked_packages, environment_seal = host_modules()
    lock = stacks.load_stack(stack).lock(python)
    path = root / "envs" / f"{stack}-{lock.digest}"
    common: dict[str, Any] = {"environment": str(path), "mirror_url": url, "mirror_ca": None, "mirror_login": None}
    common.update(python=interpreter, timeout=3600)
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


def other_tools(stack: str, python: str, interpreter: str, tree: Path, place: Path) -> dict[str, list[list[str]]]:
    """Name -> the commands that put the same packages into a directory of `place`, of a lock without source distributions.

    The archive is made here, and its time does not count.
    """
    lock = stacks.load_stack(stack).lock(python)
    requirements, archive = place / "requirements.txt", place / "tree.tar.zst"
    place.mkdir()
    requirements.write_text(lock.text, encoding="utf-8")
    subprocess.run(["tar", "-C", str(tree.parent), "--zstd", "-cf", str(archive), tree.name], check=True)
    uv, common = str(Path(sys.executable).parent / "uv"), ["--quiet", "--no-index", "--no-deps", "--require-hashes"]
    common += ["--find-links", str(CACHE / "wheels"), "-r", str(requirements)]
    return {
        "uv, compiling": [
            [uv, "venv", "--quiet", "--python", interpreter, str(place / "uv")],
            [
                uv,
                "pip",
                "install",
                "--python",
                str(place / "uv"),
                "--compile-bytecode",
                "--link-mode=copy",
                "--no-cache",
                *common,
            ],
        ],
        "pip": [
            [interpreter, "-m", "venv", str(place / "pip")],
            [str(place / "pip/bin/pip"), "--no-cache-dir", "--disable-pip-version-check", "install", *common],
        ],
        f"unpacking an archive of {archive.stat().st_size // 10**6} MB": [
            ["tar", "-C", str(place), "--zstd", "-xf", str(archive)]
        ],
    }


def damage(tree: Path) -> None:
    next(tree.glob("lib/python*/site-packages/*/__init__.py")).unlink()


def size(tree: Path) -> tuple[int, int]:
    files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    return len(files), sum(path.stat().st_size for path in files) // 10**6


def now() -> tuple[float, float]:
    """Time, and processor time of this process and of the programs that it ran; the mirror's does not count."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.monotonic(), sum(one.ru_utime + one.ru_stime for one in used)


def since(began: tuple[float, float]) -> tuple[float, float]:
    wall, processor = now()
    return wall - began[0], processor - began[1]


def measure(pair: Sequence[str], python: str, interpreter: str, directory: Path, rounds: int) -> str:
    """Markdown tables: for the first stack, the second one beside it, and a repair, seconds and the ratio to a copy; and for other tools.

    In brackets the processor time, which can be compared where the machine has other work.
    """
    others: dict[str, list[tuple[float, float, float]]] = {}
    times: dict[str, list[tuple[float, float, float, float]]] = {}
    trees: dict[str, tuple[int, int]] = {}
    for stack in pair:
        fetch_artifacts(stacks.load_stack(stack).artifacts(python), CACHE, progress=print)
    with mirror(CACHE) as url:
        for _ in range(rounds):
            root = directory / "deeplearning"
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            os.sync()  # what was deleted is written now, and not during the installation
            for what, stack in (
                (pair[0], pair[0]),
                (f"{pair[1]}, beside it", pair[1]),
                (f"repair of {pair[0]}", pair[0]),
            ):
                if what.startswith("repair"):
                    damage(next((root / "envs").glob(f"{stack}-*.1")))
                began = now()
                tree = install(root, url, stack, python, interpreter)
                spent, installed = since(began), now()
                copy(
                    tree, directory / f"copy-{len(times)}-{len(times.get(what, []))}"
                )  # deleted later: that slows the disk down
                times.setdefault(what, []).append((*spent, *since(installed)))
                trees[what] = size(tree)
                if what == pair[0]:
                    place = directory / f"tools-{len(times[what])}"
                    for name, commands in other_tools(stack, python, interpreter, tree, place).items():
                        began = now()
                        for command in [*commands, ["sync", "-f", str(place)]]:
                            subprocess.run(command, check=True)
                        wall, processor = since(began)
                        others.setdefault(name, []).append((wall, processor, wall / spent[0]))
    shutil.rmtree(directory)
    lines = ["| what | files | MB | install, s (CPU) | cp -a and sync, s (CPU) | ratio |", "|---|---|---|---|---|---|"]
    for what, rows in times.items():
        ratios = [row[0] / row[2] for row in rows]
        wall, processor, copied, copying = (statistics.median(values) for values in zip(*rows, strict=True))
        spread = f"{statistics.median(ratios):.1f} ({min(ratios):.1f} - {max(ratios):.1f})"
        lines.append(
            f"| {what} | {trees[what][0]} | {trees[what][1]} | {wall:.1f} ({processor:.1f}) | {copied:.1f} ({copying:.1f}) | {spread} |"
        )
    lines += ["", "| other tools | s (CPU) | to the first installation |", "|---|---|---|"]
    for name, shares in others.items():
        wall, processor, ratio = (statistics.median(values) for values in zip(*shares, strict=True))
        lines.append(f"| {name} | {wall:.1f} ({processor:.1f}) | {ratio:.2f} |")
    return "\n".join(lines)
