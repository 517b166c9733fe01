"""docs/inputs.md, written from the roles' argument_specs, their defaults and inputs.yml: what a site may set."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.compat import LOADER
from hadoop_dl.plan import forms, gpu_stack, inputs

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "inputs.md"
HEAD = """\
# Inputs

<!-- Written by scripts/stack docs from the roles' defaults and meta, and from plan/inputs.yml. -->

Every variable that a site may set in its inventory or with `-e`. Every playbook checks its inputs
on all hosts before any host changes, and lists every wrong value. Named files on the controller and
paths on hosts must exist. Text for a boolean or a number (`-e nvidia_driver_reboot_allowed=false`)
is converted. Lists and mappings in `-e` must be JSON: `-e '{"cuda_versions": ["12.2"]}'`.
"""
COLUMNS = ("variable", "type", "accepted", "refused, for example", "default", "purpose")
REFUSED: dict[str, Any] = {
    "bool": "maybe",
    "int": "ten",
    "str": 10.1,
    "path": 10.1,
    "list": "text",
    "dict": "text",
    "request": {"tensorflow": 1.15},
    "batch": 0,
    "canary": "150%",
    "parts": ["everything"],
}
ODD = ("newest", "/etc", "../etc", "two words", "10.1", " ")


def refused_examples(given: forms.Input) -> list[Any]:
    """Values that the input does not accept; none of an input that no site sets."""
    if given.name in inputs.reserved(REPOSITORY):
        return []
    found: list[Any] = [REFUSED[given.type]]
    form = given.limits.get("form")
    if given.spec.get("choices"):
        found = [str(given.spec["choices"][0]).capitalize()]
    elif given.type == "int":
        found.append(given.limits["min"] - 1)
    elif given.type in ("str", "path") and form:
        found.append(next(one for one in ODD if not forms.fits(form, one)))
    return found


def written(value: Any) -> str:
    """A value as YAML writes it in one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=1000, allow_unicode=True).strip()
    return text.removesuffix("...").strip()


@cache
def defaults(role: str) -> dict[str, Any]:
    path = REPOSITORY / "roles" / role / "defaults" / "main.yml"
    found: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return found


def default(given: forms.Input) -> str:
    if given.name in inputs.playbook_values(REPOSITORY) or given.name in inputs.reserved(REPOSITORY):
        return "set by the playbooks"
    if given.name in map(gpu_stack.variable, gpu_stack.ROLES):
        return "what the stack decides"
    value = given.spec.get("default") if not given.role else defaults(given.role).get(given.name)
    if given.spec.get("required"):
        return "must be set"
    return "not set" if value is None else f"`{written(value)}`"


def row(given: forms.Input) -> tuple[str, ...]:
    return (
        f"`{given.name}`",
        {"request": "str, dict", "batch": "int, str", "canary": "int, str, list", "parts": "str, list"}.get(
            given.type, given.type
        ),
        "nothing: only the playbooks set it" if given.name in inputs.reserved(REPOSITORY) else forms.accepted(given),
        ", ".join(f"`{written(value)}`" for value in refused_examples(given)) or "every value",
        default(given),
        str(given.spec["description"]),
    )


def table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def page() -> str:
    known = inputs.all_inputs(REPOSITORY)
    sections = [HEAD]
    for role in sorted({given.role for given in known.values()}):
        rows = [row(given) for _, given in sorted(known.items()) if given.role == role]
        heading = f"Role [{role}](../roles/{role})" if role else "For all roles"
        sections.append(f"## {heading}\n\n{table(rows)}\n")
    names = "\n".join(f"| `{name}` | {reason} |" for name, reason in forms.table()["refused"].items())
    sections.append(f"## Names that are no inputs\n\n| refused | because |\n| --- | --- |\n{names}\n")
    return "\n".join(sections)
