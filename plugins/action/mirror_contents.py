"""Write what the mirror of an inventory must hold, for scripts/mirror; no host is read.

The work is in lib/hadoop_dl/hosts/mirror_contents.py.
"""

import json
from pathlib import Path
from typing import Any

from hadoop_dl.hosts.actions import OnceAction
from hadoop_dl.hosts.inventory_values import REPOSITORY, Inventory
from hadoop_dl.hosts.mirror_contents import contents


class ActionModule(OnceAction):
    """mirror_contents: `file` for the answer as JSON; `stacks`, the names that the operator chose; `plan`, a file with a plan."""

    def act(self) -> dict[str, Any]:
        inventory = Inventory(self._templar, self.variables)
        try:
            plan = Path(self._task.args["plan"]) if self._task.args.get("plan") else None
            stacks = self._task.args.get("stacks") or ()
            site_contents = contents(inventory.hosts, stacks, REPOSITORY, plan)
        except ValueError as error:  # A stack or lock that cannot be read.
            return {"failed": True, "msg": str(error)}
        Path(self._task.args["file"]).write_text(json.dumps(site_contents.as_json()), encoding="utf-8")
        return {}
