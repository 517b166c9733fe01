"""What this project's action plugins have in common: running Ansible's modules, copying, and fetching a file whose sha256 is known."""

from __future__ import annotations

import re
import shlex
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

URL = re.compile(r"^(https?|file)://")


class HostAction(ActionBase):
    """An action that composes modules. `changed` and `diff` gather what they report; a module that fails ends the action."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    REQUIRED: tuple[str, ...] = ()
    OPTIONAL: tuple[str, ...] = ()

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self.variables = dict(task_vars or {})
        self.changed = False
        self.diff: list[Any] = []
        self.args: dict[str, Any] = self._task.args
        lacking = [name for name in self.REQUIRED if self.args.get(name) is None]
        unknown = sorted(set(self.args) - {*self.REQUIRED, *self.OPTIONAL})
        try:
            if lacking or unknown:
                self.misused(f"{', '.join(self.REQUIRED)}, and takes {', '.join(self.OPTIONAL) or 'nothing else'}")
            result.update(self.act())
        except AnsibleActionFail as refusal:
            # Returned, not raised: Ansible would print an exception and its traceback above the sentence.
            return {key: value for key, value in refusal.result.items() if key != "exception"}
        result.update(changed=self.changed, diff=self.diff)
        return result

    def act(self) -> dict[str, Any]:
        """The work; what it returns joins the result."""
        raise NotImplementedError

    @property
    def host(self) -> str:
        return str(self.variables["inventory_hostname"])

    @property
    def checking(self) -> bool:
        return bool(self._task.check_mode)

    def misused(self, needed: str) -> None:
        found = ", ".join(f"{key}: {self.args[key]!r}" for key in sorted(self.args))
        raise AnsibleActionFail(f"{self._task.action} needs {needed}; found {found or 'nothing'}.")

    def command(self, argv: list[str]) -> dict[str, Any]:
        """Run a command, in check mode too: stdout, stderr, rc."""
        answer: dict[str, Any] = self._low_level_execute_command(shlex.join(["env", "LC_ALL=C", *argv]))
        return answer

    def ask_module(self, module: str, **args: Any) -> dict[str, Any]:
        """Run a module; the answer may be a failure, and counts for nothing yet."""
        answer: dict[str, Any] = self._execute_module(module_name=module, module_args=args, task_vars=self.variables)
        return answer

    def module(self, module: str, **args: Any) -> dict[str, Any]:
        return self.count(self.ask_module(module, **args))

    def copy(self, path: str, **what: Any) -> dict[str, Any]:
        """The copy that a task would run: it finds files beside the role or the playbook."""
        task = self._task.copy()
        task.action, task.args = "ansible.builtin.copy", {"dest": path, "owner": "root", "group": "root", **what}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        return self.count(action.run(task_vars=self.variables))

    def count(self, answer: dict[str, Any]) -> dict[str, Any]:
        if answer.get("failed"):
            raise AnsibleActionFail(f"{self._task.action} on {self.host}: {answer.get('msg')}", result=answer)
        self.changed = self.changed or bool(answer.get("changed"))
        found = answer.get("diff") or []
        self.diff += found if isinstance(found, list) else [found]
        return answer

    def absent(self, path: str) -> None:
        self.module("ansible.legacy.file", path=path, state="absent")

    def fetch(self, source: str, path: str, sha256: str, *, mode: str, purpose: str, otherwise: str) -> None:
        """Bring a file from a URL, or from the controller, and compare its sha256; another one is removed, and told."""
        if URL.match(source):
            answer = self.ask_module(
                "ansible.legacy.get_url",
                url=source,
                dest=path,
                force=True,
                decompress=False,  # servers call a .tgz "encoded": its sha256 is that of the file, not of the tar in it
                owner="root",
                group="root",
                mode=mode,
            )
            if answer.get("failed"):
                self.absent(path)
                raise AnsibleActionFail(
                    f"{purpose} has to come from {source} to {path} on {self.host}, and that ended with: {answer.get('msg')}. Solve what it "
                    f"names, and run this again."
                )
            self.count(answer)
        else:
            self.copy(path, src=source, mode=mode)
        found = self.ask_module("ansible.legacy.stat", path=path, checksum_algorithm="sha256")
        checksum = found.get("stat", {}).get("checksum", "no content")
        if checksum != sha256:
            self.absent(path)
            raise AnsibleActionFail(
                f"{purpose} has to have the sha256 {sha256}, and {source} has {checksum}; it was not used. {otherwise}"
            )
