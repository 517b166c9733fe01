"""A report of an invented site, for the tests, docs/operate/report.png and the figures in docs/operate/report.md: scripts/_run hadoop_dl_dev.report_sample COUNT DIR

Most hosts are as planned. Some are not: unreachable, with a broken GPU, an older environment, another kernel, a damaged file.
"""

import sys
import time
from dataclasses import replace
from pathlib import Path

from hadoop_dl import plan
from hadoop_dl.data import typed
from hadoop_dl.data.host_facts import read_facts
from hadoop_dl.data.report_answers import Answer, Asked, Health, Holder, Outcome, Times
from hadoop_dl.hosts import gpu_use, report, report_files
from hadoop_dl.plan.model import Host, Json, host_of
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]
STACK = "tf2.15-py3-el9"
OLD = "tf2.15-py3-el9-0a1b2c3d4e5f"
NOW = 1795352400  # 2026-11-22 13:00 UTC
DAY = 86400
KERNELS = ("5.14.0-427.18.1.el9_4.x86_64", "5.14.0-362.8.1.el9_3.x86_64")
ECC = (
    "A GPU must have no uncorrected memory errors since its last reset; found GPU 1: 4. Drain the host and reset the GPU "
    "(nvidia-smi -r), or reboot; if they come again, replace the card."
)
XID = (
    "The kernel log must be free of errors of the hardware but has Xid 79 at PCI:0000:3b:00 (GPU has fallen off the bus: RESTART_BM). Words in "
    "capitals are the immediate action of NVIDIA's Xid catalog (docs.nvidia.com/deploy/xid-errors), which explains each."
)
QUESTIONS = ("driver_runs", "gpus_by_driver_as_declared", "ecc_errors", "retired_pages", "xid", "versions_agree")
SITE: Json = {
    "deeplearning_request": STACK,
    "mirror_url": "http://mirror01:8900",
    "mirror_mode": "fetch",
    **dict.fromkeys(("nvidia_driver_version", "cuda_versions", "cudnn_versions", "nccl_versions"), "none"),
}


def node(number: int, gpus: int) -> Json:
    """The answer of a host that lacks only what the playbooks install."""
    cards = [
        {"vendor": "10de", "device": ("1eb8", "20b2")[number % 100 >= 50], "address": f"0000:{place:02x}:00.0"}
        for place in range(gpus)
    ]
    parts = {
        "os": {
            "id": "rhel",
            "name": "Red Hat Enterprise Linux 9.4 (Plow)",
            "version": "9.4",
            "short": "el9",
            "family": "RedHat",
        },
        "architecture": "x86_64",
        "glibc": "2.34",
        "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2", "fma"]},
        "kernel": {"running": KERNELS[0], "default_boot": KERNELS[0], "installed": [KERNELS[0]]},
        "nvidia": {
            "gpus": cards,
            "driver": "580.95.05" if cards else None,
            "module": "proprietary" if cards else None,
            "installed": "580.95.05" if cards else None,
        },
        "pythons": {"3.9": "/usr/bin/python3.9", "3.11": "/usr/bin/python3.11"},
        "java": [{"home": "/usr/lib/jvm/java-17", "version": "17.0.15", "major": "17"}],
        "hadoop": {
            "distribution": "cdh",
            "home": "/opt/cloudera/parcels/CDH/lib/hadoop",
            "version": "3.0.0-cdh6.3.2",
            "conf_dir": "/etc/hadoop/conf",
        },
        "disk_free_mb": {"/opt": 90000},
    }
    return invented_hosts.answer(parts)


def bare_hosts(count: int) -> list[Host]:
    """One edge node and one mirror host in a hundred, the rest data nodes with two GPUs."""
    hosts = []
    for number in range(count):
        group, gpus = {0: ("edge_nodes", 0), 1: ("mirror_host", 0)}.get(number % 100, ("data_nodes", 2))
        name = f"{group.split('_')[0]}{number:04d}"
        variables = {**SITE, **({"gpu_count": 2} if gpus else {})}
        hosts.append(host_of(name, (group,), variables, node(number, gpus)))
    return hosts


def installed(hosts: list[Host]) -> list[Host]:
    """The hosts after site.yml."""
    new_plan = plan.make_plan(hosts, REPOSITORY)
    if new_plan.problems:
        raise SystemExit(new_plan.failure())
    new_hosts = []
    for host in hosts:
        new_host = invented_hosts.after(host, new_plan)
        if new_host.known.deeplearning.current:
            new_host = invented_hosts.altered(
                new_host, lambda answer: answer["deeplearning"]["environments"].update({OLD: {"problem": None}})
            )
        new_hosts.append(new_host)
    return new_hosts


def distorted(number: int, host: Host) -> tuple[Host, Asked]:
    """The host as the report finds it, and what report_facts answered."""
    facts: Json = typed.as_json(host.known)
    is_data_node = "data_nodes" in host.groups
    health: dict[str, tuple[Outcome, str]] = dict.fromkeys(QUESTIONS, ("PASS", "well"))
    if number % 97 == 5:
        message = f"ssh: connect to host {host.name} port 22: No route to host"
        return replace(host, facts=None), Asked(unanswered=message)
    if is_data_node and number % 41 == 7:
        health["ecc_errors"] = ("FAIL", ECC)
    if is_data_node and number % 89 == 12:
        health["xid"] = ("FAIL", XID)
        facts["nvidia"]["gpus"].pop()
    if number % 23 == 9 and facts["deeplearning"]["current"]:
        facts["deeplearning"]["current"] = OLD
    if number % 71 == 15 and facts["deeplearning"]["current"]:
        name = facts["deeplearning"]["current"]
        facts["deeplearning"]["environments"][name]["problem"] = "lib/python3.11/site-packages/six.py is missing"
    if number % 37 == 8:
        facts["kernel"] |= {"running": KERNELS[1], "default_boot": KERNELS[0]}
    answers = tuple(Answer(name, outcome, text) for name, (outcome, text) in health.items())
    times = Times(NOW - number % 9 * DAY, NOW - number % 9 * DAY + 300)
    reply = Asked(Health(answers if facts["nvidia"]["gpus"] else None), times)
    return replace(host, facts=read_facts(facts)), reply


def sample(count: int) -> Json:
    """The report of so many hosts."""
    pairs = [distorted(number, host) for number, host in enumerate(installed(bare_hosts(count)))]
    hosts = [host for host, _ in pairs]
    answers = {host.name: answer for host, answer in pairs}
    new_plan = plan.make_plan(hosts, REPOSITORY, grouped=False)
    site_report = report.make_report(hosts, answers, new_plan, {}, NOW, ["inventories/mysite"])
    holders = [
        Holder(f"application_1795350000000_{number:04d}", user, queue, gpus, ("data0002",))
        for number, user, queue, gpus in (
            (7, "anna", "vision", 2),
            (9, "bob", "default", 1),
            (12, "carol", "vision", 4),
        )
    ]
    before = {holders[0].id: NOW - 3 * 3600}
    rows = [gpu_use.row(one, busy, ["data0002"], before, NOW) for one, busy in zip(holders, (0, 0, 4), strict=True)]
    return {**site_report, "applications": rows}


def main() -> None:
    count, directory = int(sys.argv[1]), Path(sys.argv[2])
    site_report = sample(count)
    begin = time.process_time()
    report_files.write(site_report, directory)
    seconds = time.process_time() - begin
    print(f"{count} hosts: {seconds:.2f} s of processor time to write")
    for path in sorted(directory.iterdir()):
        print(f"  {path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
