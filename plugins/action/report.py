"""Compare what all hosts answered with the plan, and write the report: run once, after report_facts. The work is in lib/hadoop_dl/hosts/report*.py."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from hadoop_dl.hosts import report, report_files
from hadoop_dl.hosts.inventory_values import Inventory

display = Display()


class ActionModule(ActionBase):
    """report: `directory` (of the report, on the controller) and `verify_directory` (of the last report of playbooks/verify.yml)."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        variables = task_vars or {}
        sources = [str(source) for source in context.CLIARGS.get("inventory") or ()]
        try:
            inventory = Inventory(self._templar, variables)
            made = inventory.make_plan(grouped=False)
        except ValueError as error:  # A stack or lock that cannot be read.
            return {**result, "failed": True, "msg": str(error)}
        answers = {host.name: self._asked(variables, host.name) for host in inventory.hosts}
        verified = report.last_verify(Path(str(self._task.args["verify_directory"])), sources)
        found = report.make_report(inventory.hosts, answers, made, verified, time.time(), sources)
        try:
            report_files.write(found, Path(str(self._task.args["directory"])))
        except OSError as error:
            return {**result, "failed": True, "msg": report_files.refusal(self._task.args["directory"], error)}
        display.display(report_files.text(found))
        return {**result, "changed": False, "status": found["status"]}

    def _asked(self, variables: dict[str, Any], name: str) -> report.Asked:
        answer = variables["hostvars"].raw_get(name).get("preflight_node")
        # -e may set another value, which the plan refuses.
        return report.asked_of(answer if isinstance(answer, dict) else {})
