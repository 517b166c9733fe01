"""Stacks: the named version sets under stacks/, read and checked. Data in, values out; the resolver decides."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data import built
from hadoop_dl.data.compat import LOADER, load
from hadoop_dl.data.locks import COMPONENTS, Lock, StackError, read_lock

DIRECTORY = Path(__file__).resolve().parents[3] / "stacks"
LONGEST_NAME = 100  # No file name is longer.
VERSIONS = (
    "tensorflow",
    "keras",
    "tensorflow_io",
    "tensorflowonspark",
    "pyspark",
    "cuda",
    "cudnn",
    "nccl",
    "driver_min",
    "driver_branch",
    "glibc_min",
)
CHOICES = {"tensorflow_source": ("prebuilt", "built"), "driver_module": ("proprietary", "open")}
LISTS = ("os", "java", "cpu_features", "sources")
SOURCE = re.compile(r"pypi:\S+$|https://\S+$")
REQUIRED = ("name", "description", "os", "python", "tensorflow", "tensorflow_package", "tensorflow_source", "sources")
# What both forms of a set have in common, beside their locks.
SAME = ("os", "python", "tensorflow", "keras", "tensorflowonspark", "pyspark", "hdfs", "kafka", "files")
BUILT = ("bazel", "tensorflow_commit")  # what a stack whose TensorFlow is built also names
OTHERS = ("hdfs", "kafka", "files", "requirements", "gcc", "based_on", "without_gpus")
KNOWN = {*REQUIRED, *VERSIONS, *CHOICES, *LISTS, *BUILT, *OTHERS}


class UnknownStack(StackError):
    """A name that no file under stacks/ has; the message lists the existing ones."""


@dataclass(frozen=True)
class Stack:
    """One stack. `data` is the file's mapping: what the plan publishes as the variable `stack`."""

    name: str
    data: dict[str, Any] = field(hash=False)
    directory: Path

    @property
    def pythons(self) -> tuple[str, ...]:
        """The Python versions it can be installed for, the preferred one first."""
        python = self.data["python"]
        return (python,) if isinstance(python, str) else tuple(python)

    def version(self, name: str) -> str | None:
        """One of its versions or choices, such as cuda or driver_min; None if it has none."""
        value = self.data.get(name)
        return str(value) if value else None

    @property
    def uses_hadoop(self) -> bool:
        """Whether it reads HDFS or submits to YARN."""
        return bool(self.data.get("hdfs")) or "tensorflowonspark" in self.data

    @property
    def imports_without_cuda(self) -> bool:
        """Whether its TensorFlow can be imported on a host without CUDA's libraries and the driver's libcuda.so.1."""
        line = ".".join(self.data["tensorflow"].split(".")[:2])
        rows = load().rows("tensorflow", "lines") if "cuda" in self.data else ()
        return all(row["imports_without_cuda"] for row in rows if row["line"] == line)

    @property
    def base(self) -> Stack | None:
        """The stack that this one adds packages to; its locked versions stay."""
        name = self.data.get("based_on")
        return load_stack(name) if name else None

    @property
    def without_gpus(self) -> Stack | None:
        """The form for hosts without GPUs, which cannot import this stack's TensorFlow. Its environment has the same name.

        Nothing but the wheel of TensorFlow may differ, so the name still changes with every version.
        """
        cpu_stack = load_stack(self.data["without_gpus"]) if "without_gpus" in self.data else None
        if cpu_stack is None:
            return None
        different = [key for key in SAME if cpu_stack.data.get(key) != self.data.get(key)]
        different = different or [
            name for name in self.pythons if self.beside_tensorflow(name) != cpu_stack.beside_tensorflow(name)
        ]
        if different:
            raise StackError(
                f"{self.name} and {cpu_stack.name} (without_gpus) must differ in TensorFlow's wheel alone, but do in {', '.join(different)}."
            )
        return cpu_stack

    def beside_tensorflow(self, python: str) -> list[str]:
        """The lines of the lock without the wheel of TensorFlow."""
        entries = self.base_lock(python).entries
        return [entry.line() for entry in entries if entry.project != self.data["tensorflow_package"]]

    @property
    def forms(self) -> list[Stack]:
        """Whose files the hosts of one cluster may need for it."""
        return [form for form in (self, self.without_gpus) if form]

    def lock_path(self, python: str) -> Path:
        name = self.name if len(self.pythons) == 1 else f"{self.name}-py{python}"
        return self.directory / "locks" / f"{name}.txt"

    def lock(self, python: str | None = None) -> Lock:
        """The lock for one of its Pythons (the preferred one by default)."""
        python = python or self.pythons[0]
        if python not in self.pythons:
            raise StackError(
                f"{self.name} is made for Python {' or '.join(self.pythons)}, but a lock for {python} was requested. "
                "Choose one of these."
            )
        lock = read_lock(self.lock_path(python), self.name, python)
        record = self.record(python)
        return built.completed(lock, record) if record else lock

    def base_lock(self, python: str) -> Lock:
        """The lock without the wheel that the site builds: what the build itself needs."""
        return read_lock(self.lock_path(python), self.name, python)

    def file(self, project: str) -> dict[str, Any]:
        """Its file called <project>-<version>.<suffix>: name, source, sha256, size."""
        return next(
            (dict(file) for file in self.data.get("files", []) if file["name"].rpartition("-")[0] == project), {}
        )

    @property
    def is_built(self) -> bool:
        return bool(self.data["tensorflow_source"] == "built")

    def record(self, python: str) -> built.Record | None:
        """The wheel that this site built for one of its Pythons; one of another release or commit is none."""
        record = built.find(directories(), self.lock_path(python).stem) if self.is_built else None
        identity = (self.data.get("tensorflow"), self.data.get("tensorflow_commit"), python)
        return record if record and record.identity == identity else None

    def artifacts(self, python: str | None = None) -> list[dict[str, Any]]:
        """Everything that the mirror must hold for it: the lock's wheels and the stack's other files."""
        python = python or self.pythons[0]
        record = self.record(python)
        wheels = [
            built_artifact(artifact) if record and artifact["sha256"] == record.wheel["sha256"] else artifact
            for artifact in self.lock(python).artifacts
        ]
        return wheels + [file_artifact(file) for file in self.data.get("files", [])]


def artifacts_of_others(needed_artifacts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The artifacts of all known stacks besides these that can be fetched again: no wheel that the site built."""
    names = {(artifact["folder"], artifact["name"]) for artifact in needed_artifacts}
    artifacts = {
        (artifact["folder"], artifact["name"]): artifact
        for stack in load_stacks()
        for python in stack.pythons
        for artifact in stack.artifacts(python)
        if not artifact.get("built")
    }
    return [artifacts[key] for key in sorted(artifacts.keys() - names)]


def built_artifact(artifact: Mapping[str, Any]) -> dict[str, Any]:
    """The site's own wheel: no index has it, playbooks/build_tensorflow.yml puts it into the mirror."""
    return {**{key: artifact[key] for key in ("folder", "name", "sha256", "size")}, "built": True}


def file_artifact(file: Mapping[str, Any]) -> dict[str, Any]:
    """A stack's file as the mirror knows it: from a project of the package index, or from an address of its own."""
    artifact = {"folder": "files", **{key: file[key] for key in ("name", "sha256", "size")}}
    kind, _, project = file["source"].partition(":")
    return {**artifact, "project": project} if kind == "pypi" else {**artifact, "url": file["source"]}


_site: list[Path] = []  # directories of the site's own stacks, for this process


def add_site_stacks(inventories: Iterable[str | Path]) -> None:
    """Read the site's own stacks, too: the directory stacks beside each inventory, inventories/SITE/stacks."""
    for source in inventories:
        path = Path(source)
        add_directory((path if path.is_dir() else path.parent) / "stacks")


def add_directory(directory: Path) -> None:
    directory = directory.resolve()
    if directory.is_dir() and directory != DIRECTORY.resolve() and directory not in _site:
        _site.append(directory)


def directories() -> list[Path]:
    """Where stacks are: the project's, then the site's."""
    return [DIRECTORY, *_site]


def stack_names(directory: Path | None = None) -> list[str]:
    searched = [directory] if directory else directories()
    return sorted({path.stem for folder in searched for path in folder.glob("*.yml")})


def load_stacks(names: Container[str] | None = None) -> list[Stack]:
    """The known stacks, all or those of these names."""
    return [load_stack(name) for name in stack_names() if names is None or name in names]


def load_stack(name: str, directory: Path | None = None) -> Stack:
    """The stack of that name; UnknownStack lists the known ones and names the nearest."""
    searched = [directory] if directory else directories()
    usable = len(name) <= LONGEST_NAME and os.path.basename(name) == name
    # As texts: the resolver loads stacks thousands of times, and Path objects would take longer than the rest.
    paths = [path for folder in searched if usable and os.path.isfile(path := f"{folder}/{name}.yml")]
    if len(paths) > 1:
        raise StackError(
            f"The name of a stack must be unique, but {' and '.join(paths)} have the same. Rename the site's "
            "file, the name in it, and its locks."
        )
    if not paths:
        names = stack_names(directory)
        nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
        hint = f" Did you mean {nearest[0]}?" if nearest else ""
        short = name if len(name) <= LONGEST_NAME else f"{name[:20]}…"
        raise UnknownStack(
            f"The name of a stack is required, but none is called {short!r}.{hint} Known stacks: {', '.join(names)}."
        )
    return _load(paths[0])


@cache
def _load(file: str) -> Stack:
    path = Path(file)
    try:
        definition = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    except yaml.YAMLError as error:
        raise StackError(f"{path} must be YAML, but is not: {error}") from error
    problems = stack_problems(definition, path.stem)
    if problems:
        raise StackError(f"{path} cannot be used: " + " ".join(problems))
    return Stack(name=path.stem, data=definition, directory=path.parent)


def stack_problems(data: object, stem: str) -> list[str]:
    """One message for each mistake in a stack file's content."""
    if not isinstance(data, dict):
        return ["It must be a mapping."]
    problems = [f"The key {key} is missing." for key in REQUIRED if key not in data]
    for key in sorted(set(data) - KNOWN):
        nearest = difflib.get_close_matches(key, KNOWN, n=1)
        problems.append(f"The key {key} is not known{f'; {nearest[0]} is' if nearest else ''}.")
    if data.get("name", stem) != stem:
        problems.append(f"Its name is {data['name']!r}, but the file is called {stem}.yml; make them equal.")
    for key in VERSIONS:
        if key in data and not _is_version(data[key]):
            problems.append(f"{key} must be a quoted version but is {data[key]!r}.")
    for key, choices in CHOICES.items():
        if key in data and data[key] not in choices:
            problems.append(f"{key} must be {' or '.join(choices)} but is {data[key]!r}.")
    for key in LISTS:
        if key in data and not (isinstance(data[key], list) and all(isinstance(item, str) for item in data[key])):
            problems.append(f"{key} must be a list of quoted values but is {data[key]!r}.")
    pythons = data.get("python")
    if "python" in data and not (
        _is_version(pythons) or (isinstance(pythons, list) and pythons and all(map(_is_version, pythons)))
    ):
        problems.append(f"python must be a quoted version or a list of them but is {pythons!r}.")
    if data.get("tensorflow_source") == "built":
        problems += [f"The key {key} is missing: its TensorFlow is built." for key in BUILT if key not in data]
        if not re.fullmatch(r"[0-9a-f]{40}", str(data.get("tensorflow_commit", "0" * 40))):
            problems.append(
                f"tensorflow_commit must be the 40 hex digits of a commit but is {data['tensorflow_commit']!r}."
            )
        if len(data.get("os", [])) != 1:
            problems.append("os must have one entry: a wheel is built on the operating system that runs it.")
    requirements = data.get("requirements", {})
    if not isinstance(requirements, dict) or set(requirements) - set(COMPONENTS):
        problems.append(f"requirements may have the components {', '.join(COMPONENTS)}, but is {requirements!r}.")
    for file in data.get("files", []):
        if not (isinstance(file, dict) and set(file) == {"name", "source", "sha256", "size"}):
            problems.append(f"Every entry of files must have name, source, sha256 and size, but one is {file!r}.")
        elif not re.fullmatch(r"[0-9a-f]{64}", str(file["sha256"])) or not SOURCE.match(str(file["source"])):
            problems.append(
                f"The file {file['name']} needs a sha256 of 64 hex digits and a source, pypi:PROJECT or an https address."
            )
    return problems


def _is_version(value: object) -> bool:
    return isinstance(value, str) and bool(re.match(r"\d+(\.\w+)*$", value))
