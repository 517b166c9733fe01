"""Turn what all hosts answered into the plan: run once, after node_facts. The work is in lib/hadoop_dl/plan/."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible import context
from ansible.parsing.yaml.objects import AnsibleVaultEncryptedUnicode
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY / "lib"))

from hadoop_dl import plan  # noqa: E402  (the path above comes first)
from hadoop_dl.data import json_text, stacks  # noqa: E402  (the path above comes first)
from hadoop_dl.data.compat import LOADER  # noqa: E402
from hadoop_dl.plan import inputs  # noqa: E402  (the path above comes first)
from hadoop_dl.plan import model as plan_model  # noqa: E402

display = Display()
LATER = {"plan", "stack", "deeplearning_environment"}  # Variables that only the plan gives a value to.


class ActionModule(ActionBase):
    """plan: `file` (where to write it as JSON), `publish_all` (give every host its part) and `driver_upgrade` (another driver may come), all optional. Returns `changes` for add_host."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        stacks.add_site_stacks(context.CLIARGS.get("inventory") or ())
        hosts = [self._host(name, task_vars) for name in task_vars["ansible_play_hosts_all"]]
        try:
            made = plan.make_plan(hosts, REPOSITORY, driver_upgrade=bool(self._task.args.get("driver_upgrade")))
        except ValueError as error:  # A stack or lock that cannot be read.
            return {**result, "failed": True, "msg": str(error)}
        for host in hosts:
            self._check_later(host, made, task_vars)
        self._write(made)
        display.display(made.table())
        for warning in made.warnings:
            display.warning(warning)
        if made.problems:
            # Returned, not raised: an exception would print its traceback above the sentences.
            return {**result, "failed": True, "msg": made.failure()}
        return {**result, "changed": False, "changes": made.changes(every=bool(self._task.args.get("publish_all")))}

    def _write(self, made: plan_model.Plan) -> None:
        path = self._task.args.get("file")
        if not path:
            return
        try:
            Path(path).write_text(json.dumps(made.as_json(), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            made.problems.append(
                f"preflight_plan_file must be a file that the controller can write, but {inputs.shown(path)} is not: "
                f"{error.strerror}. Create its directory, or set another path."
            )

    def _host(self, name: str, task_vars: dict[str, Any]) -> plan_model.Host:
        """The host with the values of the inputs that the site set; what the playbooks compute stays a template."""
        variables = dict(task_vars["hostvars"].raw_get(name))
        node = answer_of(variables)
        computed = playbook_variables()
        known = inputs.all_inputs(REPOSITORY)
        given = {key: value for key, value in variables.items() if key in known and not same(value, computed.get(key))}
        for key, value in given.items():
            variables[key] = self._value(value, variables, task_vars)
        return plan_model.Host(
            name=name, groups=tuple(variables.get("group_names", ())), variables=variables, node=node
        )

    def _value(self, value: Any, variables: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        try:
            return self._evaluated(unlocked(value), variables, task_vars)
        except Exception as error:  # noqa: BLE001  (an expression may raise anything: 1/0, a filter that gets another type)
            return inputs.FailedTemplate(reason(error))

    def _evaluated(self, value: Any, variables: dict[str, Any], task_vars: dict[str, Any]) -> Any:
        text = value if isinstance(value, str) else json_text.encoded(value)
        if "{{" not in text and "{%" not in text:
            return value
        if mentions(text, variables) & LATER and "plan" not in variables:
            return value
        self._templar.available_variables = {**variables, "hostvars": task_vars["hostvars"]}
        return self._templar.template(value)

    def _check_later(self, host: plan_model.Host, made: plan_model.Plan, task_vars: dict[str, Any]) -> None:
        """Check the site's values that need the plan, now that there is one."""
        part = made.hosts.get(host.name)
        computed = playbook_variables()
        later = {
            key: value
            for key, value in host.variables.items()
            if key in inputs.all_inputs(REPOSITORY) and inputs.is_template(value) and value != computed.get(key)
        }
        if part is None or not later:
            return
        variables = {**host.variables, "plan": part}
        checked = inputs.check(
            {key: self._value(value, variables, task_vars) for key, value in later.items()}, REPOSITORY
        )
        made.problems += [f"{host.name}: {problem}" for problem in checked.problems]


def answer_of(variables: dict[str, Any]) -> dict[str, Any] | None:
    """What the host answered to node_facts; a value from elsewhere stays a variable, which the check of inputs refuses."""
    registered = variables.pop("preflight_node", {})
    facts = registered.get("facts") if isinstance(registered, dict) else registered
    if facts is None or isinstance(facts, dict):
        return facts
    variables["preflight_node"] = str(registered)
    return None


def same(value: Any, computed: Any) -> bool:
    """Whether the value is what the playbooks compute; to compare a vault's value would decrypt it."""
    return not isinstance(value, AnsibleVaultEncryptedUnicode) and bool(value == computed)


def unlocked(value: Any) -> Any:
    """The value with every text that ansible-vault encrypted as one that no message shows."""
    if isinstance(value, AnsibleVaultEncryptedUnicode):
        return inputs.Secret(value)
    if isinstance(value, dict):
        return {key: unlocked(one) for key, one in value.items()}
    return [unlocked(one) for one in value] if isinstance(value, list) else value


@cache
def playbook_variables() -> dict[str, Any]:
    """What the playbooks compute for the roles; a value that differs was written by the site."""
    path = REPOSITORY / "playbooks" / "group_vars" / "all.yml"
    found: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), Loader=LOADER)  # noqa: S506 (both are safe loaders)
    return found


def mentions(text: str, variables: dict[str, Any]) -> set[str]:
    """Every name in a template and in the templates of the variables that it names."""
    found: set[str] = set()
    queue = [text]
    while queue:
        for name in re.findall(r"[A-Za-z_]\w*", queue.pop()):
            if name not in found:
                found.add(name)
                value = variables.get(name)
                if isinstance(value, str) and inputs.is_template(value):
                    queue.append(value)
    return found


def reason(error: Exception) -> str:
    """The sentence of a template's error that names the cause."""
    text = " ".join(str(error).split())
    cause = re.search(r"'[^']+' is undefined|object has no (?:attribute|element) '?[^'.]+'?", text)
    return cause[0] if cause else inputs.shown(re.split(r"error was: |original message: ", text)[-1])
