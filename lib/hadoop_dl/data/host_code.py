"""Code for hosts: which files a script or a program that runs there needs, besides those that it begins with."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

PACKAGE = "ansible.module_utils.hadoop_dl_host"
REPOSITORY = Path(__file__).resolve().parents[3]
DIRECTORY = REPOSITORY / "plugins/module_utils/hadoop_dl_host"
GPU_CHECK = REPOSITORY / "roles/gpu_check/files/gpu-check/gpu_check"  # scripts ask its questions as well
IMPORT = re.compile(r"^from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)


def imported(name: str, text: str) -> Iterator[str]:
    """Names of what the module of this name imports at its beginning: packages, modules, and what may be one."""
    for reference, names in IMPORT.findall(text):
        module = f"{name.rpartition('.')[0]}{reference}".rstrip(".") if reference.startswith(".") else reference
        parts = module.split(".")
        yield from (".".join(parts[:number]) for number in range(1, len(parts) + 1))
        yield from (f"{module}.{attribute}" for attribute in re.findall(r"(\w+)(?: as \w+)?", names))


def complete(sources: Mapping[str, Path]) -> dict[str, Path]:
    """These modules by name, with those of the packages that they import; each comes after what it imports."""
    paths = {f"{PACKAGE}.{path.stem}": path for path in DIRECTORY.glob("*.py")}
    paths |= dict.fromkeys(("ansible", "ansible.module_utils", PACKAGE), DIRECTORY / "__init__.py")
    paths |= {**package(GPU_CHECK), **sources}
    modules: dict[str, Path] = {}

    def add(name: str) -> None:
        path = paths.pop(name, None)
        if path is not None:
            for dependency in imported(name, path.read_text(encoding="utf-8")):
                add(dependency)
            modules[name] = path

    for name in sources:
        add(name)
    return modules


def package(directory: Path) -> dict[str, Path]:
    """The modules of a package by their complete names."""
    files = sorted(directory.glob("*.py"))
    return {directory.name if path.stem == "__init__" else f"{directory.name}.{path.stem}": path for path in files}
