"""Base classes of this project's action plugins: running Ansible's modules, copying, and fetching a file whose sha256 is known."""

import re
import shlex
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ansible import constants as C
from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.executor.task_executor import TaskTimeoutError
from ansible.module_utils.hadoop_dl_host.connections import server_of, without_secrets
from ansible.plugins.action import ActionBase

from hadoop_dl.data import typed
from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.hosts import host_script, memory
from hadoop_dl.hosts.plugin_names import full_name

T = TypeVar("T")
# Inputs that name a path or an account of the host, as inputs.yml has them (exists: host); that table is too slow to read for every host.
NAMED = (
    "hadoop_keytab",
    *("hadoop_client_conf_dir", "hadoop_client_hadoop_home", "hadoop_client_java_home", "hadoop_client_libhdfs"),
    *("hadoop_client_libjvm", "nvidia_driver_signing_certificate", "nvidia_driver_signing_key", "spark_home"),
    *("tensorboard_services.user", "tensorboard_services.keytab"),
    *("tensorflow_build_user", "upgrade_canary_user", "yarn_gpu_conf_dir"),
)
NAME = re.compile(r"/[!-~]{1,999}|[A-Za-z_][\w.@-]{0,63}", re.ASCII)
TIMED_OUT = (124, 137)  # exit status of coreutils' timeout: ended, killed
URL = re.compile(r"^(https?|file)://")
STRATEGY = full_name("untrusted_hosts")
PLUGINS = Path(__file__).resolve().parents[3] / "plugins"


class GuardedAction(ActionBase):
    """An action that changes no host. It requires the strategy untrusted_hosts, with which the answers of hosts are only data."""

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        if C.DEFAULT_STRATEGY.removeprefix("ansible.legacy.") != STRATEGY:
            refusal = AnsibleActionFail(
                f"The strategy must be {STRATEGY}, with which the answers of hosts are data, but it is {C.DEFAULT_STRATEGY}. Add "
                f"'strategy = {STRATEGY}' and 'strategy_plugins = {PLUGINS / 'strategy'}' to [defaults] in "
                f"{C.CONFIG_FILE or 'ansible.cfg'}, and unset the variable ANSIBLE_STRATEGY."
            )
            refusal.result.pop("exception", None)  # Ansible would print it above the message
            raise refusal
        self.variables: dict[str, Any] = task_vars or {}
        return {**result, "changed": False, **self.act()}

    def act(self) -> dict[str, Any]:
        """The work; what it returns joins the result."""
        raise NotImplementedError


class OnceAction(GuardedAction):
    """An action that runs once, on the controller, about all hosts of the play."""

    BYPASS_HOST_LOOP = True
    _requires_connection = False

    def measured(self, name: str, kind: type[T]) -> dict[str, T]:
        """The results of ScriptAction.measure that were registered by this name, for every host that the play began with."""
        hosts, no_answer = self.variables["ansible_play_hosts_all"], {"unanswered": "the connection was lost"}
        measurements = self.registered(name, hosts)
        return {host: typed.read(kind, measurements.get(host, {}).get("measured") or no_answer) for host in hosts}

    def registered(self, name: str, hosts: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The results that tasks registered by this name on these hosts, as data: their templates are not evaluated."""
        values = {host: self.variables["hostvars"].raw_get(host).get(name) for host in hosts}
        return {host: answer for host, answer in values.items() if isinstance(answer, dict)}


class ScriptAction(GuardedAction):
    """An action that runs one script on the host's Python (hadoop_dl.hosts.host_script), in check mode too."""

    _supports_async = False

    def named(self) -> list[str]:
        """The paths and accounts of the host that its inputs name; those of a wrong form are the plan's to refuse."""
        values: list[Any] = []
        for reference in NAMED:
            name, _, key = reference.partition(".")
            try:
                value = self._templar.template(self.variables.get(name))
            except AnsibleError:
                continue
            entries = value if key and isinstance(value, list) else ()
            values += [entry.get(key) for entry in entries if isinstance(entry, Mapping)] if key else [value]
        return [str(value) for value in values if isinstance(value, str) and NAME.fullmatch(value)]

    def run_script(self, script: str) -> dict[str, Any]:
        """The script's answer, of limited size. The script is piped; with su, which reads a password there, it is a temporary file."""
        try:
            with memory.bounded(memory.MORE if self._connection.transport == "ssh" else 0):
                answer = self._answer(script)
        except MemoryError:
            raise host_script.NoAnswer(
                f"it answered more than fits into {memory.MORE >> 30} GB of memory; at most {host_script.LARGEST >> 20} MB are read."
            ) from None
        return host_script.parse(int(answer.get("rc") or 0), answer.get("stdout", ""), answer.get("stderr", ""))

    def measure(self, script: str, kind: type[Any]) -> Any:
        """The script's answer in the form of this dataclass, as JSON. It never fails: `unanswered` has the reason if there is no answer."""
        try:
            return typed.as_json(typed.read(kind, self.run_script(script)))
        except (host_script.NoAnswer, AnsibleError) as problem:
            reason = one_line(problem, PARAGRAPH)
        except typed.TypedError as problem:
            reason = f"it answered {problem}"
        except TaskTimeoutError:
            reason = f"no answer within {self._task.timeout} s"
        return typed.as_json(typed.read(kind, {"unanswered": reason}))

    def _answer(self, script: str) -> dict[str, Any]:
        answer: dict[str, Any]
        if self._is_pipelining_enabled("new"):
            answer = self._low_level_execute_command(host_script.command(), in_data=script.encode())
        else:
            directory = self._make_tmp_path()
            try:
                path = self._connection._shell.join_path(directory, "script.py")
                self._transfer_data(path, script)
                self._fixup_perms2((directory, path), execute=False)
                answer = self._low_level_execute_command(host_script.command(path))
            finally:
                self._remove_tmp_path(directory)
        return answer


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
        missing_arguments = [name for name in self.REQUIRED if self.args.get(name) is None]
        unknown = sorted(set(self.args) - {*self.REQUIRED, *self.OPTIONAL})
        try:
            if missing_arguments or unknown:
                self.misused(f"{', '.join(self.REQUIRED)}, and takes {', '.join(self.OPTIONAL) or 'nothing else'}")
            result.update(self.act())
        except AnsibleActionFail as refusal:
            # Returned, not raised: Ansible would print an exception with its traceback above the message.
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
        arguments = ", ".join(f"{key}: {self.args[key]!r}" for key in sorted(self.args))
        raise AnsibleActionFail(f"{self._task.action} needs {needed}; found {arguments or 'nothing'}.")

    def command(self, argv: list[str], seconds: int = 120, left: str = "Nothing was changed.") -> dict[str, Any]:
        """Run a command that ends within this time, in check mode too: stdout, stderr, rc. left: what is still true if it does not.

        Without input SSH gives it a terminal: dnf and yum colour what they list, lines end in CR, and SSH adds a line of its own. Where
        input is not possible (su reads the password there), the terminal is one without colours.
        """
        limited = ["timeout", "--kill-after=5", str(seconds), "env", "LC_ALL=C", "TERM=dumb", *argv]
        standard_input = b"\n" if self._is_pipelining_enabled("new") else None
        answer: dict[str, Any] = self._low_level_execute_command(shlex.join(limited), in_data=standard_input)
        if standard_input is None:
            answer["stdout"] = answer.get("stdout", "").replace("\r\n", "\n")
            answer["stderr"] = re.sub(r"Shared connection to \S+ closed\.\s*$", "", answer.get("stderr", ""))
        if answer.get("rc") in TIMED_OUT:
            raise AnsibleActionFail(
                f"{shlex.join(argv)} must answer on {self.host}, but did not end within {seconds} s. {left} Look for what "
                "holds it (another package manager, a file system that does not answer: ps -eo pid,stat,args), end that, and run again."
            )
        return answer

    def ask_module(self, module: str, **args: Any) -> dict[str, Any]:
        """Run a module and return its result, which may be a failure; `changed` does not include it yet."""
        name = full_name(module)
        answer: dict[str, Any] = self._execute_module(module_name=name, module_args=args, task_vars=self.variables)
        return answer

    def ask_again(self, module: str, patience: float, pause: float, goes_on: str, /, **args: Any) -> dict[str, Any]:
        """Run a module, and again for so many seconds if the connection is lost: it may run twice.

        goes_on: what continues on the host meanwhile, as a clause.
        """
        end = time.monotonic() + patience
        while True:
            try:
                answer = self.ask_module(module, **args)
            except AnsibleConnectionFailure as lost:
                if time.monotonic() > end:
                    raise AnsibleActionFail(
                        f"{self.host} could not be reached for {patience} s ({lost}). {goes_on}."
                    ) from lost
                time.sleep(pause)
            else:
                if answer.get("failed"):
                    raise AnsibleActionFail(f"{self.host}: {answer.get('msg')}")
                return answer

    def module(self, module: str, **args: Any) -> dict[str, Any]:
        return self.count(self.ask_module(module, **args))

    def copy(self, path: str, **what: Any) -> dict[str, Any]:
        return self.plugin("ansible.builtin.copy", {"dest": path, "owner": "root", "group": "root", **what})

    def plugin(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Run a module that has an action of its own as a task would: copy finds files beside the role or the playbook."""
        task = self._task.copy()
        task.action, task.args = name, args
        action = self._shared_loader_obj.action_loader.get(
            name,
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
            raise AnsibleActionFail(
                f"{self._task.action} on {self.host}: {answer.get('msg')}", result={"answer": answer}
            )
        self.changed = self.changed or bool(answer.get("changed"))
        differences = answer.get("diff") or []
        self.diff += differences if isinstance(differences, list) else [differences]
        return answer

    def unsigned_repositories(self, manager: str) -> list[dict[str, str]]:
        """The host's repositories that are not used: from which a package would be installed unchecked, also as a dependency, and those that the site's
        package_repositories does not name. Name and file of each.
        """
        allowed = self._templar.template(self.variables.get("package_repositories"))
        answer = self.module("package_repositories_info", manager=manager, **({"allowed": allowed} if allowed else {}))
        repositories: list[dict[str, str]] = answer["unsigned"]
        return repositories

    def absent(self, path: str) -> None:
        self.module("ansible.legacy.file", path=path, state="absent")

    def fetch(self, source: str, path: str, sha256: str, *, mode: str, title: str, remedy: str) -> None:
        """Fetch a file from a URL or the controller and compare its sha256; a file with another one is removed, with an error."""
        if URL.match(source):
            arguments = {"url": source, "path": path, "sha256": sha256, "permissions": mode}
            of_mirror = {"ca": self.mirror_ca(source), "use_proxy": False} if self.is_mirror(source) else {}
            answer = self.ask_module("fetch_file", **arguments, **of_mirror)
            if answer.get("sha256"):
                self._refuse_bytes(source, sha256, answer["sha256"], title=title, remedy=remedy)
            if answer.get("failed"):
                raise AnsibleActionFail(
                    f"{title} must come from {without_secrets(source)} to {path} on {self.host}, but that failed: "
                    f"{answer.get('msg')}. Solve what it names, and run this again."
                )
            self.count(answer)
            return
        self.copy(path, src=source, mode=mode)
        file_stat = self.ask_module("ansible.legacy.stat", path=path, checksum_algorithm="sha256")
        checksum = file_stat.get("stat", {}).get("checksum", "no content")
        if checksum != sha256:
            self.absent(path)
            self._refuse_bytes(source, sha256, checksum, title=title, remedy=remedy)

    def is_mirror(self, url: str) -> bool:
        """Whether the address is on the site's own mirror or index."""
        return any(server_of(self._of_site(name)) == server_of(url) for name in ("mirror_url", "mirror_index_url"))

    def mirror_ca(self, url: str) -> str | None:
        """The CA bundle for an address of the mirror with https; None: the system's is used, as for every other server."""
        return (self._of_site("mirror_ca") or None) if url.startswith("https:") and self.is_mirror(url) else None

    def _of_site(self, name: str) -> str:
        return str(self._templar.template(self.variables.get(name)) or "")

    def _refuse_bytes(self, source: str, sha256: str, actual: str, *, title: str, remedy: str) -> None:
        raise AnsibleActionFail(
            f"{title} must have the sha256 {sha256} but {without_secrets(source)} has {actual}; it was not used. {remedy}"
        )
