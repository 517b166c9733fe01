"""Rules of this project's structure that no other linter knows: `make structure`, a step of lint."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LAYERS = ("hadoop_dl_dev", *(f"hadoop_dl.{name}" for name in ("cli", "hosts", "plan", "resolver", "data")))
ACTIONS = "plugins/action/"
# Mappings that an action may spread into its result: the base class's result, and those whose keys this project's code names.
OWN_KEYS = ("result", "self.act()", "self.shown(result)")


class Tree:
    """The tracked files of a checkout, without tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
        names = (name for name in listed.split("\0") if name and (root / name).is_file())
        self.files = sorted(name for name in names if not name.startswith("tests/") and "/tests/" not in name)

    @cache  # noqa: B019  (one tree lives as long as the program)
    def text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8", errors="replace")

    def python(self, *folders: str) -> list[str]:
        return [name for name in self.files if name.endswith(".py") and name.startswith(folders)]


def cycle(tree: Tree) -> list[str]:
    """modules that import each other, directly or through others: in lib/, in plugins, and in a role's program"""
    try:
        TopologicalSorter(imports_of(tree, "lib/", "plugins/", "roles/")).prepare()
    except CycleError as error:
        return [" imports ".join(reversed(error.args[1]))]
    return []


def upward(tree: Tree) -> list[str]:
    """imports against the order of LAYERS: a module may import its own layer and those after it"""
    return [
        f"{module} imports {target}"
        for module, targets in imports_of(tree, "lib/").items()
        for target in sorted(targets)
        if layer(target) < layer(module)
    ]


def layer(module: str) -> int:
    """The number of the module's layer; hadoop_dl itself holds nothing, so it is below all."""
    return next((number for number, name in enumerate(LAYERS) if f"{module}.".startswith(f"{name}.")), len(LAYERS))


def imports_of(tree: Tree, *folders: str) -> dict[str, set[str]]:
    """Every module under these folders, with those of the same folders that it imports."""
    names = {module_of(name): name for name in tree.python(*folders)}
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


def spread_answers(tree: Tree) -> list[str]:
    """answers of hosts as the keys of an action's result: Ansible obeys some of them, such as add_host"""
    places = []
    for name in tree.python(ACTIONS, "lib/hadoop_dl/hosts/"):
        for node in ast.walk(ast.parse(tree.text(name))):
            mappings = [item for item in spread(node, name.startswith(ACTIONS)) if ast.unparse(item) not in OWN_KEYS]
            places += [f"{name}:{item.lineno}: {ast.unparse(item)}" for item in mappings]
    return sorted(places)


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


def others_results(tree: Tree) -> list[str]:
    """ignore_unreachable, and hostvars but for one input of the site: another host's result may be a template"""
    sources = ("lib/hadoop_dl/plan/inputs.yml", *(name for name in tree.files if "/defaults/" in name))
    inputs = set(re.findall(r"^ {0,2}(\w+):", "\n".join(tree.text(name) for name in sources), re.MULTILINE))
    places = []
    for name in tree.files:
        if name.startswith(("roles/", "playbooks/")) and not name.endswith(".md"):
            for number, line in enumerate(tree.text(name).splitlines(), 1):
                uses = len(re.findall(r"\b(hostvars|ignore_unreachable)\b", line))
                own_uses = sum(item in inputs for item in re.findall(r"\bhostvars\[[^{}]*?\]\.(\w+)(?![\w.\[(])", line))
                places += [f"{name}:{number}"] * (uses - own_uses)
    return places


RULES: tuple[Callable[[Tree], list[str]], ...] = (cycle, upward, spread_answers, others_results)


def main(root: Path = REPOSITORY) -> int:
    """Print each place that breaks a rule; the exit status is 1 if there is one."""
    tree = Tree(root)
    broken = [(rule, places) for rule in RULES if (places := rule(tree))]
    for rule, places in broken:
        print(f"Not allowed: {rule.__doc__}.", *places, sep="\n    ")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
