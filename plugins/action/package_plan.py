"""Print which packages a driver's transaction changes on each kind of host, and what runs on the first batch: run once."""

from typing import Any

from ansible.utils.display import Display

from hadoop_dl.hosts import package_plan
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """package_plan: `first_batch`, the hosts that change first. It fails if a host has no transaction."""

    def act(self) -> dict[str, Any]:
        hosts = self.variables["ansible_play_hosts_all"]
        solved = self.registered("nvidia_driver_solved", hosts)
        refused = self.registered("plan_packages_refusal", hosts)
        answers = {host: package_plan.answer_of(host, solved.get(host), refused.get(host)) for host in hosts}
        batch = [str(host) for host in self._task.args["first_batch"]]
        display.display(package_plan.text(answers, batch, self.registered("node_maintenance_occupants", batch)))
        failure = package_plan.failure(answers)
        return {"failed": True, "msg": failure} if failure else {}
