"""compat/ agrees with PyPI: no version is missing or wrong. Newer versions there are printed and are no failure."""

import subprocess
from pathlib import Path

STACK = Path(__file__).resolve().parents[2] / "scripts" / "stack"


def test_the_data_agrees_with_the_index():
    completed = subprocess.run([STACK, "data", "--check"], capture_output=True, text=True, check=False, timeout=1800)
    print(completed.stdout)
    assert completed.returncode == 0, completed.stdout + completed.stderr
