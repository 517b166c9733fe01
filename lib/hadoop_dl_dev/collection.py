"""The tree as an Ansible collection: a copy in which every name of this project's own is complete.

A checkout needs no complete names, because ansible.cfg names its directories. In a collection, Python finds this project's
code below ansible_collections only, and Jinja finds filters by their complete names only.
"""

import ast
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data import host_code
from hadoop_dl_dev import site

DATA = Path(".config/collection")
CONTENT = (
    *("LICENSE", "CHANGELOG.md", "ansible.cfg", "compat", "docs", "examples/digits", "examples/images"),
    *("examples/notebook", "inventories", "lib/hadoop_dl", "playbooks", "plugins", "roles", "stacks", "tests/infra"),
)
LEFT_OUT = ("lib/hadoop_dl/cli",)  # commands of the tree
# Settings that name directories of a checkout.
PLACES = re.compile(r"^(inventory|roles_path|library|module_utils|\w+_plugins) = .*\n", re.MULTILINE)
ROLE_ACTIONS = tuple(
    f"{prefix}{name}" for name in ("include_role", "import_role") for prefix in ("", "ansible.builtin.")
)
TASK_LISTS = ("pre_tasks", "tasks", "post_tasks", "handlers", "block", "rescue", "always")
Edit = tuple[int, int, str]  # from, to, and the text in its place


class Names:
    """What this project calls its plugins and roles, and their complete names."""

    def __init__(self, tree: Path, collection: str) -> None:
        self.collection = collection
        self.package = f"ansible_collections.{collection}"
        plugins = tree / "plugins"
        self.tasks = {path.stem for folder in ("modules", "action") for path in (plugins / folder).glob("*.py")}
        self.inventories = {path.stem for path in (plugins / "inventory").glob("*.py")}
        self.fragments = {path.stem for path in (plugins / "doc_fragments").glob("*.py")}
        self.roles = {path.name for path in (tree / "roles").iterdir()}
        self.filters = {name for path in (plugins / "filter").glob("*.py") for name in filters(path)}

    def complete(self, name: str) -> str:
        return f"{self.collection}.{name}"


def filters(path: Path) -> Iterator[str]:
    """The keys of the mapping that the method `filters` returns."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name == "filters":
            for answer in ast.walk(node):
                if isinstance(answer, ast.Return) and isinstance(answer.value, ast.Dict):
                    yield from (str(key.value) for key in answer.value.keys if isinstance(key, ast.Constant))


def python(text: str, names: Names) -> str:
    """Imports of the package hadoop_dl and of the package for hosts."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        line = node.lineno - 1 if isinstance(node, ast.Import | ast.ImportFrom) else 0
        if isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == "hadoop_dl" for alias in node.names):
            raise ValueError(
                f"Write 'from hadoop_dl… import …': 'import' binds another name in the collection: {lines[line]}"
            )
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        if node.module.partition(".")[0] == "hadoop_dl":
            lines[line] = lines[line].replace("from hadoop_dl", f"from {names.package}.lib.hadoop_dl", 1)
        elif f"{node.module}.".startswith(f"{host_code.PACKAGE}."):
            of_collection = f"from {names.package}.plugins.module_utils"
            lines[line] = lines[line].replace("from ansible.module_utils", of_collection, 1)
    return "\n".join(lines)


def inventory_plugin(text: str, names: Names) -> str:
    """The names in its documentation, by which Ansible checks `plugin:` and finds the fragment."""
    one = "|".join(sorted(names.inventories | names.fragments))
    return re.sub(
        rf"^((?:plugin: |\s+choices: \[|\s+- ))({one})(?=\]?$)", rf"\1{names.collection}.\2", text, flags=re.MULTILINE
    )


def templates(text: str, names: Names) -> str:
    """Filters, behind | and as the first argument of map and select."""
    one = "|".join(sorted(names.filters, key=len, reverse=True))
    return re.sub(rf"(\|\s*|\b(?:map|select|reject)\(\s*')({one})\b", rf"\1{names.collection}.\2", text)


def task_edits(node: Any, names: Names) -> Iterator[Edit]:
    """Modules, actions and roles in a list of tasks or plays."""
    for task in node.value if isinstance(node, yaml.SequenceNode) else ():
        for key, value in task.value if isinstance(task, yaml.MappingNode) else ():
            if key.value in names.tasks:
                yield key.start_mark.index, key.end_mark.index, names.complete(key.value)
            elif key.value in TASK_LISTS:
                yield from task_edits(value, names)
            elif key.value in ROLE_ACTIONS:
                yield from role_edits(value, names)
            elif key.value == "roles":
                for role in value.value:
                    yield from role_edits(role, names)


def role_edits(node: Any, names: Names) -> Iterator[Edit]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    values = [value for key, value in pairs if key.value in ("name", "role")] or [node]
    for value in values:
        if isinstance(value, yaml.ScalarNode) and value.value in names.roles:
            yield value.start_mark.index, value.end_mark.index, names.complete(value.value)


def tasks(text: str, names: Names) -> str:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for start, end, name in sorted(task_edits(node, names), reverse=True):
        text = text[:start] + name + text[end:]
    return text


def complete_names(directory: Path, names: Names) -> None:
    """Change every file of the copy."""
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or path.suffix not in (".py", ".yml", ".j2"):
            continue
        text = original = path.read_text(encoding="utf-8")
        place = path.relative_to(directory)
        if path.suffix == ".py" and place.parts[0] in ("lib", "plugins", "tests"):
            text = python(text, names)
            text = inventory_plugin(text, names) if place.parts[1] == "inventory" else text
        elif place.parts[0] == "inventories":
            text = inventory_plugin(text, names)
        elif place.parts[0] in ("playbooks", "roles"):
            text = templates(text, names)
            if path.suffix == ".yml" and (place.parts[0] == "playbooks" or place.parts[2] in ("tasks", "handlers")):
                text = tasks(text, names)
        if text != original:
            path.write_text(text, encoding="utf-8")


def suite_settings(directory: Path, names: Names) -> None:
    """The role verify runs a module of the package with a Python that Ansible did not start."""
    path = directory / "roles/verify/tasks/run_suite.yml"
    text = path.read_text(encoding="utf-8")
    for tree, collection in (
        ("- hadoop_dl.hosts.verify", f"- {names.package}.lib.hadoop_dl.hosts.verify"),
        ("/../../lib'", "/../../../../..'"),
    ):
        if text.count(tree) != 1:
            raise ValueError(f"{path} must have {tree!r} once.")
        text = text.replace(tree, collection)
    path.write_text(text, encoding="utf-8")


def settings(text: str, names: Names) -> str:
    """ansible.cfg without the directories of a checkout."""
    return PLACES.sub("", text).replace("strategy = ", f"strategy = {names.collection}.")


def copy(repository: Path, commit: str, directory: Path, version: str, description: str) -> str:
    """Write the collection of a commit into an empty directory; its name is the answer."""
    left_out = [f":(exclude){path}" for path in LEFT_OUT]
    archive = ["git", "archive", "--format=tar", commit, "--", *CONTENT, str(DATA), *left_out]
    tree = subprocess.run(archive, cwd=repository, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(tree)) as files:
        files.extractall(directory)  # noqa: S202  (what git just wrote; Python 3.11.2 knows no filter)
    galaxy = yaml.safe_load((directory / DATA / "metadata.yml").read_text(encoding="utf-8"))
    galaxy |= {"version": version, "description": description, "license_file": "LICENSE"}
    del galaxy["license"]
    (directory / "galaxy.yml").write_text(yaml.safe_dump(galaxy, sort_keys=False), encoding="utf-8")
    (directory / DATA / "README.md").rename(directory / "README.md")
    (directory / DATA / "metadata.yml").unlink()
    (directory / DATA).rmdir()
    (directory / DATA.parent).rmdir()
    (directory / "meta").mkdir()
    (directory / "meta/runtime.yml").write_text('---\nrequires_ansible: ">=2.16.0,<2.17.0"\n', encoding="utf-8")
    for page in site.TABLES:  # whole, because a collection has no `make docs`
        (directory / page).write_text(site.text(repository, repository / page), encoding="utf-8")
    names = Names(directory, f"{galaxy['namespace']}.{galaxy['name']}")
    complete_names(directory, names)
    suite_settings(directory, names)
    cfg = directory / "ansible.cfg"
    cfg.write_text(settings(cfg.read_text(encoding="utf-8"), names), encoding="utf-8")
    return names.collection


def build(directory: Path, output: Path, when: int) -> Path:
    """The archive as `ansible-galaxy collection build` writes it, in an order and with times that depend on the commit only."""
    program = str(Path(sys.executable).parent / "ansible-galaxy")
    command = [program, "collection", "build", "--force", "--output-path", str(output), str(directory)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        raise ValueError(f"ansible-galaxy could not build the collection: {completed.stderr}")
    galaxy = yaml.safe_load((directory / "galaxy.yml").read_text(encoding="utf-8"))
    path = output / f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"
    with tarfile.open(path) as built:
        entries = {member.name: (member, built.extractfile(member) if member.isfile() else None) for member in built}
        contents = {name: file.read() for name, (_, file) in entries.items() if file}
    listing = json.loads(contents["FILES.json"])
    listing["files"].sort(key=lambda entry: entry["name"])
    contents["FILES.json"] = json.dumps(listing, indent=1).encode()
    manifest = json.loads(contents["MANIFEST.json"])
    manifest["file_manifest_file"]["chksum_sha256"] = hashlib.sha256(contents["FILES.json"]).hexdigest()
    contents["MANIFEST.json"] = json.dumps(manifest, indent=1).encode()
    ordered = ["MANIFEST.json", "FILES.json", *sorted(entries.keys() - {"MANIFEST.json", "FILES.json"})]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as target:
        for name in ordered:
            member = entries[name][0]
            member.mtime, member.size = when, len(contents.get(name, b""))
            target.addfile(member, io.BytesIO(contents[name]) if name in contents else None)
    path.write_bytes(gzip.compress(archive.getvalue(), mtime=0))
    return path
