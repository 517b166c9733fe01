"""The commands of docs/stacks.md for packages of a site, with the real index."""

import shlex
import subprocess
from pathlib import Path

import yaml

from hadoop_dl.data.locks import parse_lock
from hadoop_dl.data.stacks import load_stack

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "stacks.md"


def test_the_documented_packages_are_locked_beside_the_stacks_own_versions(tmp_path):
    lines = [line.strip() for line in PAGE.read_text(encoding="utf-8").splitlines()]
    command = next(line for line in lines if line.startswith("scripts/stack lock") and "--extra" in line)
    arguments = [word.replace("inventories/SITE", str(tmp_path)) for word in shlex.split(command)]
    subprocess.run(arguments, cwd=REPOSITORY, check=True, timeout=900)
    [path] = tmp_path.glob("stacks/*.yml")
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    base = load_stack(data["based_on"])
    for python in base.pythons:
        text = (path.parent / "locks" / f"{path.stem}-py{python}.txt").read_text(encoding="utf-8")
        lock = parse_lock(text, path.stem, python)
        assert lock.digest != base.lock(python).digest
        found = {entry.project: entry.sha256 for entry in lock.entries}
        assert {"pandas", "dask"} <= set(found)
        assert {entry.project: entry.sha256 for entry in base.lock(python).entries}.items() <= found.items()
