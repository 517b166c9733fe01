"""scripts/bench plan: how long the plan of a thousand hosts takes on the controller, from what they answered to its table.

What the plugin does is measured, without Ansible's own work: inputs, choice, GPU layer, digests of every component, table
and JSON. Each round is a fresh interpreter, once without kept verdicts (the first plan of a site) and once with them (the next
one). What counts is processor time: it is one thread that waits for nothing, and other work on the machine does not count.
The hosts are those of scripts/bench resolve: three operating systems, five models of GPU and none.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hadoop_dl import plan
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import target
from hadoop_dl_dev import resolver_bench

SITES: dict[str, tuple[Any, ...]] = {
    "constraints, one for all hosts": ({"hdfs": True},),
    "constraints, three, and a name": resolver_bench.REQUESTS,
    "a name, one for all hosts": ("tf1.15-py27-el7",),
}
CHILD = "import sys; from hadoop_dl_dev import plan_bench; plan_bench.once(*sys.argv[1:])"


def host(number: int, asked: tuple[Any, ...]) -> plan_model.Host:
    """A host of the inventory with what its reader answered."""
    node = resolver_bench.node(number)
    node["os"]["name"] = f"Red Hat Enterprise Linux {node['os']['version']}"
    node["kernel"] |= {"running": "5.14.0", "default_boot": "5.14.0", "installed": ["5.14.0"], "headers": ["5.14.0"]}
    node["disk_free_mb"] = {"/opt": 90000}
    node["hadoop"]["home"] = "/opt/hadoop"
    variables = {
        "deeplearning_request": asked[number % len(asked)],
        "mirror_url": "http://mirror1:8900",
        "mirror_mode": "fetch",
        "nvidia_license_accepted": True,
    }
    return plan_model.host_of(f"data{number}", ("data_nodes",), variables, node)


def once(site: str, count: str, verdicts: str) -> None:
    """One round, as a line of JSON: seconds, and what came out."""
    target.VERDICTS = Path(verdicts)
    hosts = [host(number, SITES[site]) for number in range(int(count))]
    begin = time.process_time()
    made = plan.make_plan(hosts, target.REPOSITORY)
    made.table()
    json.dumps(made.as_json())
    made.changes()
    seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "rows": len(made.rows), "verdicts": len(target.verdicts().new)}))


def run(site: str, count: int, verdicts: Path) -> dict[str, Any]:
    command = [sys.executable, "-I", "-c", CHILD, site, str(count), str(verdicts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measure(counts: list[int], rounds: int) -> str:
    """A Markdown table: medians, with the spread in brackets."""
    lines = [
        "| requests | hosts | verdicts | rows | first plan, CPU ms | next plan, CPU ms |",
        "|---|---|---|---|---|---|",
    ]
    for site in SITES:
        for count in counts:
            first, following = [], []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as directory:
                    path = Path(directory, "verdicts.json")
                    first.append(run(site, count, path))
                    following.append(run(site, count, path))
            cells = [site, count, first[0]["verdicts"], first[0]["rows"], spread(first), spread(following)]
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def spread(rounds: list[dict[str, Any]]) -> str:
    times = [one["seconds"] * 1000 for one in rounds]
    return f"{statistics.median(times):.0f} ({min(times):.0f} - {max(times):.0f})"
