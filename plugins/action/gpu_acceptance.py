"""Measure what a host's idle GPUs copy: gpu-check --accept of this tree in the host's Python. Answers with what it measured."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleError
from ansible.executor.task_executor import TaskTimeoutError

from hadoop_dl.data import typed
from hadoop_dl.data.terminal import PARAGRAPH, one_line
from hadoop_dl.hosts import gpu_acceptance, host_script
from hadoop_dl.hosts.actions import ScriptAction


class ActionModule(ScriptAction):
    """gpu_acceptance: `gpu_count` (what the inventory promises, or empty); returns `acceptance` (lib/hadoop_dl/hosts/gpu_acceptance.py).

    It never fails: a host that does not answer is a line of the table with the reason. It changes no file of the host.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        try:
            found = gpu_acceptance.read(self.run_script(host_script.acceptance(str(self._task.args["gpu_count"]))))
        except (host_script.NoAnswer, AnsibleError) as problem:
            found = gpu_acceptance.Acceptance(unanswered=one_line(problem, PARAGRAPH))
        except typed.TypedError as problem:
            found = gpu_acceptance.Acceptance(unanswered=f"it answered {problem}")
        except TaskTimeoutError:
            found = gpu_acceptance.Acceptance(unanswered=f"no answer within {self._task.timeout} s")
        result.update(changed=False, acceptance=typed.as_json(found))
        return result
