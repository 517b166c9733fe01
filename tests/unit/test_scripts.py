"""The commands under scripts/, as somebody types them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMMANDS = sorted(path.name for path in SCRIPTS.iterdir() if not path.name.startswith("_"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_explains_itself_from_any_directory(command: str, tmp_path: Path) -> None:
    # A file there that has the name of a module must not be run in its place, least of all as root.
    for name in ("argparse.py", "xml.py", "yaml.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong file was imported')\n", encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [str(SCRIPTS / command), "--help"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert command in done.stdout + done.stderr
