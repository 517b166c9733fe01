"""Compare what all hosts reached in the benchmark, print the table, keep it as JSON, and fail if a host failed: run once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible.utils.display import Display

from hadoop_dl.data import typed
from hadoop_dl.hosts import benchmark, report_files
from hadoop_dl.hosts.actions import OnceAction

display = Display()


class ActionModule(OnceAction):
    """benchmark_table: `variable`, the name that the action benchmark registered in this play; `directory` on the controller for benchmark.json."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        hosts = self.measured(task_vars or {}, str(self._task.args["variable"]), benchmark.read)
        directory = Path(str(self._task.args["directory"]))
        display.display(benchmark.text(hosts))
        result["changed"] = False
        refusal = benchmark.refusal(hosts)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            found = {host: typed.as_json(one) for host, one in hosts.items()}
            report_files.write_whole(directory / "benchmark.json", json.dumps(found, indent=1) + "\n")
        except OSError as error:
            refusal = report_files.refusal(directory, error)
        if refusal:
            result.update(failed=True, msg=refusal)
        return result
