"""The input of the plan from Ansible's variables: each host's groups, the values that the site set, and the host's answer."""

import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from ansible import context
from ansible.parsing.yaml.objects import AnsibleVaultEncryptedUnicode
from ansible.release import __version__ as core

from hadoop_dl import plan
from hadoop_dl.data import json_text, stacks
from hadoop_dl.hosts.actions import OnceAction
from hadoop_dl.plan import controller, forms, inputs, yarn
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan.problems import group_alike, mirror_problems

REPOSITORY = Path(__file__).resolve().parents[3]
LATER = {"plan", "stack", "deeplearning_environment"}  # Variables whose values come from the plan only.


class Inventory:
    """The hosts of a play. templar, variables: of the action. only: the inputs whose values are evaluated, if not all."""

    def __init__(self, templar: Any, variables: Mapping[str, Any], only: Set[str] | None = None) -> None:
        self.templar = templar
        self.known = inputs.all_inputs(REPOSITORY).keys() if only is None else only
        self.variables = variables
        stacks.add_site_stacks(context.CLIARGS.get("inventory") or ())
        self.hosts = [self.host(name) for name in variables["ansible_play_hosts_all"]]

    def make_plan(
        self, *, driver_upgrade: bool = False, grouped: bool = True, building: bool = False
    ) -> plan_model.Plan:
        """The plan of all hosts, with what only the plan shows about the site's values."""
        site_plan = plan.make_plan(
            self.hosts, REPOSITORY, driver_upgrade=driver_upgrade, grouped=grouped, building=building
        )
        for host in self.hosts:
            self.check_later(host, site_plan)
        groups = self.variables["groups"]
        site_problems = mirror_problems(self.hosts, groups.get("mirror_host") or [])
        site_problems += yarn.site_problems(self.hosts, groups.get(yarn.MASTERS) or [], groups.get("data_nodes") or [])
        site_problems += controller.problems(self.hosts, core)
        site_plan.problems += group_alike(site_problems) if grouped else site_problems
        return site_plan

    def host(self, name: str) -> plan_model.Host:
        """The host with the values of the inputs that the site set; values that the playbooks compute are not templated yet."""
        variables = dict(self.variables["hostvars"].raw_get(name))
        answer = answer_of(variables)
        computed = inputs.playbook_values(REPOSITORY)
        site_values = {
            key: value
            for key, value in variables.items()
            if key in self.known and not inputs.is_same(value, computed.get(key))
        }
        for key, value in site_values.items():
            variables[key] = self.value(value, variables)
        return plan_model.host_of(name, variables.get("group_names", ()), variables, answer)

    def checked(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Problems and warnings of a playbook that makes no plan. It uses these names itself, so that their values must need no plan."""
        problems, warnings = [], []
        for host in self.hosts:
            warnings += [f"{host.name}: {sentence}" for sentence in inputs.misspellings(host.variables, REPOSITORY)]
            defined_values = {name: host.variables[name] for name in self.known & host.variables.keys()}
            problems += [
                f"{host.name}: {sentence}" for sentence in inputs.check_each(defined_values, REPOSITORY).problems
            ]
            problems += [
                f"{host.name}: {name} must have a value without a plan, which this playbook does not make, but is {forms.shown(defined_values[name])}."
                for name in set(names) - inputs.reserved(REPOSITORY)
                if inputs.is_template(defined_values.get(name))
            ]
        return group_alike(problems), group_alike(warnings)

    def value(self, value: Any, variables: Mapping[str, Any]) -> Any:
        try:
            return self.evaluated(unlocked(value), variables)
        except Exception as error:  # an expression may raise anything: 1/0, a filter that gets another type
            return inputs.FailedTemplate(reason(error))

    def evaluated(self, value: Any, variables: Mapping[str, Any]) -> Any:
        text = value if isinstance(value, str) else json_text.encoded(value)
        if "{{" not in text and "{%" not in text:
            return value
        if mentions(text, variables) & LATER and "plan" not in variables:
            return value
        self.templar.available_variables = {**variables, "hostvars": self.variables["hostvars"]}
        return self.templar.template(value)

    def check_later(self, host: plan_model.Host, site_plan: plan_model.Plan) -> None:
        """Check the site's values that need the plan, now that there is one."""
        part = site_plan.hosts.get(host.name)
        computed = inputs.playbook_values(REPOSITORY)
        later = {
            key: value
            for key, value in host.variables.items()
            if key in inputs.all_inputs(REPOSITORY) and inputs.is_template(value) and value != computed.get(key)
        }
        if part is None or not later:
            return
        variables = {**host.variables, "plan": part}
        checked = inputs.check({key: self.value(value, variables) for key, value in later.items()}, REPOSITORY)
        site_plan.problems += [f"{host.name}: {problem}" for problem in checked.problems]


class InventoryAction(OnceAction):
    """An action about all hosts of the play and their plan."""

    def act(self) -> dict[str, Any]:
        try:
            inventory = Inventory(self._templar, self.variables)
            site_plan = inventory.make_plan(**self.options())
        except ValueError as error:  # A stack or lock that cannot be read.
            return {"failed": True, "msg": str(error)}
        return self.conclude(inventory, site_plan)

    def options(self) -> dict[str, bool]:
        """The options of the plan."""
        return {}

    def conclude(self, inventory: Inventory, site_plan: plan_model.Plan) -> dict[str, Any]:
        """Use the plan; the returned mapping is added to the result."""
        raise NotImplementedError


def answer_of(variables: dict[str, Any]) -> dict[str, Any] | None:
    """The host's answer to host_facts; a variable of that name from elsewhere is refused by the check of inputs."""
    registered = variables.pop("preflight_node", {})
    facts = registered.get("facts") if isinstance(registered, dict) else registered
    if facts is None or isinstance(facts, dict):
        return facts
    variables["preflight_node"] = str(registered)
    return None


def unlocked(value: Any) -> Any:
    """The value with every text that ansible-vault encrypted as one that no message shows."""
    if isinstance(value, AnsibleVaultEncryptedUnicode):
        return forms.Secret(value)
    if isinstance(value, dict):
        return {key: unlocked(item) for key, item in value.items()}
    return [unlocked(item) for item in value] if isinstance(value, list) else value


def mentions(text: str, variables: Mapping[str, Any]) -> set[str]:
    """Every name in a template and in the templates of the variables that it names."""
    names: set[str] = set()
    queue = [text]
    while queue:
        for name in re.findall(r"[A-Za-z_]\w*", queue.pop()):
            if name not in names:
                names.add(name)
                value = variables.get(name)
                if isinstance(value, str) and inputs.is_template(value):
                    queue.append(value)
    return names


def reason(error: Exception) -> str:
    """The sentence of a template's error that names the cause."""
    text = " ".join(str(error).split())
    cause = re.search(r"'[^']+' is undefined|object has no (?:attribute|element) '?[^'.]+'?", text)
    return cause[0] if cause else forms.shown(re.split(r"error was: |original message: ", text)[-1])
