"""Each step of lint passes on a small good tree and fails on a planted fault of its kind, by the command that it runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hadoop_dl_dev.check_steps import HOST_CODE, PYTHON3_HOST_CODE, REPO, lint_steps

SETTINGS = ("pyproject.toml", ".yamllint", ".ansible-lint")
# The real settings with the real hook, for one page.
SITE = (REPO / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[0]
GOOD = {
    "mkdocs.yml": SITE.replace("[lib/", f"[{REPO}/lib/") + "\n",
    "docs/index.md": "# Good\n\n[Here](#good)\n",
    "docs/site/site.css": "",
    **{f"{folder}/good.py": "" for folder in HOST_CODE},
    **{path: "" for path in PYTHON3_HOST_CODE},
    "lib/good.py": "",
    "scripts/good": "#!/bin/sh\necho good\n",
    "playbooks/good.yml": "---\n- name: Read nothing\n  hosts: localhost\n  gather_facts: false\n  tasks: []\n",
}
SHELL = "---\n- name: Change a host\n  hosts: localhost\n  tasks:\n    - shell: echo > /etc/x\n"
FAULTS = {
    "ansible-lint": ("playbooks/good.yml", SHELL),
    "ruff": ("lib/fault.py", "import os\n"),
    "ruff format": ("lib/fault.py", "x = 'a'\n"),
    "shellcheck": (
        "scripts/last",
        "#!/bin/sh\nif then\n",
    ),  # the last of the scripts: bash -n would read the first alone
    "yamllint": ("playbooks/fault.yml", "---\nx: [1,\n"),
    "mypy": ("lib/fault.py", "x: int = ''\n"),
    "documents": ("docs/fault.md", "# Fault\n\n[No such page](../README.md)\n"),
    "python 2.7": ("plugins/modules/fault.py", "x = f'{1}'\n"),
    "python 3.6": (PYTHON3_HOST_CODE[-1], "if (x := 1):\n    pass\n"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in GOOD.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    for name in SETTINGS:
        shutil.copy(REPO / name, tmp_path / name)
    return tmp_path


def run(tree: Path, name: str) -> subprocess.CompletedProcess[str]:
    step = next(step for step in lint_steps(tree) if step.name == name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {**os.environ, **step.environment, "PATH": path}
    return subprocess.run(step.command, cwd=tree, env=variables, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", FAULTS)
def test_a_step_passes_on_a_good_tree_and_names_the_file_with_a_fault(tree, name):
    before = run(tree, name)
    assert before.returncode == 0, before.stdout + before.stderr
    path, text = FAULTS[name]
    (tree / path).write_text(text, encoding="utf-8")
    after = run(tree, name)
    assert after.returncode != 0
    assert path.removeprefix("docs/") in after.stdout + after.stderr


def test_every_step_has_a_fault_here_or_a_test_of_its_own():
    """tests/unit/test_structure.py plants the faults of `structure`."""
    assert {step.name for step in lint_steps(REPO)} == {*FAULTS, "structure"}
