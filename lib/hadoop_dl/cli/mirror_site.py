"""Runs of Ansible for scripts/mirror on the controller: read an inventory with its templates and vaults, and make sets of packages."""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hadoop_dl.cli.ansible_runs import REPOSITORY, missing_inventory, run

Json = dict[str, Any]
PYTHON = "/usr/bin/python3"  # the one that has dnf's module
SET = ("name", "packages", "repositories", "key")  # what the module mirror_packages takes of a set


class SiteError(Exception):
    """An inventory that Ansible cannot read, or that does not decide what its mirror holds; or a set that was not made."""


def read(inventories: Sequence[str], options: Sequence[str], stacks: Sequence[str], plan: Path | None = None) -> Json:
    """The contents of these inventories' mirror, as lib/hadoop_dl/hosts/mirror_contents.py has them.

    options: further ones of ansible (vaults, -e). stacks: those that the operator names. plan: a file with a plan.
    """
    if missing := missing_inventory(inventories):
        raise SiteError(f"The inventory must exist, but {missing} does not.")
    sources = [f"--inventory={inventory}" for inventory in inventories]
    place = f"--playbook-dir={REPOSITORY / 'playbooks' / 'layers'}"
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "contents.json"
        plan_file = str(plan.resolve()) if plan else ""
        arguments = json.dumps({"file": str(file), "stacks": list(stacks), "plan": plan_file})
        module = ("--module-name=mirror_contents", f"--args={arguments}")
        output = run("ansible", "all", *module, place, *sources, *options).stdout
        if not file.is_file():
            raise SiteError(
                f"Ansible must read the inventory {', '.join(inventories)}, but could not:\n{output.strip()}"
            )
        contents: Json = json.loads(file.read_text(encoding="utf-8"))
    if contents["problems"]:
        raise SiteError("\n".join(contents["problems"]))
    return contents


def make_set(description: Json, root: Path) -> bool:
    """Make the directory hold this set of packages; whether it was made now."""
    arguments = json.dumps({"root": str(root.resolve()), **{name: description[name] for name in SET}})
    output = run(
        "ansible",
        "localhost",
        "--inventory=localhost,",
        "--connection=local",
        f"--extra-vars=ansible_python_interpreter={PYTHON}",
        "--module-name=mirror_packages",
        f"--args={arguments}",
        "--one-line",
    ).stdout
    answer = re.search(r"\| (SUCCESS|CHANGED|FAILED!?) => (\{.*\})", output)
    result: Json = json.loads(answer[2]) if answer else {"msg": output.strip()}
    if "reason" not in result:
        raise SiteError(f"The set {description['name']}: {result['msg']}")
    return bool(result["reason"])
