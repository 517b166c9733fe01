"""Check the inputs of a playbook that makes no plan: run once, as its first task, before a host is read.

The work is in lib/hadoop_dl/plan/inputs.py.
"""

from typing import Any

from ansible.utils.display import Display

from hadoop_dl.hosts.actions import OnceAction
from hadoop_dl.hosts.inventory_values import REPOSITORY, Inventory
from hadoop_dl.plan import inputs
from hadoop_dl.plan import model as plan_model

display = Display()


class ActionModule(OnceAction):
    """checked_inputs: `names` are the inputs that the playbook uses itself, `roles` those of which it uses all inputs. strict: no name is misspelt.

    Templates are evaluated as the plan evaluates them. Fails with every problem of every host in one list.
    """

    def act(self) -> dict[str, Any]:
        names = self._task.args["names"]
        input_names = inputs.used(names, self._task.args.get("roles") or [], REPOSITORY)
        problems, warnings = Inventory(self._templar, self.variables, input_names).checked(names)
        if self._task.args.get("strict"):
            problems = [*problems, *warnings]
        for warning in warnings:
            display.warning(warning)
        return {"failed": True, "msg": plan_model.failure(problems)} if problems else {}
