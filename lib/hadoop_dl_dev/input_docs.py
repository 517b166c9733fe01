"""The tables of docs/reference/inputs.md: the roles' argument_specs and defaults, and inputs.yml."""

import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.compat import LOADER
from hadoop_dl.plan import forms, gpu_request, inputs
from hadoop_dl_dev.measurements import table

REPOSITORY = Path(__file__).resolve().parents[2]
COLUMNS = ("variable", "type", "accepted", "default", "purpose")


def written(value: Any) -> str:
    """A value as YAML writes it in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True).strip()
    return text.removesuffix("...").strip()


@cache
def defaults(role: str) -> dict[str, Any]:
    path = REPOSITORY / "roles" / role / "defaults" / "main.yml"
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return content


def default(entry: forms.Input) -> str:
    if entry.name in inputs.playbook_values(REPOSITORY):
        return "set by the playbooks"
    if entry.name in map(gpu_request.variable, gpu_request.ROLES):
        return "what the stack decides"
    value = entry.spec.get("default") if not entry.role else defaults(entry.role).get(entry.name)
    if entry.spec.get("required"):
        return "must be set"
    return "not set" if value is None else f"`{written(value)}`"


def row(entry: forms.Input) -> tuple[str, ...]:
    return (
        f"`{entry.name}`",
        {"request": "str, dict", "batch": "int, str", "canary": "int, str, list", "parts": "str, list"}.get(
            entry.type, entry.type
        ),
        forms.accepted(entry),
        default(entry),
        str(entry.spec["description"]) + (" Keep passwords in a vault." if entry.limits.get("secret") else ""),
    )


def section(role: str, entries: Sequence[forms.Input]) -> str:
    """The inputs of a role as a table, and the names of those that a site does not set."""
    reserved = inputs.reserved(REPOSITORY)
    rows = [row(entry) for entry in entries if entry.name not in reserved]
    names = ", ".join(f"`{entry.name}`" for entry in entries if entry.name in reserved)
    only = textwrap.fill(f"Only the playbooks set {names}.", 100, break_on_hyphens=False) if names else ""
    heading = f"Role [{role}](../../roles/{role})" if role else "For all roles"
    return "\n\n".join(filter(None, [f"## {heading}", table(COLUMNS, rows) if rows else "", only])) + "\n"


def tables() -> str:
    entries = sorted(inputs.all_inputs(REPOSITORY).values(), key=lambda entry: entry.name)
    sections = []
    for role in sorted({entry.role for entry in entries}):
        sections.append(section(role, [entry for entry in entries if entry.role == role]))
    names = table(("refused", "because"), ((f"`{name}`", reason) for name, reason in forms.table()["refused"].items()))
    sections.append(f"## Names that are no inputs\n\n{names}\n")
    return "\n".join(sections)
