"""scripts/bench link: playbooks on the demo cluster over slow links to its hosts, and what crosses them."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl_dev import demo_hosts, measurements
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.shell import DemoError, phase

RELAY = Path(__file__).with_name("link_relay.py")
ROUND_TRIP, RATE = 0.1, 10e6  # seconds, and bit/s of each host's link
RUNS = (
    ("site.yml, bare hosts", "site.yml"),
    ("site.yml, nothing to do", "site.yml"),
    ("verify.yml", "playbooks/verify.yml"),
)


def measure() -> str:
    """A Markdown table: of each run its seconds, and what crossed the link of the data node with the most bytes."""
    base = demo_hosts.cluster(installed=False)
    data_addresses = {base.addresses[host] for host in base.data_hosts}
    rows = []
    for name, playbook in RUNS:
        with phase(name), tempfile.TemporaryDirectory(prefix="b") as directory:
            seconds, links = over_links(base, playbook, Path(directory))
        most = max((link for link in links if link["host"] in data_addresses), key=lambda link: int(link["up"]))
        sizes = [f"{most[way] / 1000:.0f}" for way in ("up", "down")]
        rows.append((name, f"{seconds:.1f}", *sizes, most["rounds"]))
    return measurements.table(("run", "seconds", "KB to a host", "KB from it", "rounds"), rows)


def over_links(base: Cluster, playbook: str, directory: Path) -> tuple[float, list[dict[str, Any]]]:
    """Seconds, and what each relay recorded. The connections are new ones."""
    record, control = directory / "record", directory / "c"  # an ssh control socket's path must be short
    variables = yaml.safe_load((base.inventory / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    relay = f"{sys.executable} {RELAY} %h %p {ROUND_TRIP} {RATE} {record}"
    arguments = f"{variables['ansible_ssh_common_args']} -o ProxyCommand='{relay}'"
    began = measurements.now()
    extra = json.dumps({"ansible_ssh_common_args": arguments})
    demo_hosts.play(base.inventory, playbook, "-e", extra, control=control)
    seconds = measurements.since(began).wall
    count = len(list(control.iterdir()))
    demo_hosts.close_connections(control)
    end = time.monotonic() + 10
    while not record.exists() or len(record.read_text(encoding="utf-8").splitlines()) < count:
        if time.monotonic() > end:
            raise DemoError(f"{count} relays must record what crossed them within 10 s of their end, but did not.")
        time.sleep(0.1)
    return seconds, [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
