"""Ask repositories for packages in exactly the versions wanted, or install them: lib/hadoop_dl/packages.py over dnf, yum and apt."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "lib"))

from hadoop_dl import packages  # noqa: E402  (the path above comes first)

STATES = ("offered", "present")
REQUIRED = ("names", "manager", "purpose", "state")
OPTIONAL = ("repository", "exclude", "python", "otherwise")


class ActionModule(ActionBase):
    """exact_packages: two steps of one thing, so that everything can be asked for before anything is changed.

    state: `offered` fails with a sentence for each package that the repositories do not have in its version (and lists those they
    have); `present` installs them in one transaction, which may go down as well as up, and turns the manager's failure into a
    sentence. names: names, or {name, version, kernel}. manager: dnf, yum or apt. purpose: what they are for, the subject of the
    sentences ("Driver 535.104.05"). repository: what signed_repository returned; the host's own repositories serve beside it.
    exclude: packages that the transaction must not touch (dnf, yum; with apt, hold them). python: the host's Python with the manager's
    bindings. otherwise: another way out than adding the package to the mirror.
    In check mode nothing can be asked of a repository that is not defined yet: `offered` is satisfied, `present` is a change.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = dict(task_vars or {})
        args = self._arguments()
        repository = args.get("repository") or {}
        source = packages.Source(
            args["manager"], *(repository.get(key, "") for key in ("name", "url", "key", "key_file"))
        )
        try:
            wanted = packages.packages_of(args["names"])
        except packages.PackageError as error:
            raise AnsibleActionFail(str(error)) from error
        result["changed"] = False
        if not wanted:
            return result
        if not repository.get("usable", True):
            result["changed"] = args["state"] == "present"
            return result
        if args["state"] == "offered":
            self._ask(source, wanted, task_vars["inventory_hostname"])
        else:
            result.update(self._install(source, wanted, task_vars))
        return result

    def _arguments(self) -> dict[str, Any]:
        args: dict[str, Any] = self._task.args
        missing = [name for name in REQUIRED if args.get(name) is None]
        unknown = sorted(set(args) - {*REQUIRED, *OPTIONAL})
        if missing or unknown or args["state"] not in STATES or args["manager"] not in packages.MANAGERS:
            raise AnsibleActionFail(
                f"exact_packages needs {', '.join(REQUIRED)} (state: {' or '.join(STATES)}; manager: {', '.join(packages.MANAGERS)}) and takes "
                f"{', '.join(OPTIONAL)}; found {', '.join(f'{key}: {args[key]!r}' for key in sorted(args))}."
            )
        return args

    def _ask(self, source: packages.Source, wanted: list[packages.Package], host: str) -> None:
        """No module lists every version that repositories offer, so the command is asked. Nothing found is an answer, not a failure."""
        answer = self._command(source.ask(wanted))
        lacking = packages.missing(
            source,
            wanted,
            answer["stdout"],
            answer["stderr"],
            host=host,
            purpose=str(self._task.args["purpose"]),
            otherwise=str(self._task.args.get("otherwise") or "ask for a version that is there"),
        )
        if lacking:
            raise AnsibleActionFail(lacking)

    def _install(
        self, source: packages.Source, wanted: list[packages.Package], task_vars: dict[str, Any]
    ) -> dict[str, Any]:
        args = self._task.args
        module_args: dict[str, Any] = {
            "name": [package.spec(source.manager) for package in wanted],
            "state": "present",
            "allow_downgrade": True,
        }
        if source.manager == "apt":
            # Recommended packages would bring a kernel's meta package, a desktop or a driver.
            module_args["install_recommends"] = False
        else:
            module_args["enablerepo"] = [source.repository] if source.repository else []
            module_args["exclude"] = list(args.get("exclude") or [])
            module_args["install_weak_deps"] = False
        if args.get("python"):
            task_vars["ansible_python_interpreter"] = args["python"]
        answer: dict[str, Any] = self._execute_module(
            module_name=f"ansible.legacy.{source.manager}", module_args=module_args, task_vars=task_vars
        )
        if answer.get("failed"):
            said = "\n".join(line for key in ("msg", "failures", "stderr") for line in packages.flat(answer.get(key)))
            shown = self._command(packages.show_key(source.key_file))["stdout"] if source.key_file else ""
            raise AnsibleActionFail(
                packages.failure(
                    source,
                    said,
                    host=task_vars["inventory_hostname"],
                    purpose=str(args["purpose"]),
                    key=packages.key_lines(shown),
                    free=packages.free_lines(self._command(["df", "-P", "-m", *packages.PLACES])["stdout"]),
                )
            )
        return answer

    def _command(self, argv: list[str]) -> dict[str, Any]:
        answer: dict[str, Any] = self._low_level_execute_command(shlex.join(["env", "LC_ALL=C", *argv]))
        return answer
