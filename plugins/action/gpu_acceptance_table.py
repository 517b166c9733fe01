"""Compare what the GPUs of all hosts copy, print the table, and fail if one is slower than its links or than the others: run once."""

from __future__ import annotations

from typing import Any

from ansible.utils.display import Display

from hadoop_dl.hosts import gpu_acceptance
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """gpu_acceptance_table: `variable`, the name that gpu_acceptance registered in this play."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        hosts = self.measured(task_vars or {}, str(self._task.args["variable"]), gpu_acceptance.read)
        display.display(gpu_acceptance.text(hosts))
        result["changed"] = False
        refusal = gpu_acceptance.refusal(hosts)
        if refusal:
            result.update(failed=True, msg=refusal)
        return result
