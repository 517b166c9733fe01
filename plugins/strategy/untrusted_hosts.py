"""Tasks in Ansible's usual order (linear). What a host answers is data: every result of every task enters the run here."""

from __future__ import annotations

from collections import deque
from typing import Any

from ansible import constants as C
from ansible.plugins.loader import filter_loader, test_loader
from ansible.plugins.strategy.linear import StrategyModule as Linear
from ansible.utils.unsafe_proxy import wrap_var

# Keys that Ansible obeys in any result, and the actions, of the controller alone, that may set them.
OBEYED = {
    key: C.add_internal_fqcns((action,))
    for key, action in (("add_host", "add_host"), ("add_group", "group_by"), ("ansible_stats", "set_stats"))
}
LONGEST = 2000  # characters of the text of a broken connection
PLAIN = str.maketrans("{}", "()")


class Results(deque):  # type: ignore[type-arg]
    """The queue from the thread that receives results to the code that obeys and registers them."""

    def append(self, received: Any) -> None:
        result, task = received._result, received._task
        loop_results = result.get("results", [])
        items = (
            [item for item in loop_results if isinstance(item, str | dict)] if isinstance(loop_results, list) else []
        )
        if not isinstance(loop_results, list) or len(items) != len(loop_results):
            del result["results"]  # Ansible looks into each of them
        for answer in (result, *(items if task.loop else ())):
            for key, actions in OBEYED.items():
                if task.action not in actions:
                    answer.pop(key, None)
        if result.get("unreachable"):
            message = "".join(c if c.isprintable() else " " for c in str(result.get("msg", ""))[:LONGEST])
            result["msg"] = message.translate(PLAIN)
        if result.get("unreachable") or result.get("failed"):
            received._result = wrap_var(result)  # ansible-core 2.16 leaves some of these as templates
        super().append(received)


class StrategyModule(Linear):  # type: ignore[misc]
    def __init__(self, tqm: Any) -> None:
        super().__init__(tqm)
        self._results = Results()
        # Ansible loads the files of all filters at the first one that it meets, and this is mostly in a worker: every task of every host would load them.
        for loader in (filter_loader, test_loader):
            next(loader.all(), None)
