"""scripts/bench plan: how long the plan of a thousand hosts takes on the controller, from what they answered to its table.

What the plugin does is measured, without Ansible's own work: inputs, choice, GPU layer, digests of every component, table
and JSON. Each round is a fresh interpreter, once without kept verdicts (the first plan of a site) and once with them (the next
one). What counts is processor time: it is one thread that waits for nothing, and other work on the machine does not count.
The hosts are those of scripts/bench resolve: three operating systems, five models of GPU and none.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from hadoop_dl import plan
from hadoop_dl.plan import model as plan_model
from hadoop_dl.plan import target
from hadoop_dl_dev import measurements, resolver_bench

SITES: dict[str, tuple[Any, ...]] = {
    "constraints, one for all hosts": ({"hdfs": True},),
    "constraints, three, and a name": resolver_bench.REQUESTS,
    "a name, one for all hosts": ("tf1.15-py27-el7",),
}
HEAD = ("requests", "hosts", "verdicts", "rows", "first plan, CPU ms", "next plan, CPU ms")


def host(number: int, requests: tuple[Any, ...]) -> plan_model.Host:
    """A host of the inventory with what its reader answered."""
    node = resolver_bench.node(number)
    node["os"]["name"] = f"Red Hat Enterprise Linux {node['os']['version']}"
    node["kernel"] |= {"running": "5.14.0", "default_boot": "5.14.0", "installed": ["5.14.0"], "headers": ["5.14.0"]}
    node["disk_free_mb"] = {"/opt": 90000}
    node["hadoop"]["home"] = "/opt/hadoop"
    variables = {
        "deeplearning_request": requests[number % len(requests)],
        "mirror_url": "http://mirror1:8900",
        "mirror_mode": "fetch",
        "nvidia_license_accepted": True,
    }
    return plan_model.host_of(f"data{number}", ("data_nodes",), variables, node)


def once(site: str, count: str, verdicts: str) -> None:
    """Print one round as a line of JSON: seconds, rows and new verdicts."""
    target.VERDICTS = Path(verdicts)
    hosts = [host(number, SITES[site]) for number in range(int(count))]
    begin = time.process_time()
    new_plan = plan.make_plan(hosts, target.REPOSITORY)
    new_plan.table()
    json.dumps(new_plan.as_json())
    new_plan.changes()
    seconds = time.process_time() - begin
    print(json.dumps({"seconds": seconds, "rows": len(new_plan.rows), "verdicts": len(target.verdicts().new)}))


def measure(hosts: list[int], rounds: int) -> str:
    """A Markdown table: medians, with the spread in brackets."""
    rows = []
    for site in SITES:
        for count in hosts:
            first, following = [], []
            for _ in range(rounds):
                with tempfile.TemporaryDirectory() as directory:
                    arguments = (site, count, Path(directory, "verdicts.json"))
                    first.append(measurements.fresh_round("plan_bench", *arguments))
                    following.append(measurements.fresh_round("plan_bench", *arguments))
            times = [measurements.spread(sample["seconds"] * 1000 for sample in plans) for plans in (first, following)]
            rows.append((site, count, first[0]["verdicts"], first[0]["rows"], *times))
    return measurements.table(HEAD, rows)
