"""Define a repository with the key that signs its packages, or take both back: copy, file, yum_repository, rpm_key and apt in one task."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "lib"))

from hadoop_dl import packages  # noqa: E402  (the path above comes first)

REQUIRED = ("name", "manager")
OPTIONAL = ("description", "url", "key", "suite", "python", "state")
ROOT = {"owner": "root", "group": "root", "mode": "0644"}


class ActionModule(ActionBase):
    """signed_repository: what a role brings its packages from, and nothing else of the host meets.

    name: of the repository, which begins with `deeplearning-`. manager: dnf, yum or apt. url: empty for the repositories that the host
    has. key: path on the controller of the key that signs it. suite: suite and components (apt). description: for people (dnf, yum).
    python: the host's Python with apt's bindings. state: `present` or `absent`.
    Returns `repository`, which exact_packages takes: name, url, key, key_file, and `usable`: false where check mode has not defined it.
    With dnf and yum the definition stays disabled between runs, so an ordinary update of the host never meets it. With apt the
    lists are read; a source that apt cannot read would stop every other use of apt, so it is taken back. A removal takes the key out of
    rpm's key ring when no other repository of this project is left that uses it.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        args = self._arguments()
        self._vars = dict(task_vars or {})
        self._changed, self._diff = False, []
        rpm = args["manager"] != "apt"
        files = packages.repository_files(args["name"], args["manager"], args.get("key") or "")
        if args.get("state", "present") == "absent":
            self._remove(args["name"], rpm)
            usable = False
        elif args.get("url"):
            if rpm:
                self._define_rpm(args, files)
            else:
                self._define_apt(args, files)
            usable = not (self._task.check_mode and self._changed)
        else:
            usable = True
            if not rpm:
                self._read_lists(args, files, new=False)
        named = bool(args.get("url"))
        result.update(
            changed=self._changed,
            diff=self._diff,
            repository={
                "name": args["name"] if named else "",
                "url": args.get("url") or "",
                "key": args.get("key") or "" if named else "",
                "key_file": files.key if named else "",
                "usable": usable,
            },
        )
        return result

    def _arguments(self) -> dict[str, Any]:
        args: dict[str, Any] = self._task.args
        unknown = sorted(set(args) - {*REQUIRED, *OPTIONAL})
        wrong = unknown or [name for name in REQUIRED if not args.get(name)]
        if wrong or args["manager"] not in packages.MANAGERS or not str(args["name"]).startswith("deeplearning-"):
            raise AnsibleActionFail(
                f"signed_repository needs a name that begins with deeplearning- and a manager ({', '.join(packages.MANAGERS)}), and takes "
                f"{', '.join(OPTIONAL)}; found {', '.join(f'{key}: {args[key]!r}' for key in sorted(args))}."
            )
        if args.get("state", "present") == "present" and args.get("url") and not args.get("key"):
            raise AnsibleActionFail(
                f"The repository {args['url']} needs the key that signs its packages, and none is named. Set the role's repository_key to its "
                "file on the controller; unsigned packages are not installed."
            )
        return args

    def _define_rpm(self, args: dict[str, Any], files: packages.RepositoryFiles) -> None:
        self._copy(files.key, src=args["key"])
        self._module(
            "ansible.legacy.yum_repository",
            name=args["name"],
            description=args.get("description") or args["name"],
            baseurl=args["url"],
            enabled=False,
            gpgcheck=True,
            gpgkey=f"file://{files.key}",
            module_hotfixes=True,  # no module stream hides a version
            **ROOT,
        )

    def _define_apt(self, args: dict[str, Any], files: packages.RepositoryFiles) -> None:
        self._module("ansible.legacy.file", path="/etc/apt/keyrings", state="directory", **dict(ROOT, mode="0755"))
        before = self._changed
        self._copy(files.key, src=args["key"])
        self._copy(files.definition, content=packages.apt_source(args["url"], args.get("suite") or "/", files.key))
        self._read_lists(args, files, new=self._changed != before)

    def _read_lists(self, args: dict[str, Any], files: packages.RepositoryFiles, *, new: bool) -> None:
        """It changes what apt knows, not the host."""
        if self._task.check_mode:
            return
        variables = dict(self._vars, **({"ansible_python_interpreter": args["python"]} if args.get("python") else {}))
        answer = self._execute_module(
            module_name="ansible.legacy.apt",
            module_args={"update_cache": True, "cache_valid_time": 0 if new else 3600},
            task_vars=variables,
        )
        if not answer.get("failed"):
            return
        key = packages.key_lines(self._command(packages.show_key(files.key))) if args.get("url") else ""
        if args.get("url"):
            for path in (files.definition, files.key):
                self._module("ansible.legacy.file", path=path, state="absent")
        source = packages.Source("apt", args["name"], args.get("url") or "", args.get("key") or "")
        raise AnsibleActionFail(
            packages.unreadable(source, str(answer.get("msg", "")), host=self._vars["inventory_hostname"], key=key)
        )

    def _remove(self, name: str, rpm: bool) -> None:
        for path in packages.definitions(name):
            self._module("ansible.legacy.file", path=path, state="absent")
        keys = packages.keys(name)
        if rpm:
            others = self._module(
                "ansible.legacy.find", paths=["/etc/yum.repos.d"], patterns=["deeplearning-*.repo"], read_only=True
            )
            there = self._module("ansible.legacy.stat", path=keys[0], read_only=True)
            left = [entry for entry in others["files"] if entry["path"] not in packages.definitions(name)]
            if there["stat"]["exists"] and not left:
                self._module("ansible.legacy.rpm_key", key=keys[0], state="absent")
        for path in keys:
            self._module("ansible.legacy.file", path=path, state="absent")

    def _copy(self, path: str, **what: str) -> None:
        """The copy that a task would run: it finds files beside the role or the playbook."""
        task = self._task.copy()
        task.action, task.args = "ansible.builtin.copy", {"dest": path, **what, **ROOT}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        self._note(action.run(task_vars=self._vars), f"{path} cannot be written")

    def _module(self, module: str, *, read_only: bool = False, **args: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._execute_module(module_name=module, module_args=args, task_vars=self._vars)
        return self._note(answer, f"{module.rpartition('.')[2]} ended", read_only=read_only)

    def _note(self, answer: dict[str, Any], failed: str, *, read_only: bool = False) -> dict[str, Any]:
        if answer.get("failed"):
            raise AnsibleActionFail(
                f"{failed} on {self._vars['inventory_hostname']}: {answer.get('msg')}", result=answer
            )
        if not read_only:
            self._changed = self._changed or bool(answer.get("changed"))
            found = answer.get("diff") or []
            self._diff += found if isinstance(found, list) else [found]
        return answer

    def _command(self, argv: list[str]) -> str:
        return str(self._low_level_execute_command(shlex.join(["env", "LC_ALL=C", *argv]))["stdout"])
