"""Turn what all hosts answered into the plan: run once, after node_facts. The work is in lib/hadoop_dl/plan.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

REPOSITORY = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPOSITORY / "lib"))

from hadoop_dl import gpu_layer, plan  # noqa: E402  (the path above comes first)

display = Display()
# Values that decide, and that a site may write as templates.
TEMPLATED = (
    *("deeplearning_request", "gpu_count", "mirror_url", "mirror_mode", "apply", "deeplearning_unreachable"),
    *gpu_layer.TEMPLATED,
)


class ActionModule(ActionBase):
    """plan: `file` (where to write it as JSON), `publish_all` (give every host its part) and `driver_upgrade` (another driver may come), all optional. Returns `changes` for add_host."""

    TRANSFERS_FILES = False
    BYPASS_HOST_LOOP = True
    _supports_check_mode = True
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        hosts = [self._host(name, task_vars) for name in task_vars["ansible_play_hosts_all"]]
        made = plan.make_plan(hosts, REPOSITORY, driver_upgrade=bool(self._task.args.get("driver_upgrade")))
        if self._task.args.get("file"):
            Path(self._task.args["file"]).write_text(json.dumps(made.as_json(), indent=1) + "\n", encoding="utf-8")
        display.display(made.table())
        for warning in made.warnings:
            display.warning(warning)
        if made.problems:
            raise AnsibleActionFail(made.failure())
        result.update(changed=False, changes=made.changes(every=bool(self._task.args.get("publish_all"))))
        return result

    def _host(self, name: str, task_vars: dict[str, Any]) -> plan.Host:
        variables = dict(task_vars["hostvars"].raw_get(name))
        node = variables.pop("preflight_node", {}).get("facts")
        self._templar.available_variables = variables
        for key in TEMPLATED:
            if "{{" in str(variables.get(key, "")):
                variables[key] = self._templar.template(variables[key])
        return plan.Host(name=name, groups=tuple(variables.get("group_names", ())), variables=variables, node=node)
