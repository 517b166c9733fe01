"""Measure what a host's idle GPUs copy: gpu-check --accept of this tree in the host's Python. Answers with what it measured."""

from typing import Any

from hadoop_dl.hosts import gpu_acceptance, host_script
from hadoop_dl.hosts.actions import ScriptAction


class ActionModule(ScriptAction):
    """gpu_acceptance: `gpu_count` (what the inventory promises, or empty); returns `measured` (lib/hadoop_dl/hosts/gpu_acceptance.py).

    It never fails: a host that does not answer is a line of the table with the reason. It changes no file of the host.
    """

    def act(self) -> dict[str, Any]:
        script = host_script.acceptance(str(self._task.args["gpu_count"]))
        return {"measured": self.measure(script, gpu_acceptance.Acceptance)}
