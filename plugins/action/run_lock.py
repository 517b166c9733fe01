"""Take or release a host for this run of the playbooks. A dead run's place is taken, with a warning. The work is in lib/hadoop_dl/hosts/runs.py."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from hadoop_dl.hosts import runs

display = Display()


class ActionModule(ActionBase):
    """run_lock: `state` (taken, released), `root`, `note` (what a run that follows a killed one must know), `takeover` (also from a run of which nobody here knows whether it lives).

    Returns `refused`, a sentence where another run has the host, and `controller`, whether the host is the machine that runs Ansible.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._variables = task_vars or {}
        playbook = Path(str((context.CLIARGS.get("args") or ["a playbook"])[0])).name
        own = runs.this_run(
            os.getppid(), playbook, str(self._task.args.get("note") or "")
        )  # every task runs in a child of the run's main process
        answer = self._ask(own)
        found = answer.get("holder") or {}
        if found:
            why = runs.dead(found, own, int(answer["age"]))
            if why or self._task.args.get("takeover"):
                host = self._variables["inventory_hostname"]
                display.warning(f"{host}: the lock of {runs.told(found)} is taken over: {why or 'as requested'}.")
                answer = self._ask(own, replace=found["id"])
                found = answer.get("holder") or {}
        controller = runs.is_controller(answer.get("machine") or {}, own)
        return {
            **result,
            **answer,
            "changed": False,
            "refused": runs.told(found) if found else "",
            "controller": controller,
        }

    def _ask(self, own: dict[str, str], replace: str = "") -> dict[str, Any]:
        arguments = {"state": self._task.args["state"], "root": self._task.args["root"], "run": own, "replace": replace}
        answer: dict[str, Any] = self._execute_module(
            module_name="run_lock", module_args=arguments, task_vars=self._variables
        )
        return answer
