"""Every recipe yields what setup.py yields: pip builds each locked source distribution, with the tools of a lock, and the files are compared."""

import email
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ansible.module_utils.hadoop_dl_host import source_wheels
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from hadoop_dl.cli import mirror
from hadoop_dl.data import stacks
from hadoop_dl.data.locks import Entry, Lock

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "tests" / "unit"))
import interpreters  # noqa: E402

TOOLS = ("pip", "setuptools", "wheel")
WRITTEN = re.compile(r".*\.dist-info/(METADATA|WHEEL|RECORD|zip-safe)")  # by whoever makes a wheel
LOCKS = [
    stacks.load_stack(name).lock(python) for name in stacks.stack_names() for python in stacks.load_stack(name).pythons
]
# For each Python the first lock that has the source distribution.
CASES: dict[tuple[str, str], tuple[Lock, Entry]] = {}
for lock in LOCKS:
    for entry in lock.entries:
        if not source_wheels.is_wheel(entry.name):
            CASES.setdefault((entry.name, lock.python), (lock, entry))


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def stated(files: dict[str, bytes]) -> tuple[str, Version, set[str]]:
    """Name, version, and what it requires without extras."""
    [metadata] = [email.message_from_bytes(text) for name, text in files.items() if name.endswith("/METADATA")]
    requires = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    requirements = {str(requirement) for requirement in requires if "extra" not in str(requirement.marker)}
    return canonicalize_name(metadata["Name"]), Version(metadata["Version"]), requirements


def test_the_recipes_are_those_of_the_locks():
    assert {entry.sha256 for _, entry in CASES.values()} == set(source_wheels.RECIPES)


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_a_recipe_yields_the_files_that_setup_yields(case, tmp_path):
    lock, entry = CASES[case]
    python = interpreters.found(lock.python)
    if python is None:
        pytest.skip(f"Python {lock.python} is not installed on this machine")
    build_entries = [item for item in lock.entries if item is entry or item.project in TOOLS]
    entry_names = {item.name for item in build_entries}
    cache = REPOSITORY / ".cache" / "mirror"
    mirror.fetch_artifacts([artifact for artifact in lock.artifacts if artifact["name"] in entry_names], cache)
    tools = tmp_path / "tools"
    for item in build_entries:
        if item is not entry:
            with zipfile.ZipFile(cache / "wheels" / item.name) as archive:
                archive.extractall(tools)  # verified
    source, built, recipe_directory = cache / "wheels" / entry.name, tmp_path / "built", tmp_path / "made"
    recipe_directory.mkdir()
    command = [python, "-m", "pip", "wheel", "--isolated", "--no-deps", "--no-index", "--no-build-isolation"]
    command += ["--no-cache-dir", "--disable-pip-version-check", "--wheel-dir", str(built), str(source)]
    # As on a host, which has no compiler.
    variables = {**os.environ, "PYTHONPATH": str(tools), "CC": "/bin/false", "CXX": "/bin/false"}
    completed = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=600, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    [wheel] = built.iterdir()
    expected, actual = (
        contents(wheel),
        contents(Path(source_wheels.make(entry.name, entry.sha256, str(source), str(recipe_directory)))),
    )
    pair = [{name: text for name, text in tree.items() if not WRITTEN.fullmatch(name)} for tree in (expected, actual)]
    assert pair[1].keys() == pair[0].keys()
    assert pair[1] == pair[0]
    assert stated(actual) == stated(expected)
