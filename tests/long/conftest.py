"""Fixtures of the unit tests that tests in this directory use too."""

import runpy
from pathlib import Path

unit = runpy.run_path(str(Path(__file__).resolve().parents[1] / "unit" / "conftest.py"))
cluster, fixtures, stages = unit["cluster"], unit["fixtures"], unit["stages"]
