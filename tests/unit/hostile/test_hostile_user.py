"""The hostile user: mallory has an account on the edge node, and plants what programs read wherever others go, against every program of users.

What she answers through YARN is in test_hostile_yarn.py; owners and bytes of one place are tested beside the program that reads it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ansible_programs
import deeplearning_edge
import pytest
from interpreters import HOST_PYTHONS
from tfos_host import executable

# What Python, its programs, Spark and Hadoop look for beside themselves or in the current directory.
MODULES = {
    *sys.stdlib_module_names,
    "sitecustomize",
    "usercustomize",
    "ConfigParser",
    "Queue",
    "StringIO",
    "httplib",
    "urllib2",
}
PACKAGES = ("ansible", "tfos_submit", "deeplearning_command", "tensorflow", "pyspark", "numpy", "pip")
PROGRAMS = (
    "python",
    "python2",
    "python3",
    "java",
    "yarn",
    "hdfs",
    "hadoop",
    "klist",
    "kinit",
    "curl",
    "nvidia-smi",
    "env",
    "sh",
)
SETTINGS = {
    "jupyter_config.py": "open({marker!r}, 'a')",
    "jupyter_notebook_config.py": "open({marker!r}, 'a')",
    "pyvenv.cfg": "home = {directory}/bin\n",
    "planted.pth": "import os; open({marker!r}, 'a')\n",
    "hadoop-env.sh": "touch {marker}\n",
    "spark-defaults.conf": "spark.driver.extraJavaOptions -XX:OnOutOfMemoryError={marker}\n",
    "tfos-submit.json": '{{"spark_home": "{directory}"}}',
}


class Mallory:
    """A directory that she owns, in which everybody may be."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.marker = directory / "shared", directory / "ran"
        code = f"open({str(self.marker)!r}, 'a').write(__name__ + chr(10))\n"
        for name in MODULES:
            self.write(f"{name}.py", code)
        for name in PACKAGES:
            self.write(f"{name}/__init__.py", code)
            self.write(f"{name}/__main__.py", code)
        for name in PROGRAMS:
            executable(self.directory / name, f"#!/bin/sh\necho {name} >> {self.marker}\n")
            executable(self.directory / "bin" / name, f"#!/bin/sh\necho {name} >> {self.marker}\n")
        for name, text in SETTINGS.items():
            self.write(name, text.format(marker=str(self.marker), directory=self.directory))
        if os.geteuid() == 0:
            for path in (self.directory, *self.directory.rglob("*")):
                os.chown(path, 65534, -1)

    def write(self, name: str, text: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def ran(self) -> list[str]:
        return self.marker.read_text().split() if self.marker.exists() else []


@pytest.fixture
def mallory(tmp_path: Path) -> Mallory:
    mallory = Mallory(tmp_path / "mallory")
    visit(mallory, tmp_path, sys.executable, "-c", "import argparse")
    assert mallory.ran() == ["argparse"], "what she plants would run"
    mallory.marker.unlink()
    return mallory


def visit(mallory: Mallory, home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What another user starts there."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=mallory.directory,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(home), "HADOOP_USER_NAME": "anna", "LC_ALL": "C"},
    )


OF_TFOS = {
    "help": ["--help"],
    "jobs": ["jobs"],
    "logs": ["logs", "application_1_0001"],
    "stop": ["stop", "application_1_0001"],
    "submit": ["SCRIPT"],
    "dry-run": ["--dry-run", "SCRIPT"],
    "per-node": ["--dry-run", "--per-node", "1", "SCRIPT"],
    "gpus": ["--gpus", "1", "SCRIPT"],
    "local": ["--local", "SCRIPT"],
    "archive": ["--archive", "hdfs:///user/anna/envs", "SCRIPT"],
    "own packages": ["--venv", "mine", "SCRIPT"],
}


@pytest.mark.parametrize("python", HOST_PYTHONS)
def test_what_is_planted_where_tfos_submit_starts_is_not_run(host, mallory, python):
    for name, words in OF_TFOS.items():
        arguments = [str(host.script) if word == "SCRIPT" else word for word in words]
        options = [] if name == "help" else ["--root", str(host.root)]
        place = 1 if arguments[0] in ("jobs", "logs", "stop") else 0
        command = [*arguments[:place], *options, *arguments[place:]]
        completed = visit(mallory, host.tmp, python, str(host.program), *command)
        assert "Traceback" not in completed.stderr, completed.stderr
        assert completed.returncode in (0, 1, 2, 3), completed.stderr
        assert mallory.ran() == [], (name, completed.stderr)
    assert (host.tmp / "command").exists(), "a job was submitted"


OF_DEEPLEARNING = {
    "list": [],
    "run": ["SCRIPT"],
    "pip": ["list"],
    "venv": ["HOME/own"],
    "kernel": [],
    "tensorboard": ["--port", "1", "none"],
    "notebook": ["."],
    "grid": ["--params", "none", "SCRIPT"],
}


@pytest.mark.parametrize("name", OF_DEEPLEARNING)
def test_what_is_planted_where_deeplearning_starts_is_not_run(edge, mallory, tmp_path, name):
    script = tmp_path / "train.py"
    script.write_text("import json, tempfile\nprint('trained')\n")
    words = [word.replace("SCRIPT", str(script)).replace("HOME", str(tmp_path)) for word in OF_DEEPLEARNING[name]]
    completed = visit(mallory, tmp_path, *deeplearning_edge.command(edge, name, *words))
    assert "Traceback" not in completed.stderr, completed.stderr
    assert mallory.ran() == [], completed.stderr
    assert completed.returncode == (0 if name in ("list", "run", "pip", "venv") else completed.returncode)


@pytest.mark.parametrize(
    "example", sorted((ansible_programs.REPOSITORY / "examples").glob("*/run.sh")), ids=lambda path: path.parent.name
)
def test_what_is_planted_where_an_example_starts_is_not_run(mallory, tmp_path, example):
    for name in ("tfos-submit", "spark-submit", "spark-shell"):
        executable(mallory.directory / name, f"#!/bin/sh\necho {name} >> {mallory.marker}\n")
    completed = visit(mallory, tmp_path, "/bin/sh", str(example))
    assert (completed.returncode != 0, mallory.ran()) == (True, []), (
        completed.stderr
    )  # nothing of ours is installed here


def test_every_program_of_users_meets_the_hostile_user():
    from deeplearning_command import cli
    from tfos_submit.options import COMMANDS

    assert {name for name, _ in cli.COMMANDS} - {"python"} == set(OF_DEEPLEARNING)  # python is the user's own
    assert set(COMMANDS) <= set(OF_TFOS)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs a job as another account")
@pytest.mark.parametrize(
    "leaves", ["mkdir -p a/b; touch a/b/c; ln -s /etc a/etc", "mkdir closed; touch closed/x; chmod 0 closed"]
)
def test_root_removes_nothing_of_a_job_that_its_user_could_exchange_meanwhile(tmp_path: Path, leaves: str) -> None:
    """On RHEL 7 Python follows a directory that became a link. What the user closed to itself stays, and is named."""
    (tmp_path / "examples").symlink_to(ansible_programs.REPOSITORY / "examples")
    (tmp_path / "site/plays").mkdir(parents=True)
    place = tempfile.NamedTemporaryFile(dir="/tmp")  # noqa: SIM115 (nobody cannot enter tmp_path)
    os.chown(place.name, 65534, -1)
    variables = {
        "upgrade_canary_user": "nobody",
        "upgrade_canary_command": f"{leaves}; pwd > {place.name}",
        "plan": {"environment": "tf-0123456789ab"},
    }
    include = {
        "ansible.builtin.include_tasks": str(ansible_programs.REPOSITORY / "playbooks/layers/tasks/canary_job.yml")
    }
    code, output = ansible_programs.play_tasks(
        tmp_path / "site/plays", [include], {"hosts": {"edge1": {}}, "vars": variables}
    )
    directory = Path(place.read().decode().strip())
    assert directory.name.endswith(".canary")
    if "closed" in leaves:
        assert (code, [path.name for path in directory.iterdir()]) == (2, ["closed"]), output
        shutil.rmtree(directory)
    else:
        assert (code, directory.exists()) == (0, False), output
