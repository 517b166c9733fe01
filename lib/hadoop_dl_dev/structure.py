"""Count what can be counted of this project's structure, and compare it with limits: `make structure`, a step of lint.

The limits are in .config/structure.yml. The project's size is not among them: a limit that follows the tree is none.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
LIMITS = Path(".config/structure.yml")
LONG_FILE, LONG_TASKS, LONG_EXPRESSION = 400, 80, 120  # lines, lines, characters
LAYERS = ("hadoop_dl_dev", *(f"hadoop_dl.{name}" for name in ("cli", "hosts", "plan", "resolver", "data")))
SHOWN = 12
CONDITIONS = ("when", "that", "until", "changed_when", "failed_when")
ACTIONS = "plugins/action/"
# Mappings that an action may spread into its result: the base class's result, and those whose keys this project's code names.
OWN_KEYS = ("result", "self.act()", "self.shown(result)")


@dataclass(frozen=True)
class Measure:
    """name: of the limit. what: one line of the table. places: files and lines that count, empty if the count is of something else."""

    name: str
    what: str
    places: list[str]
    count: int

    @classmethod
    def of(cls, name: str, what: str, places: list[str]) -> Measure:
        return cls(name, what, places, len(places))


class Tree:
    """The tracked files of a checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
        if listed.returncode != 0:
            sys.exit(
                f"make structure counts the files that git tracks, but git says: {listed.stderr.strip()} Run it in a clone."
            )
        self.files = sorted(name for name in listed.stdout.split("\0") if name and (root / name).is_file())

    @cache  # noqa: B019  (one tree lives as long as the program)
    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def python(self) -> list[str]:
        """Python outside tests, also in a program without a suffix."""
        return [
            name for name in self.files if not is_test(name) and (name.endswith(".py") or self.is_python_program(name))
        ]

    def is_python_program(self, name: str) -> bool:
        if Path(name).suffix or not self.text(name).startswith("#!") or "\nimport " not in self.text(name):
            return False
        try:
            ast.parse(self.text(name))
        except SyntaxError:
            return False
        return True

    def yaml(self, *folders: str) -> list[str]:
        return [name for name in self.files if name.endswith((".yml", ".yaml")) and name.startswith(folders)]

    def tasks(self) -> list[str]:
        return [name for name in self.yaml("roles/") if "/tasks/" in name or "/handlers/" in name]


def is_test(name: str) -> bool:
    return name.startswith("tests/") or "/tests/" in name


def lines(text: str) -> int:
    return text.count("\n")


# --- what is counted ------------------------------------------------------------------------------------------------


def cycles(tree: Tree) -> Measure:
    """Groups of modules that import each other, directly or through others: in lib/, in plugins, and in a role's program."""
    imports = imports_of(tree, "lib/", "plugins/", "roles/")
    reach = {module: closure(module, imports) for module in imports}
    groups = {frozenset(end for end in reach[begin] if begin in reach[end]) for begin in reach if begin in reach[begin]}
    return Measure.of(
        "import_cycles",
        "groups of modules that import each other",
        sorted(", ".join(sorted(group)) for group in groups),
    )


def upward(tree: Tree) -> Measure:
    """Imports against the order of LAYERS: a module may import its own layer and those after it."""
    places = [
        f"{module} imports {target}"
        for module, targets in imports_of(tree, "lib/").items()
        for target in sorted(targets)
        if layer(target) < layer(module)
    ]
    return Measure.of("upward_imports", f"imports against {' → '.join(LAYERS)}", sorted(places))


def layer(module: str) -> int:
    """The number of the module's layer; hadoop_dl itself holds nothing, so it is below all."""
    return next((number for number, name in enumerate(LAYERS) if f"{module}.".startswith(f"{name}.")), len(LAYERS))


def imports_of(tree: Tree, *folders: str) -> dict[str, set[str]]:
    """Every module under these folders, with those of the same folders that it imports."""
    names = {module_of(name): name for name in tree.python() if name.startswith(folders)}
    return {module: set(imported(tree.text(name), set(names), module)) for module, name in names.items()}


def module_of(name: str) -> str:
    """The name by which others import it; a program of a role is a package, in a directory that has the role's files."""
    for pattern, package in (
        (r"lib/", ""),
        (r"plugins/module_utils/", "ansible.module_utils/"),
        (r"roles/\w+/files/[\w-]+/(?=\w+/)", ""),
    ):
        name = re.sub(f"^{pattern}", package, name)
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(text: str, modules: set[str], module: str) -> Iterator[str]:
    """Modules that it imports anywhere: inside a function, or for types alone, an import is a bond as well."""
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = module.split(".")[: -node.level] if node.level else []
            names = [".".join([*parents, *filter(None, [node.module]), alias.name]) for alias in node.names]
        for name in names:
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                yield target


def closure(start: str, edges: dict[str, set[str]]) -> set[str]:
    """Everything that can be reached from `start`; `start` itself only over a cycle."""
    modules: set[str] = set()
    pending = list(edges[start])
    while pending:
        module = pending.pop()
        if module not in modules:
            modules.add(module)
            pending += edges[module]
    return modules


def longer(tree: Tree, names: Sequence[str], limit: int) -> list[str]:
    counts = {name: lines(tree.text(name)) for name in names}
    return [f"{name}: {count}" for name, count in counts.items() if count > limit]


def long_files(tree: Tree) -> Measure:
    title = f"Python files outside tests of more than {LONG_FILE} lines"
    return Measure.of("long_python_files", title, longer(tree, tree.python(), LONG_FILE))


def long_tasks(tree: Tree) -> Measure:
    title = f"task files of more than {LONG_TASKS} lines"
    return Measure.of("long_task_files", title, longer(tree, tree.tasks(), LONG_TASKS))


def median_tasks(tree: Tree) -> Measure:
    return Measure(
        "median_task_file",
        "lines of a task file, median",
        [],
        round(statistics.median(lines(tree.text(name)) for name in tree.tasks())),
    )


def long_expressions(tree: Tree) -> Measure:
    """An expression or a condition of a role or playbook that computes where it should choose."""
    places = []
    for name in tree.yaml("roles/", "playbooks/"):
        if "/meta/" in name:
            continue
        for text in expressions(yaml.safe_load(tree.text(name))):
            places += [f"{name}: {text[:60].strip()} …"] if len(text) > LONG_EXPRESSION else []
    title = f"expressions of more than {LONG_EXPRESSION} characters in roles and playbooks"
    return Measure.of("long_expressions", title, places)


def expressions(value: Any, key: str = "") -> Iterator[str]:
    """Text between braces, and conditions, which have none, without line breaks."""
    if isinstance(value, str):
        bare = key in CONDITIONS and "{{" not in value
        yield from (" ".join(one.split()) for one in ([value] if bare else re.findall(r"{{(.*?)}}", value, re.DOTALL)))
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from expressions(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from expressions(one, key)


def spread_answers(tree: Tree) -> Measure:
    """Places where an action could give a host's answer as the keys of its result. Ansible obeys some of them (add_host).

    A result is that of the base class, with keys that the code names.
    """
    places = []
    for name in (item for item in tree.python() if item.startswith((ACTIONS, "lib/hadoop_dl/hosts/"))):
        for node in ast.walk(ast.parse(tree.text(name))):
            mappings = [item for item in spread(node, name.startswith(ACTIONS)) if ast.unparse(item) not in OWN_KEYS]
            places += [f"{name}:{item.lineno}: {ast.unparse(item)}" for item in mappings]
    return Measure.of("spread_answers", "answers of hosts that are spread into the result of an action", sorted(places))


def spread(node: ast.AST, action: bool) -> list[ast.expr]:
    """The mappings whose keys this node may give to a result."""
    if isinstance(node, ast.Dict):
        return [value for key, value in zip(node.keys, node.values, strict=True) if key is None and action]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "result.update":
        return [*node.args, *(one.value for one in node.keywords if one.arg is None)]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "AnsibleActionFail":
        return [
            one.value for one in node.keywords if one.arg == "result" and not isinstance(one.value, ast.Dict | ast.Name)
        ]
    if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == "result":
        return [node.value]
    if isinstance(node, ast.BinOp) and action and "result" in (ast.unparse(node.left), ast.unparse(node.right)):
        return [node.left, node.right]
    if isinstance(node, ast.FunctionDef) and node.name in ("run", "act") and action:
        values = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]
        kinds = (ast.Dict, ast.DictComp, ast.IfExp)
        return [one for one in values if not isinstance(one, kinds) and not ast.unparse(one).startswith("self.")]
    return []


def others_results(tree: Tree) -> Measure:
    """hostvars in roles and playbooks, but for one input of the site: another host's result may be a template that its text became."""
    sources = [
        *tree.yaml("lib/hadoop_dl/plan/inputs.yml"),
        *(item for item in tree.yaml("roles/") if "/defaults/" in item),
    ]
    inputs = set(re.findall(r"^ {0,2}(\w+):", "\n".join(tree.text(name) for name in sources), re.MULTILINE))
    places = []
    for name in tree.files:
        if name.startswith(("roles/", "playbooks/")) and not name.endswith(".md") and not is_test(name):
            for number, line in enumerate(tree.text(name).splitlines(), 1):
                uses = len(re.findall(r"\b(hostvars|ignore_unreachable)\b", line))
                own_uses = sum(item in inputs for item in re.findall(r"\bhostvars\[[^{}]*?\]\.(\w+)(?![\w.\[(])", line))
                places += [f"{name}:{number}"] * (uses - own_uses)
    title = "hostvars other than an input of the site, and ignore_unreachable, in roles and playbooks"
    return Measure.of("others_results", title, places)


MEASURES: tuple[Callable[[Tree], Measure], ...] = (
    *(cycles, upward, long_files, long_tasks, median_tasks, long_expressions, spread_answers, others_results),
)


# --- the command ----------------------------------------------------------------------------------------------------


def table(measures: Sequence[Measure], limits: dict[str, int]) -> str:
    rows = [f"{'count':>7} {'limit':>7}  what"]
    for measure in measures:
        limit = limits.get(measure.name)
        over = limit is not None and measure.count > limit
        rows.append(
            f"{measure.count:7} {'-' if limit is None else limit:>7}  {measure.what}{'  <-- more than its limit' if over else ''}"
        )
        rows += [f"{'':17}{place}" for place in measure.places[: None if over else SHOWN]]
        rows += [f"{'':17}and {len(measure.places) - SHOWN} more"] if not over and len(measure.places) > SHOWN else []
    return "\n".join(rows)


def main(arguments: Sequence[str] | None = None, root: Path = REPOSITORY) -> int:
    """Exit status 0: every count is within its limit; 1: one is not."""
    parser = argparse.ArgumentParser(prog="make structure", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.parse_args(arguments)
    tree = Tree(root)
    limits: dict[str, int] = yaml.safe_load(tree.text(str(LIMITS))) or {}
    measures = [measure(tree) for measure in MEASURES]
    print(table(measures, limits))
    over = [entry.name for entry in measures if entry.count > limits.get(entry.name, entry.count)]
    if over:
        print(f"\n{', '.join(over)}: more than the limits of {LIMITS} allow. Make what you added smaller.")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
