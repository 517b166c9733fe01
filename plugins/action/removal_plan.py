"""Show what playbooks/remove.yml removes from every host, and refuse: run once, after removal_info. The work is in lib/hadoop_dl/hosts/removal.py."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.utils.display import Display

from hadoop_dl.hosts import removal
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """removal_plan: `answers` names the variable that has what removal_info answered; `parts`, `hdfs_files`, `hadoop_login`, `forced`, `confirmed`, `restart_allowed`,
    `yarn_restart_allowed` are the operator's, as are the run's tags: each part is one.

    Returns `hosts`, the parts that each host loses, in their order, and `cdsw_master`, the host that is CDSW's master.
    """

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        try:
            request = self._request(variables)
        except removal.Misused as error:
            return {**result, "failed": True, "msg": str(error)}
        answers, unread = {}, []
        for name in variables["ansible_play_hosts_all"]:
            answer = variables["hostvars"].raw_get(name).get(self._task.args["answers"])
            if isinstance(answer, dict) and "removal" in answer:
                answers[name] = answer["removal"]
            else:
                unread.append(name)
        found = removal.make(answers, unread, variables["groups"].get("edge_nodes") or [], request)
        display.display(found.text)
        if found.problems:
            return {**result, "failed": True, "msg": " ".join([*found.problems, "No host was changed."])}
        return {**result, "changed": False, "hosts": found.hosts, "cdsw_master": found.cdsw_master}

    def _request(self, variables: dict[str, Any]) -> removal.Request:
        args = self._task.args
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

    def _switch(self, name: str, given: Any) -> bool:
        try:
            return boolean(given)
        except TypeError as error:
            raise removal.Misused(
                f"{name} must be true or false, but is {given!r}. Correct it. No host was changed."
            ) from error
