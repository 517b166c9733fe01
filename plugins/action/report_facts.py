"""Read a host for the report in one round: run module_utils/report_reader.py in its Python, answer with what it read."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.executor.task_executor import TaskTimeoutError

from hadoop_dl.data.terminal import printable
from hadoop_dl.hosts import host_script
from hadoop_dl.hosts.actions import ScriptAction


class ActionModule(ScriptAction):
    """report_facts: no arguments; returns `facts`, `health` and `times`, or, with no facts, `unanswered` with a sentence.

    It never fails and leaves no host out: a host that does not answer is a row of the report with the reason.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            answer = self.run_script(host_script.report_reader())
        except (host_script.NoAnswer, AnsibleError) as problem:
            answer = {"facts": None, "unanswered": printable(str(problem)).strip()}
        except TaskTimeoutError:
            answer = {"facts": None, "unanswered": f"no answer within {self._task.timeout} s"}
        result.update(changed=False, **answer)
        return result
