"""Train the benchmark's networks on a host: `deeplearning benchmark` there. Answers with what it measured."""

from __future__ import annotations

from typing import Any

from hadoop_dl.hosts import benchmark, host_script
from hadoop_dl.hosts.actions import ScriptAction


class ActionModule(ScriptAction):
    """benchmark: `networks` and `seconds` of each measurement; returns `measured` (lib/hadoop_dl/hosts/benchmark.py).

    It never fails: a host that does not answer is a line of the table with the reason. It changes no file of the host.
    """

    def act(self) -> dict[str, Any]:
        networks = [str(network) for network in self._task.args["networks"]]
        script = host_script.benchmark(networks, int(self._task.args["seconds"]), self._task.timeout)
        return {"measured": self.measure(script, benchmark.Benchmark)}
