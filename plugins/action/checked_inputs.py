"""Check the inputs of a playbook that makes no plan, before any host is asked: run once, as its first task. The work is in lib/hadoop_dl/plan/inputs.py."""

from __future__ import annotations

from typing import Any

from ansible.utils.display import Display

from hadoop_dl.hosts.actions import OnceAction
from hadoop_dl.hosts.inventory_values import REPOSITORY, Inventory
from hadoop_dl.plan import inputs
from hadoop_dl.plan import model as plan_model

display = Display()


class ActionModule(OnceAction):
    """checked_inputs: `names` are the inputs that the playbook uses itself, `roles` those of which it uses all inputs.

    Templates are evaluated as the plan evaluates them. Fails with every problem of every host in one list.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        names = self._task.args["names"]
        used = inputs.used(names, self._task.args.get("roles") or [], REPOSITORY)
        problems, warnings = Inventory(self._templar, task_vars or {}, used).checked(names)
        for warning in warnings:
            display.warning(warning)
        if problems:
            return {**result, "failed": True, "msg": plan_model.failure(problems)}
        return {**result, "changed": False}
