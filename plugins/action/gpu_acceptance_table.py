"""Compare what the GPUs of all hosts copy, print the table, and fail if one is slower than its links or than the others: run once."""

from typing import Any

from ansible.utils.display import Display

from hadoop_dl.hosts import gpu_acceptance
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """gpu_acceptance_table: `variable`, the name that gpu_acceptance registered in this play."""

    def act(self) -> dict[str, Any]:
        hosts = self.measured(str(self._task.args["variable"]), gpu_acceptance.Acceptance)
        display.display(gpu_acceptance.text(hosts))
        refusal = gpu_acceptance.refusal(hosts)
        return {"failed": True, "msg": refusal} if refusal else {}
