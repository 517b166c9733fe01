"""A stack whose wheels are small: the lock of a real one with a module of one line in the place of each large project, and its mirror."""

import hashlib
import zipfile
from base64 import urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import yaml

from hadoop_dl.cli.mirror import fetch_artifacts
from hadoop_dl.data import stacks
from hadoop_dl.data.locks import Entry
from hadoop_dl_dev import install_bench

BASE, NAME = "tf1.4-cpu-py27-el7", "small-el7"
# What verify requires of TensorFlow itself.
FAILURES = (
    "test_tensorflow_multiplies_matrices",
    "test_a_keras_model_predicts",
    "test_tensorflow_lists_the_root_of_hdfs",
)
LARGE = 200_000  # bytes; the component pip is real, because it makes the environment


def make(directory: Path, mirror: Path) -> None:
    """Write the stack into a site's directory of stacks, and what it requires into the mirror's."""
    stack = stacks.load_stack(BASE)
    lock = stack.lock()
    small = [entry for entry in lock.entries if entry.component != "pip" and entry.size > LARGE]
    names = {entry.name for entry in lock.entries} - {entry.name for entry in small}
    fetch_artifacts([artifact for artifact in lock.artifacts if artifact["name"] in names], install_bench.CACHE)
    (mirror / "wheels").mkdir(parents=True)
    for name in names:
        (mirror / "wheels" / name).symlink_to(install_bench.CACHE / "wheels" / name)
    entries = [wheel(mirror / "wheels", entry) if entry in small else entry for entry in lock.entries]
    text = "".join(replace(lock, entries=tuple(entries)).component(name) for name in lock.components)
    (directory / "locks").mkdir(parents=True)
    (directory / "locks" / f"{NAME}.txt").write_text(text, encoding="utf-8")
    content = {**stack.data, "name": NAME, "files": []}
    (directory / f"{NAME}.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


def wheel(directory: Path, entry: Entry) -> Entry:
    """A wheel with the project's name and version, and one module."""
    module = entry.project.replace("-", "_")
    information = f"{module}-{entry.version}.dist-info"
    members = {
        f"{module}.py": f"__version__ = VERSION = {entry.version!r}\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {entry.project}\nVersion: {entry.version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: bench\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in members.items())
    path = directory / f"{module}-{entry.version}-py2.py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**members, f"{information}/RECORD": f"{record}{information}/RECORD,,\n"}.items():
            archive.writestr(name, text)
    content = path.read_bytes()
    return replace(entry, name=path.name, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def digest(text: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
