"""A host's /opt/deeplearning for tests: real environments of small wheels, from a mirror on loopback."""

import base64
import copy
import hashlib
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import environment_activate
import environment_seal
import locked_packages
from ansible.module_utils.hadoop_dl_host import environment_names, environment_packages
from faulty_server import Index
from interpreters import bundled_pip
from source_distributions import interpreter

STACK, DIGEST = "demo-stack", "0123456789ab"
NAME = f"{STACK}-{DIGEST}"


def wheel(
    directory: Path, project: str, version: str = "1.0", code: str = "", scripts: dict[str, str] | None = None
) -> Path:
    """A wheel of one module, as pip makes it from a project."""
    path = directory / f"{project}-{version}-py2.py3-none-any.whl"
    information = f"{project}-{version}.dist-info"
    members = {
        f"{project}.py": code or f"VERSION = {version!r}\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n",
    }
    members.update({f"{project}-{version}.data/scripts/{name}": text for name, text in (scripts or {}).items()})
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text)}\n"
        for name, text in members.items()
    )
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**members, f"{information}/RECORD": record + f"{information}/RECORD,,\n"}.items():
            archive.writestr(name, text)
    return path


def second_environment(root: Path, name: str, number: int) -> Path:
    """A copy of the host's sealed environment under another name, which was activated as the `number`th."""
    path = root / "envs" / name
    shutil.copytree(root / "envs" / f"{NAME}.1", path.with_name(f"{name}.1"), symlinks=True)
    path.symlink_to(f"{name}.1")
    client = path / ".deeplearning" / "client"
    client.unlink()
    client.symlink_to(f"../../{name}.client")
    (path / ".deeplearning" / "activated.json").write_text(f'{{"number": {number}}}')
    return path


def point(root: Path, target: str) -> None:
    """Let `current` name this environment, as a switch does."""
    (root / "current").unlink(missing_ok=True)
    (root / "current").symlink_to(target)


class Mirror(Index):
    """Serves wheels/ with an index page, as Python's own web server does."""

    def add(self, path: Path) -> str:
        """The lock's line for that file."""
        content = path.read_bytes()
        self.files[path.name] = content
        project, version = path.name.split("-")[:2]
        return f"{project}=={version} --hash=sha256:{hashlib.sha256(content).hexdigest()}  # {path.name} {len(content)}"


class Site:
    """A host's /opt/deeplearning, a mirror, and a lock of three components."""

    def __init__(self, root: Path, mirror: Mirror, fixtures: Path) -> None:
        self.root, self.mirror, self.fixtures = root, mirror, fixtures
        wheels = {path.name.split("-")[0]: path for path in sorted(fixtures.glob("*.whl"))}
        self.lines = {
            "pip": [mirror.add(wheels["pip"])],
            "tensorflow": [mirror.add(wheels["tensorflow"]), mirror.add(wheels["six"])],
            "keras": [mirror.add(wheels["keras"])],
        }
        self.path = root / "envs" / NAME

    def at(self, path: Path) -> "Site":
        """Another environment of this host."""
        site = copy.copy(self)
        site.path = path
        return site

    def take_real_pip(self) -> None:
        """The one that comes with Python; most tests do without, because compiling it takes its time."""
        self.lines["pip"] = [self.mirror.add(bundled_pip())]

    @property
    def lock(self) -> str:
        return "# Lock\n" + "".join(f"\n{self.section(component)}" for component in self.lines)

    def section(self, component: str) -> str:
        return "\n".join([f"# component: {component}", *self.lines[component]]) + "\n"

    def install(self, component: str, check: bool = False, **changes: Any) -> dict[str, Any]:
        parameters = {
            "environment": str(self.path),
            "component": component,
            "lock": self.section(component),
            "mirror_url": self.mirror.url,
            "mirror_ca": None,
            "mirror_login": None,
            "python": interpreter() or sys.executable,
            "timeout": 120,
            **changes,
        }
        return locked_packages.work(Module(parameters, check))

    def seal(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        parameters = {
            "path": str(self.path),
            "stack": STACK,
            "digest": DIGEST,
            "lock": self.lock,
            "imports": ["tensorflow", "keras"],
            "timeout": 60,
            **changes,
        }
        return environment_seal.work(Module(parameters, check))

    def activate(self, check: bool = False, **changes: Any) -> dict[str, Any]:
        parameters = {
            "root": str(self.root),
            "path": str(self.path),
            "state": "active",
            "previous": "",
            "keep": 1,
            "keep_names": [],
            "principal": "",
            "keytab": "",
            "timeout": 60,
            **changes,
        }
        return environment_activate.work(Module(parameters, check))

    def everything(self) -> list[bool]:
        """What the playbooks do; which of the steps changed something."""
        steps = [lambda component=component: self.install(component) for component in self.lines]
        return [step()["changed"] for step in [*steps, self.seal, self.activate]]

    @property
    def tree(self) -> Path:
        """The directory that is used; while nothing is sealed, the one that is being built."""
        tree = environment_names.look(str(self.path))[0] or environment_names.trees(str(self.path))[-1]
        return Path(tree)

    @property
    def packages(self) -> Path:
        return Path(environment_packages.site_packages(str(self.tree)))

    def put(self, module: str, code: str) -> None:
        """This code in place of a module, whose bytecode would be taken before."""
        (self.packages / f"{module}.py").write_text(code)
        for path in (self.packages / "__pycache__").glob(f"{module}.*"):
            path.unlink()

    def content(self) -> dict[str, bytes]:
        """Every file and link below the environment's tree but bytecode: two installations are the same in it."""
        files = {}
        for path in sorted(self.tree.rglob("*")):
            name = str(path.relative_to(self.tree))
            if not path.is_dir() and not name.startswith(".deeplearning") and not name.endswith(".pyc"):
                text = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
                text = re.sub(rb"/[^\s\"':=()]*/deeplearning", b"ROOT", text.replace(self.path.name.encode(), b"NAME"))
                if name.endswith("/RECORD"):  # has the sha256 of scripts, and these have the path
                    text = b"".join(line for line in text.splitlines(True) if not line.startswith(b"../"))
                files[name] = text
        return files

    @property
    def current(self) -> str | None:
        link = self.root / "current"
        return os.readlink(link) if link.is_symlink() else None


class Module:
    def __init__(self, params: dict[str, Any], check_mode: bool) -> None:
        self.params, self.check_mode = params, check_mode
