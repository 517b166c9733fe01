"""Print what another stack changes, and choose the canaries: run once, after environment_contents_info.

The work is in lib/hadoop_dl/hosts/.
"""

from typing import Any

from ansible.utils.display import Display

from hadoop_dl.data import stacks
from hadoop_dl.hosts import canaries, stack_change
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """stack_change: `contents` (the variable that has each host's answer), `canary` (which hosts come first).

    Returns `table` (empty if no host changes its environment), `pending` (what the hosts need all the same), `canaries` and `environments`.
    """

    def act(self) -> dict[str, Any]:
        variables = self.variables
        hostvars = {name: variables["hostvars"].raw_get(name) for name in variables["ansible_play_hosts"]}
        hosts = [name for name, values in hostvars.items() if (values.get("plan") or {}).get("environment")]
        changes = []
        try:
            for name in hosts:
                part, answer = hostvars[name]["plan"], hostvars[name].get(str(self._task.args["contents"])) or {}
                lock = stacks.load_stack(part["stack"]["name"]).lock(part["python"])
                plan_contents = stack_change.requested(part["environment"], part["stack"], part["python"], lock)
                changes.append((name, stack_change.active(answer), plan_contents))
            canary_hosts = canaries.chosen(hosts, self._task.args.get("canary"))
        except ValueError as error:
            return {"failed": True, "msg": str(error)}
        table = stack_change.report(changes)
        if table:
            display.display(f"UPGRADE of {len(hosts)} hosts\n{table}")
        needs = {need for values in hostvars.values() for need in (values.get("plan") or {}).get("needs", [])}
        return {
            "table": table,
            "pending": sorted(needs),
            "canaries": canary_hosts,
            "environments": sorted({hostvars[name]["plan"]["environment"] for name in hosts}),
        }
