"""Turn what all hosts answered into the plan: run once, after host_facts. The work is in lib/hadoop_dl/plan/."""

import json
from pathlib import Path
from typing import Any

from ansible.utils.display import Display

from hadoop_dl.hosts.inventory_values import Inventory, InventoryAction
from hadoop_dl.plan import forms
from hadoop_dl.plan import model as plan_model

display = Display()


class ActionModule(InventoryAction):
    """plan: `file` (where to write it as JSON), `publish_all` (give every host its part), `driver_upgrade` (another driver may be
    installed) and `building` (only what builds TensorFlow), all optional. Returns `changes` for add_host.
    """

    def options(self) -> dict[str, bool]:
        return {name: bool(self._task.args.get(name)) for name in ("driver_upgrade", "building")}

    def conclude(self, inventory: Inventory, site_plan: plan_model.Plan) -> dict[str, Any]:
        self._write(site_plan)
        display.display(site_plan.table())
        for warning in site_plan.warnings:
            display.warning(warning)
        if site_plan.problems:
            # Returned, not raised: an exception would print its traceback above the sentences.
            return {"failed": True, "msg": site_plan.failure()}
        return {"changes": site_plan.changes(every=bool(self._task.args.get("publish_all")))}

    def _write(self, site_plan: plan_model.Plan) -> None:
        path = self._task.args.get("file")
        if not path:
            return
        try:
            Path(path).write_text(json.dumps(site_plan.as_json(), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            site_plan.problems.append(
                f"preflight_plan_file must be a file that the controller can write, but {forms.shown(path)} is not: "
                f"{error.strerror}. Create its directory, or set another path."
            )
