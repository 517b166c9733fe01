"""Packages of a site, as docs/operate/stacks.md says: locked with the real index, then installed and imported on a node."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hadoop_dl.cli import mirror
from hadoop_dl.data import stacks

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "stacks"))
from node import MIRROR, ROOT, Node  # noqa: E402

LINES = [
    line.strip() for line in (REPOSITORY / "docs" / "operate" / "stacks.md").read_text(encoding="utf-8").splitlines()
]
DOCUMENTED = next(line for line in LINES if line.startswith("scripts/stack lock") and "--extra" in line)
# For Python 2.7 with exact versions, those that pandas needs too.
EXACT = ("dask==1.2.2", "pandas==0.24.2", "python-dateutil==2.8.2", "pytz==2022.1")
CASES = [
    ("el7", "2.7", ["scripts/stack", "lock", "tf1.15-cpu-py27-el7", *[f"--extra={one}" for one in EXACT]]),
    ("el9", "3.11", shlex.split(DOCUMENTED.partition(" --stacks ")[0])),
]


@pytest.mark.parametrize(("image", "python", "command"), CASES, ids=["el7", "el9"])
def test_packages_of_a_site_are_locked_installed_and_imported(image, python, command, tmp_path, monkeypatch):
    subprocess.run([*command, "--stacks", str(tmp_path / "stacks")], cwd=REPOSITORY, check=True, timeout=900)
    [path] = tmp_path.glob("stacks/*.yml")
    monkeypatch.setattr(stacks, "_site", [])
    stacks.add_site_stacks([tmp_path])
    stack = stacks.load_stack(path.stem)
    base = stacks.load_stack(yaml.safe_load(path.read_text(encoding="utf-8"))["based_on"])
    for base_python in base.pythons:
        hashes = {entry.project: entry.sha256 for entry in stack.lock(base_python).entries}
        assert {"pandas", "dask"} <= hashes.keys() - {entry.project for entry in base.lock(base_python).entries}
        assert {entry.project: entry.sha256 for entry in base.lock(base_python).entries}.items() <= hashes.items()

    mirror.fetch_artifacts(stack.artifacts(python), MIRROR)
    environment = f"{ROOT}/envs/{stack.name}-{stack.lock(python).digest}"
    node = Node(image, {}, "extras", tmp_path)
    try:
        node.start()
        node.install(stack, python, environment)
        # dask.dataframe needs toolz, of which PyPI has no wheel for Python 2.7; CDSW's engines have it.
        modules = ["tensorflow", "pandas", "dask" if python == "2.7" else "dask.dataframe"]
        question = json.dumps({"modules": modules, "cuda": False})
        text = node.ask([f"{environment}/bin/python", "/srv/stacks/questions.py", question])
        answers = {answer["name"]: answer for answer in map(json.loads, text.splitlines())}
        assert {name: answer["error"] for name, answer in answers.items() if answer["error"]} == {}
        locked_versions = {entry.project: entry.version for entry in stack.lock(python).entries}
        assert all(answers["versions"]["value"][name] == locked_versions[name] for name in ("pandas", "dask"))
    finally:
        node.stop()
