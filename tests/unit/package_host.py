"""A host of action plugins: a dictionary of files and a key ring."""

import fnmatch
import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import python_files

PLUGINS = Path(__file__).resolve().parents[2] / "plugins" / "action"
KEYS = {"site.key": "F60F4B3D7FA2AF80", "other.key": "D88C3D385C37D3BE"}  # file on the controller: key id
HOLDER = "process 4242, /usr/bin/dnf -y update, holds it"


class Host:
    """What the modules that the plugins call do, as far as these tests look."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.ring: set[str] = set()
        self.fails: dict[str, str] = {}  # module: message
        self.asked: list[list[str]] = []
        self.modules: list[tuple[str, dict[str, Any]]] = []
        self.imports = ""  # the key that dnf takes in before it fails
        self.unsigned: list[dict[str, str]] = []  # enabled repositories with gpgcheck off
        self.queries = 0  # how often it was asked for them
        self.allowed: Any = None  # the site's list in the last question
        self.variables: dict[str, Any] = {}  # of the site
        self.solved = ""  # what the solver prints
        self.locked = 0  # how often the package manager's lock is found held

    def run(self, action_name: str, /, check: bool = False, **args: Any) -> dict[str, Any]:
        kind = python_files.load(PLUGINS / f"{action_name}.py").ActionModule
        action = kind.__new__(kind)
        action._task = SimpleNamespace(check_mode=check, action=action_name, args=args)
        action.args, action.variables = args, {"inventory_hostname": "data1", **self.variables}
        action._templar = SimpleNamespace(template=lambda value: value)
        action.changed, action.diff = False, []
        action.command, action.copy = self.command, lambda path, **what: self.copy(action, path, **what)
        action.ask_module = self.module
        result: dict[str, Any] = action.act()
        return {**result, "changed": action.changed}

    def command(self, argv: list[str], seconds: int = 120, left: str = "") -> dict[str, Any]:
        self.asked.append(argv)
        if argv[0] == "gpg":
            keys = [KEYS[name] for name in self.files.get(argv[-1], "").split("+") if name in KEYS]
            lines = [f"pub:-:4096:1:{key}:1456432000:::-:::scSC::::::23::0:\n" for key in keys]
            return {"stdout": "".join(lines), "rc": 0}
        if argv[:2] == ["rpm", "--erase"]:
            self.ring.discard(argv[-1])
        if argv[:3] == ["rpm", "--query", "--all"]:
            return {"stdout": "\n".join(self.ring), "rc": 0}
        if argv[0] == "cat":
            return {"stdout": self.files.get(argv[1], ""), "rc": 0}
        return {"stdout": self.solved if argv[0] == "sh" else "", "stderr": "", "rc": 0 if argv[-1] in self.ring else 1}

    def copy(self, action: Any, path: str, **what: Any) -> dict[str, Any]:
        content = what.get("src", what.get("content"))
        changed = self.files.get(path) != content
        if not action.checking:
            self.files[path] = content
        return action.count({"changed": changed})

    def module(self, module: str, **args: Any) -> dict[str, Any]:
        name = module.rpartition(".")[2]
        if args.get("only_check"):
            return {"complete": self.files.get(f"{args['path']}/.deeplearning.json") == args["sha256"]}
        if name == "package_repositories_info":
            self.queries += 1
            self.allowed = args.get("allowed")
            return {"changed": False, "unsigned": self.unsigned}
        if name == "package_lock_info":
            self.locked -= 1
            return {"changed": False, "holder": HOLDER if self.locked >= 0 else ""}
        self.modules.append((name, args))
        if name in self.fails:
            self.ring |= {self.imports} - {""}
            return {"failed": True, "msg": self.fails[name]}
        if name == "file" and args["state"] == "absent":
            return {"changed": self.files.pop(args["path"], None) is not None}
        if name == "yum_repository":
            self.files[f"{args.get('reposdir', '/etc/yum.repos.d')}/{args['name']}.repo"] = args["baseurl"]
        if name == "stat":
            content = self.files.get(args["path"])
            checksum = {} if content is None else {"checksum": hashlib.sha256(content.encode()).hexdigest()}
            return {"stat": {"exists": content is not None, **checksum}}
        if name == "find":
            if args.get("use_regex"):
                return {"files": []}
            (pattern,), (exclude,) = args["patterns"], args["excludes"]
            names = {path: Path(path).name for path in self.files}
            return {
                "files": [
                    {"path": path, "checksum": self.files[path]}
                    for path, name in names.items()
                    if fnmatch.fnmatch(name, pattern) and not fnmatch.fnmatch(name, exclude)
                ]
            }
        if name == "fetch_file":
            sha256 = hashlib.sha256(b"fetched").hexdigest()
            if args["sha256"] != sha256:
                return {"failed": True, "msg": "other bytes", "sha256": sha256}
            self.files[args["path"]] = "fetched"
        return {"changed": True}


def install(host: Host, **args: Any) -> dict[str, Any]:
    defaults = {"names": [{"name": "a", "version": "1.2"}], "title": "A 1.2", "manager": "dnf", "state": "present"}
    return host.run("pinned_packages", **{**defaults, **args})
