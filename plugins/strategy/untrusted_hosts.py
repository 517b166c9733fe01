"""Tasks in Ansible's usual order (linear). What a host answers is data: every result of every task enters the run here."""

from collections import deque
from typing import Any

import ansible.plugins.strategy
from ansible import constants as C
from ansible.plugins.loader import filter_loader, test_loader
from ansible.plugins.strategy.linear import StrategyModule as Linear
from ansible.utils.unsafe_proxy import wrap_var

from hadoop_dl.data.terminal import one_line, printable_values

# Keys that Ansible obeys in any result, and the actions, of the controller alone, that may set them.
OBEYED = {
    key: C.add_internal_fqcns((action,))
    for key, action in (("add_host", "add_host"), ("add_group", "group_by"), ("ansible_stats", "set_stats"))
}
PRINTED = {"msg", "diff", "_ansible_item_label"}  # of a success
LONGEST = 2000  # characters of the text of a broken connection
PLAIN = str.maketrans("{}", "()")


class Display:
    """What workers display, such as a warning about what a host printed: without control characters."""

    def __init__(self, display: Any) -> None:
        self.display_of_ansible = display

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.display_of_ansible, name)
        return (lambda *words, **more: value(*map(printable_values, words), **more)) if callable(value) else value


def clean(task_result: Any) -> None:
    """What Ansible prints of a result by itself. Cleaned texts stay data: one without the mark of wrap_var is a template."""
    result = task_result._result
    for answer in (result, *(item for item in result.get("results") or () if isinstance(item, dict))):
        answer.pop("deprecations", None)
        warnings = answer.pop("warnings", None)
        if isinstance(warnings, list):
            answer["warnings"] = wrap_var([one_line(warning) for warning in warnings])
        printed = answer if answer.get("failed") or answer.get("unreachable") else PRINTED & answer.keys()
        answer.update({key: wrap_var(printable_values(answer[key])) for key in {*printed} - {"results"}})


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
        if not isinstance(ansible.plugins.strategy.display, Display):
            ansible.plugins.strategy.display = Display(ansible.plugins.strategy.display)
        # Ansible loads the files of all filters at the first one that it meets, and this is mostly in a worker: every task of every host would load them.
        for loader in (filter_loader, test_loader):
            next(loader.all(), None)

    def normalize_task_result(self, task_result: Any) -> Any:
        """Of a task, or of one item of its loop; the latter are printed at once and never reach the queue."""
        normalized = super().normalize_task_result(task_result)
        if isinstance(normalized._result.get("results", []), list):
            clean(normalized)
        return normalized
