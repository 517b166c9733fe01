"""Inputs: every variable that a site may set, checked once, before any task sees it.

What is accepted is written in the roles' argument_specs and, beyond types and choices, in inputs.yml. Pure functions:
values in, converted values and sentences out.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.compat import LOADER
from hadoop_dl.plan.forms import Input, Json, Refused, convert, limits, shown, table
from hadoop_dl.plan.input_conflicts import conflicts


@dataclass(frozen=True)
class FailedTemplate:
    """The value of an input whose template failed, or that could not be decrypted."""

    reason: str


@dataclass
class Checked:
    """The converted values of a host's inputs, and what is wrong with the others."""

    values: Json = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


@cache
def role_options(repository: Path, role: str) -> Mapping[str, Mapping[str, Any]]:
    """A role's inputs by name, of all its entry points."""
    path = repository / "roles" / role / "meta" / "argument_specs.yml"
    specs = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return {
        name: spec
        for entry in specs["argument_specs"].values()
        for name, spec in sorted(entry.get("options", {}).items())
    }


@cache
def all_inputs(repository: Path) -> Mapping[str, Input]:
    """Every input of the project by name: those of a site, then those of every role but internal ones (_cuda_package)."""
    inputs = {name: Input(name, "", spec, limits().get(name, {})) for name, spec in table()["site"].items()}
    for path in sorted(repository.glob("roles/[a-z]*/meta/argument_specs.yml")):
        role = path.parent.parent.name
        for name, spec in role_options(repository, role).items():
            inputs.setdefault(name, Input(name, role, spec, limits().get(name, {})))
    return inputs


@cache
def playbook_values(repository: Path) -> Mapping[str, Any]:
    """The values that the playbooks compute for the roles; a value that differs was written by the site."""
    path = repository / "playbooks" / "group_vars" / "all.yml"
    values: Json = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return values


@cache
def reserved(repository: Path) -> frozenset[str]:
    """The variables that only the playbooks set."""
    rows = limits()
    computed = {name for name in playbook_values(repository) if rows.get(name, {}).get("playbooks") != "default"}
    only = {name for name, row in rows.items() if row.get("playbooks") == "only"}
    return frozenset((computed | only) - table()["refused"].keys())


def check(variables: Mapping[str, Any], repository: Path) -> Checked:
    """Check every input that is set, and all of them together."""
    checked = check_each(variables, repository)
    unknown = (variables.keys() & all_inputs(repository).keys()) - checked.values.keys()
    checked.problems = sorted([*checked.problems, *conflicts(checked.values, repository, unknown)])
    checked.warnings = misspellings(variables, repository)
    return checked


def misspellings(variables: Iterable[str], repository: Path) -> list[str]:
    """A warning for each variable whose name nearly is that of an input."""
    nearest = {name: misspelt(name, repository) for name in variables}
    text = "is not an input of this project and is not used"
    return [f"{name} {text}; {input_name} is one." for name, input_name in nearest.items() if input_name]


def check_each(variables: Mapping[str, Any], repository: Path) -> Checked:
    """Check each of these values alone. A template that is still one is a value that the playbooks compute later."""
    checked = Checked()
    inputs, computed = all_inputs(repository), playbook_values(repository)
    candidates = variables.keys() & (inputs.keys() | reserved(repository))
    own = {name for name in candidates if not is_same(variables[name], computed.get(name))}
    for name in sorted(own & reserved(repository)):
        checked.problems.append(f"{name} must not be set: only the playbooks set it. Remove it from the inventory.")
    for name in own - reserved(repository):
        value = variables[name]
        if isinstance(value, FailedTemplate):
            checked.problems.append(f"{name} cannot be evaluated: {value.reason}. Correct it in the inventory.")
        elif not is_template(value):
            try:
                checked.values[name] = convert(inputs[name], value)
            except Refused as refused:
                checked.problems.append(sentence(inputs[name], refused))
    for name, reason in table()["refused"].items():
        if isinstance(variables.get(name), (str, bool, list, FailedTemplate)) and not is_template(variables[name]):
            checked.problems.append(f"{name} is not an input and must not be set. {reason}")
    return checked


def used(names: Iterable[str], roles: Iterable[str], repository: Path) -> frozenset[str]:
    """The inputs of a playbook that makes no plan: those that it names itself, and those of its roles, except what the playbook sets."""
    inputs, of = all_inputs(repository), set(roles)
    return frozenset(names) | {name for name, option in inputs.items() if option.role in of} - reserved(repository)


def is_same(value: Any, computed: Any) -> bool:
    """Whether the value is what the playbooks compute, which is text; to compare a vault's value would decrypt it."""
    return isinstance(value, str) and bool(value == computed)


def is_template(value: Any) -> bool:
    return isinstance(value, str) and ("{{" in value or "{%" in value)


@cache
def misspelt(name: str, repository: Path) -> str:
    """The input that a variable's name nearly is, if its first word is that of an input; "" for other names."""
    inputs = all_inputs(repository)
    if name in inputs or name in table()["refused"] or name.startswith("_"):
        return ""
    nearest = difflib.get_close_matches(name.lower(), inputs, n=1, cutoff=0.9)
    return nearest[0] if nearest else ""


def sentence(option: Input, error: Refused) -> str:
    value = "a value that is not shown" if option.limits.get("secret") else shown(error.value)
    return (
        f"{option.name} must be {error.accepted}, but is {value}. Correct it in the inventory or on the command line."
    )
