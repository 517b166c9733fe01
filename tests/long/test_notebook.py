"""deeplearning notebook with the real Jupyter of the package index, in environments made from their locks: docs/train/datascience.md.

tfos-submit is a stand-in that writes down its arguments, which the real one's parser must take: YARN is in tests/e2e/test_notebook.py.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import lockfile
from interpreters import python
from tfos_submit import options
from waiting import until

from hadoop_dl.data import programs

REPOSITORY = Path(__file__).resolve().parents[2]
CELLS = REPOSITORY / "tests/e2e/notebook/cells.py"
SUBMIT = """#!/bin/sh
echo "$*" >> "$HOME/submitted"
case "$*" in *--result*) echo '{"accuracy": 0.97, "executors": 2}' > result.json;; esac
"""
SLEEPS = {"cells": [{"cell_type": "code", "source": ["!sleep 6543"]}]}
CASES = [("tf1.15-cpu-py27-el7", python("2.7")), ("tf2.15-cpu-py3-el9-py3.11", python("3.11"))]


def environment(lock: str, interpreter: str, root: Path) -> str:
    """An environment with the versions of a lock, as far as a user sees it; its name."""
    text = (REPOSITORY / "stacks/locks" / f"{lock}.txt").read_text(encoding="utf-8")
    versions = [f"{entry['project']}=={entry['version']}" for *_, entry in lockfile.lines(text) if entry]
    name = f"{lock.partition('-py3.')[0]}-0123456789ab"
    tree, tools = root / f"envs/{name}.1", root.parent / "tools"
    if any(pin.startswith("virtualenv==") for pin in versions):  # Python 2.7
        prefixes = ("pip==", "setuptools==", "virtualenv==", "wheel==")  # some of the others are source distributions
        pip(interpreter, "--target", str(tools), *[pin for pin in versions if pin.startswith(prefixes)])
        make = [interpreter, "-m", "virtualenv", "--no-download", "--no-pip", "--no-setuptools", "--no-wheel"]
        subprocess.run([*make, str(tree)], check=True, timeout=120, env={**os.environ, "PYTHONPATH": str(tools)})
        variables = {"PYTHONPATH": str(tools)}
    else:
        subprocess.run([interpreter, "-m", "venv", str(tree)], check=True, timeout=120)
        variables = {}
    pins = [pin for pin in versions if not pin.startswith("virtualenv==")]
    pip(str(tree / "bin/python"), "--ignore-installed", "--prefix", str(tree), *pins, **variables)
    (tree / ".deeplearning").mkdir()
    (tree / ".deeplearning/sealed.json").write_text("{}")
    (tree.parent / name).symlink_to(tree.name)
    (root / "current").symlink_to(f"envs/{name}")
    return name


def pip(interpreter: str, *arguments: str, **variables: str) -> None:
    command = [interpreter, "-m", "pip", "install", "--quiet", "--no-deps", *arguments]
    subprocess.run(command, check=True, timeout=1800, env={**os.environ, **variables})


def with_token(token: str, name: str = "environ") -> dict[int, str]:
    """The processes that have the token in their variables, or in another file of theirs."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (path / name).read_bytes():
                processes[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
        except OSError:  # it ended
            continue
    return processes


def answers(address: str, token: str | None) -> int:
    headers = {"Authorization": f"token {token}"} if token else {}
    request = urllib.request.Request(f"{address}api/kernels", headers=headers)  # noqa: S310 (this test's own server)
    for _ in range(120):
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 (this test's own server)
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            time.sleep(0.5)
    raise AssertionError("no answer within a minute")


@pytest.mark.parametrize(
    ("lock", "interpreter"), [pytest.param(lock, *one.values, id=lock, marks=one.marks) for lock, one in CASES]
)  # type: ignore[attr-defined]
def test_a_notebook_trains_submits_and_leaves_no_process(lock, interpreter, tmp_path):
    root, program, packages_directory, home = (tmp_path / name for name in ("deeplearning", "command", "own", "home"))
    environment(lock, interpreter, root)
    assert programs.main([str(REPOSITORY / "roles/deeplearning_command/files/deeplearning"), str(program)]) == 0
    (home / "bin").mkdir(parents=True)
    (home / "bin/tfos-submit").write_text(SUBMIT)
    (home / "bin/tfos-submit").chmod(0o755)
    for name in ("digits", "notebook"):
        shutil.copytree(REPOSITORY / "examples" / name, home / name)
    (home / "notebook/sleeps.ipynb").write_text(json.dumps(SLEEPS))
    variables = {**os.environ, "HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    if os.geteuid() == 0:  # Jupyter refuses root, also in tests; a user has no such file
        (home / ".jupyter").mkdir()
        for name, section in (("notebook", "NotebookApp"), ("server", "ServerApp")):
            (home / f".jupyter/jupyter_{name}_config.json").write_text(json.dumps({section: {"allow_root": True}}))

    def command(name: str, *arguments: str) -> list[str]:
        return [str(program), name, "--root", str(root), *arguments]

    subprocess.run(command("venv", str(packages_directory)), check=True, timeout=120, env=variables)
    subprocess.run([str(packages_directory / "bin/pip"), "install", "--quiet", "notebook"], check=True, timeout=1800)

    controller, terminal = pty.openpty()

    def as_in_a_terminal() -> None:  # a shell's background commands ignore SIGINT, and those of nohup SIGHUP
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    server = subprocess.Popen(
        command("notebook", "--venv", str(packages_directory), "--gpus", "none", str(home / "notebook")),
        stdin=terminal,
        stderr=subprocess.PIPE,
        text=True,
        env=variables,
        preexec_fn=as_in_a_terminal,
    )
    assert server.stderr is not None
    try:
        lines = [server.stderr.readline() for _ in range(3)]
        address, _, token = lines[2].partition("then open ")[2].split()[0].partition("?token=")
        assert (answers(address, token), answers(address, None)) == (200, 403)

        def cells(name: str) -> subprocess.Popen[str]:
            arguments = [str(CELLS), str(home / "notebook" / name), f"{address}?token={token}"]
            return subprocess.Popen(
                [str(packages_directory / "bin/python"), *arguments], stdout=subprocess.PIPE, text=True, env=variables
            )

        with cells("digits.ipynb") as process:
            output = process.communicate(timeout=300)[0]
        assert process.returncode == 0, output
        assert "here: accuracy 0.9" in output
        assert "on 2 executors: accuracy 0.970" in output
        sleep_process = cells("sleeps.ipynb")
        until(
            lambda: any(words.endswith("sleep 6543 ") for words in with_token(token).values()), 30, "the cell must run"
        )
        sleep_process.kill()
        sleep_process.communicate()
        processes = with_token(token)
        assert sum("ipykernel_launcher" in words for words in processes.values()) == 2
        assert with_token(token, "cmdline") == {}, "others see arguments"
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=60)
        until(lambda: not with_token(token), 30, "no process may be left")
    finally:
        server.kill()
        os.close(controller)
        os.close(terminal)
    _, train = (line.split() for line in (home / "submitted").read_text().splitlines())
    parsed_arguments = options.arguments_parser().parse_args(train)
    assert parsed_arguments.executors == 2
