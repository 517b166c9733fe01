"""examples/dl4j without a cluster: its jars as an input of the mirror, and how they come to an edge node."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from loopback import Quiet, served

from hadoop_dl.plan import inputs

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples/dl4j"
JARS = {"one-1.0.jar": b"one", "two-2.0.jar": b"two"}


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The example with two small jars."""
    shutil.copytree(EXAMPLE, tmp_path / "dl4j")
    lines = [f"{hashlib.sha256(jar).hexdigest()}  org/example/{name}\n" for name, jar in JARS.items()]
    (tmp_path / "dl4j/jars.sha256").write_text("".join(lines))
    return tmp_path / "dl4j"


class Mirror(Quiet):
    jars = JARS

    def do_GET(self) -> None:
        self.answer(200, self.jars[self.path.rpartition("/")[2]])


def fetch(example: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", example / "fetch.sh", *arguments], capture_output=True, text=True, check=False)


def found(example: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (example / "jars").glob("*.jar")}


def test_the_list_is_an_input_of_the_mirror():
    """By the command of its page."""
    (command,) = re.findall(r"^    (sed .*)$", (EXAMPLE / "README.md").read_text(), re.MULTILINE)
    completed = subprocess.run(["sh", "-c", command], cwd=EXAMPLE, capture_output=True, text=True, check=True)
    variables = yaml.safe_load(f"mirror_files:\n{completed.stdout}")
    assert not inputs.check(variables, REPOSITORY).problems
    assert all(entry["file"].endswith("/" + name) for name, entry in variables["mirror_files"].items())
    assert "nd4j-native-1.0.0-M2-linux-x86_64.jar" in variables["mirror_files"]


def test_jars_come_from_a_mirror_and_only_once(example):
    with served(Mirror) as address:
        completed = fetch(example, address + "/files")
    assert (completed.returncode, found(example)) == (0, JARS), completed.stderr
    second_run = fetch(example, "http://127.0.0.1:9/files")
    assert second_run.returncode == 0, "nothing is missing"
    assert "2 jars are in" in second_run.stdout


def test_a_jar_with_other_bytes_is_refused(example):
    with served(type("Lying", (Mirror,), {"jars": {**JARS, "two-2.0.jar": b"2"}})) as address:
        completed = fetch(example, address + "/files")
    assert completed.returncode != 0
    assert "two-2.0.jar.part: FAILED" in completed.stdout
    assert list(found(example)) == ["one-1.0.jar"]
