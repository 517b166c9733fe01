"""scripts/bench resolve: how long a thousand hosts take, beside reading their facts.

Each round is a fresh interpreter, so that nothing is known from the round before. The hosts are those of a large and untidy
site: five models of GPU and none, three operating systems, four requests, half of which do not fit the host.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

from hadoop_dl.data.compat import load
from hadoop_dl.data.host_facts import HostProfile, read_facts
from hadoop_dl.data.stacks import load_stack
from hadoop_dl.resolver import resolve
from hadoop_dl.resolver.named_stacks import try_stack
from hadoop_dl_dev import invented_hosts, measurements

DEVICES = ("15f8", "1db4", "1eb8", "20b2", "2330")
SYSTEMS = (
    ("rhel", "7.9", ("2.7", "3.6"), "2.17"),
    ("rhel", "8.10", ("3.6", "3.9", "3.11"), "2.28"),
    ("rhel", "9.4", ("3.9", "3.11"), "2.34"),
)
REQUESTS: tuple[Any, ...] = (
    {"hdfs": True},
    {"tensorflow": "2"},
    {"tensorflow": "1.15", "python": "2.7"},
    "tf1.15-py27-el7",
)
HEAD = ("hosts", "kinds", "get a stack", "the data, ms", "the facts, ms", "resolving, ms", "resolving / facts")


def node(number: int) -> dict[str, Any]:
    """A host as the host reader answers; the kinds repeat, addresses do not."""
    system, release, pythons, glibc = SYSTEMS[number % 3]
    gpu = {"vendor": "10de", "device": DEVICES[number % 5], "address": f"0000:{number % 200:02x}:00.0"}
    parts = {
        "os": {"id": system, "version": release, "short": f"el{release[0]}"},
        "architecture": "x86_64",
        "glibc": glibc,
        "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2"]},
        "pythons": {python: f"/usr/bin/python{python}" for python in pythons},
        "java": [{"home": "/usr/lib/jvm/java", "major": "8"}, {"home": "/usr/lib/jvm/java-17", "major": "17"}],
        "hadoop": {"distribution": "cdh", "version": "2.6.0-cdh5.16.2"},
        "nvidia": {"gpus": [gpu] * (number % 4), "driver": "580.95.05", "module": "proprietary"},
    }
    return invented_hosts.answer(parts)


def fits(request: Any, profile: HostProfile) -> bool:
    if isinstance(request, str):
        return not try_stack(load(), load_stack(request), profile).conflicts
    return resolve(request, profile).ok


def once(count: str) -> None:
    """Print one round as a line of JSON: seconds of each step, kinds of hosts, and hosts that get a stack."""
    lines = [json.dumps(node(number)) for number in range(int(count))]
    begin = time.perf_counter()
    resolve({}, suggest=False)
    data = time.perf_counter()
    nodes = [json.loads(text) for text in lines]
    facts = time.perf_counter()
    profiles = [read_facts(answer).profile for answer in nodes]
    kinds = [(number % len(REQUESTS), profile) for number, profile in enumerate(profiles)]
    verdicts = {kind: fits(REQUESTS[kind[0]], kind[1]) for kind in dict.fromkeys(kinds)}
    end = time.perf_counter()
    row = {
        "data": data - begin,
        "facts": facts - data,
        "resolving": end - facts,
        "fits": sum(verdicts[kind] for kind in kinds),
        "kinds": len(verdicts),
    }
    print(json.dumps(row))


def measure(hosts: int, rounds: int) -> str:
    """A Markdown table: medians, and the spread of what counts."""
    results = [measurements.fresh_round("resolver_bench", hosts) for _ in range(rounds)]
    times = [measurements.spread(entry[name] * 1000 for entry in results) for name in ("data", "facts", "resolving")]
    ratio = statistics.median(entry["resolving"] / entry["facts"] for entry in results)
    return measurements.table(HEAD, [(hosts, results[0]["kinds"], results[0]["fits"], *times, f"{ratio:.0f}")])
