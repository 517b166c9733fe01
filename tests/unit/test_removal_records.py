"""Nothing is removed because the inventory names it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_programs import REPOSITORY, tasks_in

REMOVING = ("file", "user", "group")
PROGRAMS = re.compile(r"\b(rm|rmdir|userdel|groupdel)\b|uninstall")
# Directories that playbooks set and that no site may set otherwise; what is removed below them has a name of this project.
SET_BY_PLAYBOOKS = {"tensorflowonspark_directory"}


def removals(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for task in tasks_in(path):
        for key, arguments in task.items():
            module = key.rpartition(".")[2]
            text = str(arguments)
            removes = module in REMOVING and isinstance(arguments, dict) and arguments.get("state") == "absent"
            runs = module in ("command", "shell", "locked_command", "limited_command") and PROGRAMS.search(text)
            if removes or runs or module == "own_files":
                yield module, task


def every_removal() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    paths = [*REPOSITORY.glob("roles/*/tasks/**/*.yml"), *REPOSITORY.glob("playbooks/**/*.yml")]
    tasks_by_path = {str(path.relative_to(REPOSITORY)): list(removals(path)) for path in paths}
    return {path: tasks for path, tasks in tasks_by_path.items() if tasks}


@pytest.mark.parametrize("path", sorted(every_removal()))
def test_no_path_or_account_that_is_removed_comes_from_the_inventory(path):
    defaults = REPOSITORY / Path(path).parents[1] / "defaults" / "main.yml"
    inputs = set(yaml.safe_load(defaults.read_text(encoding="utf-8")) or {}) if defaults.is_file() else set()
    for module, task in every_removal()[path]:
        arguments = next(value for key, value in task.items() if key.rpartition(".")[2] == module)
        values = [arguments.get(key) for key in ("path", "paths", "name", "argv")] + [
            task.get("loop"),
            task.get("vars"),
        ]
        words = set(re.findall(r"\w+", str(values)))
        assert not words & (inputs - SET_BY_PLAYBOOKS), task["name"]
