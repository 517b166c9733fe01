"""Gather what every host of the play registered under one name, as data: run once. A host that failed or is lost is not in the answer."""

from __future__ import annotations

from typing import Any

from hadoop_dl.hosts.actions import OnceAction


class ActionModule(OnceAction):
    """host_answers: `variable`, the name that a task of this play registered.

    Returns `answers`, host -> its result. Templates in an answer are not evaluated, as they are if a play reads hostvars.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables, name = task_vars or {}, str(self._task.args["variable"])
        known = {host: variables["hostvars"].raw_get(host).get(name) for host in variables["ansible_play_hosts"]}
        return {
            **result,
            "changed": False,
            "answers": {host: one for host, one in known.items() if isinstance(one, dict)},
        }
