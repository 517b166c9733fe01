"""A stack plus packages of the site (deeplearning_extra_packages): a stack of its own, with its own lock and digest.

`scripts/stack lock NAME --extra PACKAGE --stacks inventories/SITE/stacks` writes it; the plan finds it by its name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement

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
    found = set()
    for text in packages or ():
        try:
            found.add(str(Requirement(text)))
        except InvalidRequirement as error:
            raise ExtrasError(f"An extra package must be written as pip does, but one is {text!r}: {error}") from error
    return sorted(found, key=str.lower)


def extended_name(name: str, packages: list[str]) -> str:
    """The name of the stack with these packages: it changes with any of them."""
    return f"{name}-extra-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:6]}"


def requested_name(name: str, packages: Any) -> str:
    """The stack that a request with these packages means; ExtrasError where it has no lock yet."""
    wanted = checked(packages)
    if not wanted:
        return name
    extended = extended_name(name, wanted)
    if extended not in stack_names():
        options = " ".join(f"--extra '{text}'" for text in wanted)
        raise ExtrasError(
            f"{name} with {', '.join(wanted)} must be locked first. Run on the controller: "
            f"scripts/stack lock {name} {options} --stacks INVENTORY/stacks (INVENTORY is the directory of the inventory)."
        )
    return extended


def write_stack(base: Stack, packages: list[str], directory: Path) -> str:
    """Write the stack's file; its name. The base's versions stay: its lock constrains the new one."""
    wanted = checked(packages)
    name = extended_name(base.name, wanted)
    requirements = {key: list(values) for key, values in base.data["requirements"].items()}
    requirements[COMPONENT] = [*requirements[COMPONENT], *wanted]
    data = {
        **base.data,
        "name": name,
        "based_on": base.name,
        "description": f"{base.data['description']}; with {', '.join(wanted)}",
        "requirements": requirements,
    }
    head = f"---\n# {base.name} with packages of this site. Written by: scripts/stack lock {base.name} --extra …\n"
    (directory / f"{name}.yml").write_text(head + yaml.safe_dump(data, sort_keys=False, width=120), encoding="utf-8")
    return name
