"""Show what playbooks/remove.yml removes from every host, and refuse: run once, after removal_info.

The work is in lib/hadoop_dl/hosts/removal.py.
"""

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from hadoop_dl.hosts import removal
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """removal_plan: `answers` names the variable that has what removal_info answered. The others are inputs of the operator: `parts`,
    `hdfs_files`, `hadoop_login`, `forced`, `confirmed`, `restart_allowed` and `yarn_restart_allowed`. Each part is also a tag.

    Returns `hosts`, the parts that each host loses, in their order, `components`, whose ledgers go, and `cdsw_master`, the host that is CDSW's master.
    """

    def act(self) -> dict[str, Any]:
        variables = self.variables
        try:
            request = self._request()
        except removal.Misused as error:
            return {"failed": True, "msg": str(error)}
        hosts = variables["ansible_play_hosts_all"]
        results = self.registered(self._task.args["answers"], hosts)
        answers = {name: answer["removal"] for name, answer in results.items() if "removal" in answer}
        unread = [name for name in hosts if name not in answers]
        removal_plan = removal.make(answers, unread, variables["groups"].get("edge_nodes") or [], request)
        display.display(removal_plan.text)
        if removal_plan.problems:
            return {"failed": True, "msg": " ".join([*removal_plan.problems, "No host was changed."])}
        return {
            "hosts": removal_plan.hosts,
            "components": removal_plan.components,
            "cdsw_master": removal_plan.cdsw_master,
        }

    def _request(self) -> removal.Request:
        args, variables = self._task.args, self.variables
        switches = {
            name: self._switch(f"remove_{name}", args.get(name)) for name in ("hdfs_files", "forced", "confirmed")
        }
        for name, variable in (
            ("restart_allowed", "cdsw_restart_allowed"),
            ("yarn_restart_allowed", "yarn_gpu_restart_allowed"),
        ):
            switches[name] = self._switch(variable, args.get(name))
        tags, skipped = variables.get("ansible_run_tags") or [], variables.get("ansible_skip_tags") or []
        parts = removal.parts_of(args.get("parts") or [], tags, skipped)
        by_site = args.get("hadoop_login") == "none"
        return removal.Request(parts, hdfs_by_site=by_site, checking=bool(self._task.check_mode), **switches)

    def _switch(self, name: str, value: Any) -> bool:
        try:
            return boolean(value)
        except TypeError as error:
            raise removal.Misused(
                f"{name} must be true or false, but is {value!r}. Correct it. No host was changed."
            ) from error
