"""A stack plus packages of the site (deeplearning_extra_packages): a stack of its own, with its own lock and digest.

`scripts/stack lock NAME --extra PACKAGE --stacks inventories/SITE/stacks` writes it; the plan finds it by its name.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement

from hadoop_dl.data.locks import Entry, canonicalize_name
from hadoop_dl.data.stacks import Stack, stack_names

COMPONENT = "tensorflow"  # the role that installs them


class ExtrasError(ValueError):
    """Packages that cannot be added; the message gives the next step."""


def checked(packages: Any) -> list[str]:
    """The packages as pip's requirements, each once, in alphabetical order."""
    if not isinstance(packages, list | None) or not all(isinstance(text, str) for text in packages or ()):
        raise ExtrasError(
            f"deeplearning_extra_packages must be a list of packages such as [pandas, 'dask<2024'], but is {packages!r}."
        )
    return sorted({str(requirement(text)) for text in packages or ()}, key=str.lower)


def requirement(text: str) -> Requirement:
    """A package of the index: neither an address nor a path, nor an option that names another index."""
    try:
        package = Requirement(text)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
    else:
        if not package.url and "\n" not in text:
            return package
        reason = "it names an address" if package.url else "it has several lines"
    raise ExtrasError(
        f"A package must be a name, with versions as pip writes them, such as 'dask<2024', but one is {text!r}: {reason}. "
        "It comes from the index of PIP_INDEX_URL alone; put the package there."
    )


def extended_name(name: str, packages: list[str]) -> str:
    """The name of the stack with these packages: it changes with any of them."""
    return f"{name}-extra-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:6]}"


def requested_name(name: str, packages: Any) -> str:
    """The stack that a request with these packages means; ExtrasError if it has no lock yet."""
    extra_packages = checked(packages)
    if not extra_packages:
        return name
    extended = extended_name(name, extra_packages)
    if extended not in stack_names():
        options = " ".join(f"--extra '{text}'" for text in extra_packages)
        raise ExtrasError(
            f"deeplearning_extra_packages: {name} with {', '.join(extra_packages)} must be locked first. Run on the controller: "
            f"scripts/stack lock {name} {options} --stacks INVENTORY/stacks (INVENTORY is the directory of the inventory)."
        )
    return extended


def extended(base: Stack, packages: list[str], directory: Path) -> Stack:
    """The stack with these packages, which no file has yet. The base's versions stay: its lock constrains the new one."""
    extra_packages = checked(packages)
    name = extended_name(base.name, extra_packages)
    requirements = {key: list(values) for key, values in base.data["requirements"].items()}
    requirements[COMPONENT] = [*requirements[COMPONENT], *extra_packages]
    definition = {
        **{key: value for key, value in base.data.items() if key != "without_gpus"},
        "name": name,
        "based_on": base.name,
        "description": f"{base.data['description']}; with {', '.join(extra_packages)}",
        "requirements": requirements,
    }
    return Stack(name, definition, directory)


def cuda_of_others(stack: Stack, entries: Iterable[Entry], requires: Mapping[str, list[Requirement]]) -> str:
    """A warning about NVIDIA's libraries in a stack whose TensorFlow does not use them; empty if it has none."""
    libraries = {
        entry.project: entry.size
        for entry in entries
        if entry.project.startswith("nvidia-") and not entry.name.endswith("-any.whl")
    }
    if "cuda" in stack.data or not libraries:
        return ""
    users = [
        name
        for name in requires
        if any(
            canonicalize_name(requirement.name) in libraries and "extra" not in str(requirement.marker)
            for requirement in requires[name]
        )
    ]
    verb = "requires" if len(users) == 1 else "require"
    return (
        f"TensorFlow of {stack.name} does not use CUDA, but {', '.join(users) or 'its packages'} {verb} {', '.join(sorted(libraries))} "
        f"({sum(libraries.values()) / 1e6:.0f} MB). Every host downloads it."
    )


def file_text(stack: Stack) -> str:
    base = stack.data["based_on"]
    head = f"---\n# {base} with packages of this site. Written by: scripts/stack lock {base} --extra …\n"
    return head + yaml.safe_dump(stack.data, sort_keys=False, width=120)
