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

    def act(self) -> dict[str, Any]:
        hosts = self.measured(str(self._task.args["variable"]), benchmark.Benchmark)
        directory = Path(str(self._task.args["directory"]))
        display.display(benchmark.text(hosts))
        refusal = benchmark.refusal(hosts)
        try:
            directory.mkdir(parents=True, exist_ok=True)
            answers = {host: typed.as_json(answer) for host, answer in hosts.items()}
            report_files.write_whole(directory / "benchmark.json", json.dumps(answers, indent=1) + "\n")
        except OSError as error:
            refusal = report_files.refusal(directory, error)
        return {"failed": True, "msg": refusal} if refusal else {}
