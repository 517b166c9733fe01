"""scripts/bench link: playbooks on the demo cluster over slow links to its hosts, and what crosses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl_dev.demo import cluster as demo
from hadoop_dl_dev.demo import nodes
from hadoop_dl_dev.demo.images import REPOSITORY
from hadoop_dl_dev.demo.shell import DemoError, phase, run
from hadoop_dl_dev.demo.tour import BIN, ENVIRONMENT

RELAY = Path(__file__).with_name("link_relay.py")
RUNS = (("site.yml, bare hosts", "site.yml"), ("site.yml, nothing to do", "site.yml"), ("verify.yml", "verify.yml"))
HEAD = "| run | seconds | KB to a host | KB from it | rounds |\n|---|---|---|---|---|"


def measure_links(round_trip: float, rate: float) -> str:
    """A Markdown table: of each run its seconds, and what crossed the link of the data node with the most bytes. round_trip: s; rate: bit/s."""
    base = demo.recorded(demo.DEFAULT_NAME)
    data = {base.addresses[host] for host in base.data_hosts}
    check_bare(base)
    rows = [HEAD]
    for name, playbook in RUNS:
        with phase(name), tempfile.TemporaryDirectory(prefix="b") as directory:
            seconds, links = over_links(base, playbook, round_trip, rate, Path(directory))
        most = max((link for link in links if link["host"] in data), key=lambda link: int(link["up"]))
        sizes = " | ".join(f"{most[way] / 1000:.0f}" for way in ("up", "down"))
        rows.append(f"| {name} | {seconds:.1f} | {sizes} | {most['rounds']} |")
    return "\n".join(rows)


def check_bare(base: demo.Cluster) -> None:
    """The demo's data node runs, without the platform."""
    if nodes.state(base.container("data1")) != "running":
        raise DemoError("the bench needs the demo's hosts without the platform on them. Run scripts/demo up first.")
    current = ("test", "-e", "/opt/deeplearning/current")
    if not subprocess.run(["docker", "exec", base.container("data1"), *current], check=False).returncode:
        raise DemoError("data1 has the platform already. Run make demo-down and scripts/demo up first.")


def over_links(
    base: demo.Cluster, playbook: str, round_trip: float, rate: float, directory: Path
) -> tuple[float, list[dict[str, Any]]]:
    """Seconds, and what each relay recorded. The connections are new ones."""
    record, control = directory / "record", directory / "c"  # an ssh control socket's path must be short
    variables = yaml.safe_load((base.inventory / "group_vars" / "all.yml").read_text(encoding="utf-8"))
    relay = f"{sys.executable} {RELAY} %h %p {round_trip} {rate} {record}"
    arguments = f"{variables['ansible_ssh_common_args']} -o ProxyCommand='{relay}'"
    command = [str(BIN / "ansible-playbook"), "-i", str(base.inventory)]
    command += ["site.yml" if playbook == "site.yml" else f"playbooks/{playbook}"]
    command += ["-e", json.dumps({"ansible_ssh_common_args": arguments})]
    started = time.monotonic()
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**ENVIRONMENT, "ANSIBLE_SSH_CONTROL_PATH_DIR": str(control)},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode:
        raise DemoError(f"{playbook} ended with status {done.returncode}:\n{done.stdout[-3000:]}")
    count = len(os.listdir(control))
    close_connections(control)
    end = time.monotonic() + 10
    while not record.exists() or len(record.read_text(encoding="utf-8").splitlines()) < count:
        if time.monotonic() > end:
            raise DemoError(f"{count} relays must record what crossed them within 10 s of their end, but did not.")
        time.sleep(0.1)
    return seconds, [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]


def close_connections(control: Path) -> None:
    for socket in control.iterdir() if control.exists() else []:
        run("ssh", "-O", "exit", "-o", f"ControlPath={socket}", "none", check=False)
