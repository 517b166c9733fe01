"""The wheel that a site built for a stack: its record beside the inventory, and the lock that it completes.

playbooks/build_tensorflow.yml writes the record, inventories/SITE/stacks/built/LOCK.json: the wheel's provenance. It pins the wheel as a lock does, and
belongs into the site's version control.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hadoop_dl.data.locks import Lock, StackError, parse_lock

Json = dict[str, Any]
HEADING = "# component: tensorflow\n"
FOLDER = "built"
NAME, SHA256 = r"\w[\w.+-]{1,200}\.whl", r"[0-9a-f]{64}"
KEYS = ("version", "os", "architecture", "python", "cpu_features", "cuda", "symbols", "built", "tag", "commit")


@dataclass(frozen=True)
class Record:
    """A built wheel's provenance, as the build host published it."""

    path: Path
    provenance: Json

    @property
    def wheel(self) -> Json:
        wheel: Json = self.provenance["wheel"]
        return wheel

    @property
    def identity(self) -> tuple[str, str, str]:
        """TensorFlow's version, its commit, and the Python that it is for."""
        provenance = self.provenance
        return provenance["version"], provenance["commit"], provenance["python"]["version"]

    @property
    def line(self) -> str:
        """The wheel as a line of a lock."""
        wheel = self.wheel
        return f"tensorflow=={self.provenance['version']} --hash=sha256:{wheel['sha256']}  # {wheel['name']} {wheel['size']}"

    def describe(self) -> str:
        """The wheel as the report of verify shows it."""
        provenance = self.provenance
        features = ", ".join(provenance["cpu_features"]) or "no CPU features"
        cuda = (
            f"CUDA {provenance['cuda']['version']} for {', '.join(provenance['cuda']['capabilities'])}"
            if provenance["cuda"]
            else "CPU"
        )
        return f"{provenance['wheel']['name']}, built {provenance['built']} on {provenance['os']['name']} from {provenance['tag']} ({provenance['commit'][:12]}), {cuda}, {features}"


def find(directories: Iterable[Path], name: str) -> Record | None:
    """The record of the lock of this name; None if the wheel is not built yet."""
    for directory in directories:
        path = directory / FOLDER / f"{name}.json"
        if path.is_file():
            return read(path)
    return None


def read(path: Path) -> Record:
    try:
        record = Record(path, json.loads(path.read_text(encoding="utf-8")))
        is_usable = is_complete(record.provenance)
    except (OSError, ValueError, KeyError, TypeError):
        is_usable = False
    if not is_usable:
        raise StackError(
            f"{path} must be the record of a built wheel, but cannot be used. Restore it, or remove it and run playbooks/build_tensorflow.yml: "
            "a wheel that is published is not built again."
        )
    return record


def is_complete(provenance: Json) -> bool:
    wheel = provenance["wheel"]
    name_matches = re.fullmatch(SHA256, wheel["sha256"]) and re.fullmatch(NAME, wheel["name"], re.ASCII)
    return bool(name_matches) and isinstance(wheel["size"], int) and all(key in provenance for key in KEYS)


def of_host(answer: Any, decided: Json, key: str) -> Json | None:
    """The provenance of the wheel that a host built; None if its answer cannot be one.

    What the controller decided is not taken from the answer. The name is one path component that has the build's key, as no other
    file of a mirror has.
    """
    try:
        wheel, symbols = answer["wheel"], answer["symbols"]
        texts = [(NAME, wheel["name"]), (NAME, wheel["built_as"]), (SHA256, wheel["sha256"])]
        texts += [
            (r"[0-9TZ:-]{1,40}", answer["built"]),
            *((r"[A-Z]+ [0-9.]{1,20}", " ".join(symbol)) for symbol in symbols.items()),
        ]
        formed = all(re.fullmatch(form, text, re.ASCII) for form, text in texts) and f"-0{key[:12]}-" in wheel["name"]
        numbers = {name: int(value) for name, value in (("size", wheel["size"]), ("seconds", answer["seconds"]))}
        check = {
            name: value
            for name, value in answer["check"].items()
            if re.fullmatch(r"\w{1,40}", name) and isinstance(value, bool)
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None
    if not formed or any(not 0 <= number < 1 << 50 for number in numbers.values()):
        return None
    provenance: Json = {
        "wheel": {name: wheel[name] for name in ("name", "built_as", "sha256")} | {"size": numbers["size"]}
    }
    provenance |= {"schema": 1, "key": key, "symbols": symbols, "check": check, "built": answer["built"]}
    return {**decided, **provenance, "seconds": numbers["seconds"]}


def completed(lock: Lock, record: Record) -> Lock:
    """The stack's lock with this site's wheel; its digest, and with it the environment's name, changes with the wheel."""
    if HEADING not in lock.text:
        raise StackError(
            f"The lock of {lock.stack} needs a section for tensorflow. Write it again: scripts/stack lock {lock.stack}"
        )
    text = lock.text.replace(HEADING, f"{HEADING}{record.line}\n", 1)
    return parse_lock(text, lock.stack, lock.python, str(record.path))
