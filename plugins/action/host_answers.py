"""Gather what every host of the play registered under one name, as data: run once. A host that failed or is lost is not in the answer."""

from typing import Any

from hadoop_dl.hosts.actions import OnceAction


class ActionModule(OnceAction):
    """host_answers: `variable`, the name that a task of this play registered.

    Returns `answers`, host -> its result. Templates in an answer are not evaluated, as they are if a play reads hostvars.
    """

    def act(self) -> dict[str, Any]:
        return {"answers": self.registered(str(self._task.args["variable"]), self.variables["ansible_play_hosts"])}
