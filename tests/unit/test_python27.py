"""What runs on RHEL 7's Python 2.7 must be written in its grammar; a trailing comma after **extra is enough to break it."""

import ast
import json
from pathlib import Path

import parso
import pytest
import yaml

from hadoop_dl_dev import check_steps

REPO = Path(__file__).resolve().parents[2]
GRAMMAR = parso.load_grammar(version="2.7")
FILES = [
    path
    for pattern in (
        "plugins/modules/*.py",
        "plugins/module_utils/**/*.py",
        "roles/*/files/**/*.py",
        "examples/**/*.py",
    )
    for path in sorted(REPO.glob(pattern))
    if str(path.relative_to(REPO)) not in check_steps.PYTHON3_HOST_CODE
]


def problems(source: str) -> list[str]:
    return [f"line {error.start_pos[0]}: {error.message}" for error in GRAMMAR.iter_errors(GRAMMAR.parse(source))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_the_file_is_python_2_7(path):
    source = path.read_text(encoding="utf-8")
    assert source.isascii() or "coding: utf-8" in source.split("\n", 2)[0] + source.split("\n", 2)[1]
    assert problems(source) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_the_file_means_in_python_2_7_what_it_means_in_python_3(path):
    """There / drops the remainder of integers, print of several values shows a tuple, and a module beside the file hides one of Python's own."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    future = {alias.name for node in imports if node.module == "__future__" for alias in node.names}
    names = {node.module.partition(".")[0] for node in imports}
    names |= {alias.name.partition(".")[0] for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    beside = {other.stem for other in path.parent.iterdir() if (path.parent / "__init__.py").exists()}
    required = {"division"} if any(isinstance(node, ast.Div) for node in nodes) else set()
    printed = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "print"]
    required |= {"print_function"} if any(len(node.args) != 1 or node.keywords for node in printed) else set()
    required |= {"absolute_import"} if names & beside else set()
    assert required <= future


def test_the_cells_of_the_notebook_are_python_2_7():
    notebook = json.loads((REPO / "examples/notebook/digits.ipynb").read_text(encoding="utf-8"))
    for cell in [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]:
        assert problems("".join(line for line in cell["source"] if not line.startswith("!"))) == []


@pytest.mark.parametrize("scenario", sorted(path.parent.name for path in REPO.glob("molecule/*/molecule.yml")))
def test_stand_ins_of_rhel_7_are_managed_with_python_2_7(scenario):
    described = yaml.safe_load((REPO / "molecule" / scenario / "molecule.yml").read_text(encoding="utf-8"))
    hosts = [host["name"] for host in described["platforms"] if host["image"] == "el7" and "el7" not in host["groups"]]
    assert hosts == []  # the group sets ansible_python_interpreter in .config/molecule/config.yml
