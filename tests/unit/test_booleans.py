"""Boolean inputs: `-e x=false` passes the text "false", which is true in Jinja unless `| bool` converts it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

REPOSITORY = Path(__file__).resolve().parents[2]
CONDITIONS = {"when", "that", "failed_when", "changed_when", "until"}  # Their whole text is an expression.
OF_ROLES = ("tasks/**/*.yml", "vars/*.yml", "defaults/*.yml", "handlers/*.yml", "templates/**/*.j2")
PATTERNS = (*(f"roles/*/{pattern}" for pattern in OF_ROLES), "playbooks/**/*.yml")
FILES = [path for pattern in PATTERNS for path in sorted(REPOSITORY.glob(pattern))]


@pytest.fixture(scope="module")
def boolean_inputs() -> set[str]:
    names = {"nvidia_license_accepted"}  # A site's own variable: the licence of four roles.
    for path in REPOSITORY.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            names |= {name for name, spec in entry["options"].items() if spec["type"] == "bool"}
    return names


def expressions(value: Any, key: str = "") -> Iterator[str]:
    """Every Jinja expression in a task file's content."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from expressions(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner, key)
    elif isinstance(value, str):
        yield from [value] if key in CONDITIONS else re.findall(r"\{[{%](.*?)[%}]\}", value, re.DOTALL)


def unconverted(expression: str, names: set[str]) -> list[str]:
    """The boolean inputs that this expression uses as they were passed."""
    code = re.sub(r"'[^']*'|\"[^\"]*\"", "''", expression)
    conversion = r"(\s*\|\s*default\([^()]*\))?(\s*\|\s*bool\b)?"
    uses = re.findall(rf"(?<![\w.])({'|'.join(sorted(names))})\b{conversion}", code)
    return [name for name, _, converted in uses if not converted]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_boolean_input_is_converted_where_it_is_used(path, boolean_inputs):
    text = path.read_text(encoding="utf-8")
    content = text if path.suffix == ".j2" else yaml.safe_load(text)
    assert [name for expression in expressions(content) for name in unconverted(expression, boolean_inputs)] == []


@pytest.mark.parametrize("text", ["false", "no", "off", "0", "False"])
def test_a_reboot_that_the_command_line_forbids_does_not_happen(text):
    tasks = yaml.safe_load((REPOSITORY / "roles/nvidia_driver/tasks/reboot.yml").read_text(encoding="utf-8"))
    (reboot,) = [task for task in tasks if task.get("ansible.builtin.include_tasks") == "boot.yml"]
    flags = dict.fromkeys(("__nvidia_driver_is_controller", "ansible_check_mode"), False)
    templar = Templar(loader=DataLoader(), variables={**flags, "nvidia_driver_reboot_allowed": text})
    assert templar.template("{{ " + reboot["when"] + " }}") is False
