"""Compare what all hosts answered with the plan, and write the report: run once, after report_facts.

The work is in lib/hadoop_dl/hosts/report*.py.
"""

import time
from pathlib import Path
from typing import Any

from ansible import context
from ansible.utils.display import Display

from hadoop_dl.data import report_answers
from hadoop_dl.hosts import gpu_use, report, report_files, report_text
from hadoop_dl.hosts.inventory_values import Inventory, InventoryAction
from hadoop_dl.plan import model as plan_model

display = Display()


class ActionModule(InventoryAction):
    """report: `directory` (of the report, on the controller) and `verify_directory` (of the last report of playbooks/verify.yml)."""

    def options(self) -> dict[str, bool]:
        return {"grouped": False}

    def conclude(self, inventory: Inventory, site_plan: plan_model.Plan) -> dict[str, Any]:
        sources = [str(source) for source in context.CLIARGS.get("inventory") or ()]
        # -e may set another value of this name, which the plan refuses.
        registered = self.registered("preflight_node", [host.name for host in inventory.hosts])
        answers = {name: report_answers.asked_of(result.get("asked", {})) for name, result in registered.items()}
        verified = report.last_verify(Path(str(self._task.args["verify_directory"])), sources)
        directory = Path(str(self._task.args["directory"]))
        idle = gpu_use.idle_before(directory, sources)
        site_report = report.make_report(inventory.hosts, answers, site_plan, verified, time.time(), sources, idle)
        try:
            report_files.write(site_report, directory)
        except OSError as error:
            return {"failed": True, "msg": report_files.refusal(directory, error)}
        display.display(report_text.text(site_report))
        return {"status": site_report["status"]}
