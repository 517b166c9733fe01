"""The commands under scripts/, as somebody types them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import python_files

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMMANDS = sorted(path.name for path in SCRIPTS.iterdir() if not path.name.startswith("_"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_explains_itself_from_any_directory(command, tmp_path):
    # A file there that has the name of a module must not be run in its place, least of all as root.
    for name in ("argparse.py", "xml.py", "yaml.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong file was imported')\n", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    completed = subprocess.run(
        [str(SCRIPTS / command), "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert command in completed.stdout + completed.stderr


def test_the_first_answer_without_a_network_says_what_to_install(tmp_path):
    """A clone on a host without PyYAML, and a Python that can make no environment: no network, or no python3-venv."""
    clone = tmp_path / "clone"
    (clone / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPTS / "stack", clone / "scripts")
    (clone / "requirements.lock").write_text("pyyaml==1\n", encoding="utf-8")
    programs = tmp_path / "programs"
    fake = "case \"$*\" in *yaml*|*venv*) echo 'no such thing' >&2; exit 1 ;; esac"
    for name in ("python3", "python3.12", "python3.11", "python3.10"):
        python_files.write_script(programs / name, fake)
    completed = subprocess.run(
        [str(clone / "scripts/stack"), "resolve"],
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert "Install python3-yaml and python3-packaging" in completed.stderr
    assert not (clone / ".cache/stack-venv").exists()
