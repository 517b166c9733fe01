"""deeplearning notebook and kernel on the edge node of deeplearning_edge.py; Jupyter is a stand-in that reads what the real one reads.

Recorded of notebook 5.7.16 and 7.6.5 (tests/long/test_notebook.py asks the real ones): options, JUPYTER_TOKEN, 403 without the token, and
that Ctrl-C in a terminal asks a question first.
"""

import json
import os
import pty
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from deeplearning_edge import NEW, SHOW, ask, command, free_port, package, refused, run
from other_processes import as_in_a_terminal

JUPYTER = """
import argparse, json, os, signal, subprocess, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
made = argparse.ArgumentParser(allow_abbrev=False)
for name in ("--ip", "--port", "--port-retries", "--notebook-dir"):
    made.add_argument(name, required=True)
made.add_argument("--no-browser", action="store_true", required=True)
given = made.parse_args()
if sys.stdin.isatty():  # the real one asks "Shutdown this notebook server (y/[n])?" and goes on
    signal.signal(signal.SIGINT, signal.SIG_IGN)
class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        right = self.path.endswith("?token=" + os.environ["JUPYTER_TOKEN"])
        self.send_response(200 if right else 403)
        self.end_headers()
        names = ("CUDA_VISIBLE_DEVICES", "CLASSPATH", "JUPYTER_PATH")
        told = {"prefix": sys.prefix, "directory": given.notebook_dir, "starts": os.getcwd(), "argv": open("/proc/self/cmdline").read(), "ip": given.ip}
        self.wfile.write(json.dumps({**told, **{name: os.environ.get(name) for name in names}}).encode() if right else b"")
HTTPServer((given.ip, int(given.port)), Page).serve_forever()
"""
ADDRESS = "then open "


@pytest.fixture(scope="module")
def own(edge: Any) -> Path:
    """A user's directory that has the stand-ins."""
    path: Path = edge.base / "jupyter"
    completed = run(edge, "venv", str(path))
    assert completed.returncode == 0, completed.stderr
    (packages,) = path.glob("lib/python*/site-packages")
    package(packages, "notebook", "7.6.5")
    package(packages, "ipykernel", "7.4.0")
    (path / "bin/jupyter-notebook").write_text(JUPYTER)
    (packages / "ipykernel_launcher.py").write_text(SHOW)
    return path


@pytest.fixture(autouse=True)
def _home(edge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JUPYTER_DATA_DIR", "XDG_DATA_HOME", "JUPYTER_PATH", "DEEPLEARNING_ENVIRONMENT"):
        monkeypatch.delenv(name, raising=False)


# --- notebook


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_notebook_is_for_who_has_the_token_and_ends_with_the_command(edge, own, number):
    port = free_port()
    notebooks = edge.base / "notebooks"
    notebooks.mkdir(exist_ok=True)
    (notebooks / "argparse.py").write_text("raise SystemExit('a file of the user took the place of a module')\n")
    arguments = command(edge, "notebook", "--venv", str(own), "--gpus", "none", "--port", str(port), str(notebooks))
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        arguments, stdin=terminal, stderr=subprocess.PIPE, text=True, preexec_fn=as_in_a_terminal
    ) as process:
        try:
            assert process.stderr is not None
            lines = [process.stderr.readline() for _ in range(3)]
            address = lines[2].partition(ADDRESS)[2].split()[0]
            report = ask(address)
            assert ask(address.partition("?")[0] + "?token=other") == 403
            process.send_signal(number)
            process.communicate(timeout=30)
        finally:
            process.kill()
            os.close(controller)
            os.close(terminal)
    token = address.partition("token=")[2]
    assert len(token) >= 32
    assert token not in report.pop("argv")
    assert report == {
        "prefix": str(own),
        "directory": str(notebooks),
        "starts": "/",  # jupyter_core up to 4.11.1 runs the settings that it finds there (CVE-2022-39286)
        "ip": "127.0.0.1",
        "CUDA_VISIBLE_DEVICES": "",
        "CLASSPATH": "/opt/hadoop/a.jar",
        "JUPYTER_PATH": f"{own}/share/jupyter",
    }
    assert f"ssh -N -L {port}:127.0.0.1:{port} " in lines[1]
    assert process.returncode in (-number, 1)


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_notebooks_that_others_can_change_are_not_started(edge, own, mode):
    """A kernel imports modules of its directory, such as a planted ipykernel_launcher.py."""
    shared = edge.base / "shared"
    shared.mkdir(exist_ok=True)
    os.chown(shared, 0, 12)
    shared.chmod(mode)
    words = f"only you may be able to write to {shared}, because Jupyter runs programs of this directory as you"
    refused(edge, 3, words, "notebook", "--venv", str(own), str(shared))


@pytest.mark.parametrize("command", ["run", "python", "notebook", "tensorboard"])
@pytest.mark.parametrize("place", ["", "bin", ".."])
def test_packages_of_somebody_else_run_nowhere(edge, own, tmp_path, command, place):
    """--venv with the directory of another user, or in one."""
    (tmp_path / "parent").mkdir()
    other = tmp_path / "parent/venv"
    shutil.copytree(own, other, symlinks=True)
    os.chown(other / place, 12345, 12345)
    script = tmp_path / "train.py"
    script.touch()
    arguments = [command, "--venv", str(other), *([str(script)] if command == "run" else [str(tmp_path)])]
    refused(edge, 3, "because programs of --venv run as you, but its owner is 12345", *arguments)


@pytest.mark.parametrize("option", ["--ip", "--host"])
def test_a_notebook_for_other_hosts_is_refused(edge, option):
    refused(edge, 2, "must listen on 127.0.0.1, but 0.0.0.0 is requested", "notebook", option, "0.0.0.0")  # noqa: S104


def test_notebooks_that_are_missing_are_told(edge, own):
    refused(edge, 3, "missing does not exist", "notebook", "--venv", str(own), "missing")


@pytest.mark.parametrize(("name", "missing"), [("notebook", "notebook"), ("kernel", "ipykernel")])
def test_without_jupyter_the_commands_to_type_are_printed(edge, name, missing):
    completed = run(edge, name, "--stack", "tf2.15")
    assert completed.returncode == 3
    assert f"{missing} is required, but {edge.root}/envs/{NEW} does not have it." in completed.stderr
    first = ["  deeplearning venv --stack tf2.15 ~/my", f"  ~/my/bin/pip install {missing}"]
    assert completed.stderr.splitlines()[1:] == [*first, f"  deeplearning {name} --venv ~/my"]


def test_a_directory_of_packages_without_jupyter_needs_one_command(edge):
    path = edge.base / "empty"
    assert run(edge, "venv", str(path)).returncode == 0
    completed = run(edge, "notebook", "--venv", str(path))
    commands = [f"  {path}/bin/pip install notebook", f"  deeplearning notebook --venv {path}"]
    assert (completed.returncode, completed.stderr.splitlines()[1:]) == (3, commands)


# --- kernel


def kernels(edge: Any) -> Path:
    return edge.base / ".local/share/jupyter/kernels"


def test_a_kernel_of_another_jupyter_has_the_variables_and_packages(edge, own):
    completed = run(edge, "kernel", "--venv", str(own), "--gpus", "none")
    assert completed.returncode == 0, completed.stderr
    path = kernels(edge) / "deeplearning-jupyter"
    assert str(path) in completed.stderr
    spec = json.loads((path / "kernel.json").read_text())
    assert (spec["display_name"], spec["language"]) == ("Deep learning (jupyter)", "python")
    words = [word.replace("{connection_file}", "/run/c.json") for word in spec["argv"]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd="/") as process:
        report = json.loads(process.communicate(timeout=60)[0])
    assert report["pid"] == process.pid  # signals of Jupyter reach it
    assert (report["arguments"], report["prefix"]) == (["-f", "/run/c.json"], str(own))
    assert (report["CUDA_VISIBLE_DEVICES"], report["CLASSPATH"]) == ("", "/opt/hadoop/a.jar")


def test_a_kernel_of_a_removed_environment_says_what_to_do(edge, own):
    assert run(edge, "kernel", "--venv", str(own), "Removed").returncode == 0
    words = json.loads((kernels(edge) / "removed/kernel.json").read_text())["argv"]
    seal = edge.root / f"envs/{NEW}/.deeplearning/sealed.json"
    seal.unlink()
    try:
        completed = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    finally:
        seal.write_text("{}")
    assert (completed.returncode, "is not on this host any more" in completed.stderr) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "variables", "name", "expected"),
    [
        ([], {}, "deeplearning", []),
        (["--stack", "tf2.15"], {}, "deeplearning-tf2.15", ["--stack", "tf2.15"]),
        ([], {"DEEPLEARNING_ENVIRONMENT": "tf2.15"}, "deeplearning-tf2.15", ["--stack", "tf2.15"]),
    ],
)
def test_a_kernel_follows_the_default_or_is_of_the_named_stack(edge, own, arguments, variables, name, expected):
    (packages,) = (edge.root / "envs" / NEW).glob("lib/python*/site-packages")
    (packages / "ipykernel-7.4.0.dist-info").mkdir()  # an operator put it in
    try:
        completed = run(edge, "kernel", *arguments, **variables)
    finally:
        (packages / "ipykernel-7.4.0.dist-info").rmdir()
    assert completed.returncode == 0, completed.stderr
    words = json.loads((kernels(edge) / name / "kernel.json").read_text())["argv"]
    assert words == [*command(edge, "python"), *expected, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def test_a_kernel_of_somebody_else_stays(edge, own):
    path = kernels(edge) / "theirs/kernel.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"argv": ["python3", "-m", "ipykernel_launcher"]}')
    refused(edge, 3, "is not by deeplearning kernel", "kernel", "--venv", str(own), "theirs")
    assert "deeplearning" not in path.read_text()


def test_a_name_that_jupyter_does_not_take_is_refused(edge, own):
    refused(edge, 2, "letters, digits", "kernel", "--venv", str(own), "my kernel")


# --- examples/notebook


def test_the_example_has_no_outputs_and_names_no_python():
    text = (Path(__file__).parents[2] / "examples/notebook/digits.ipynb").read_text(encoding="utf-8")
    notebook = json.loads(text)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * 4
    assert "kernelspec" not in notebook["metadata"]  # Jupyter would ask for that one where it has another
