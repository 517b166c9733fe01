"""Seeded random requests, answered twice: by `resolve`, by names as on the command line, and by the plan of a host that has all that."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from hadoop_dl.data.compat import load
from hadoop_dl.plan import make_plan
from hadoop_dl.plan.model import Plan
from hadoop_dl.resolver import Resolution, resolve
from hadoop_dl.resolver.constraint_problem import shared_tables
from hadoop_dl.resolver.hosts import find_system
from hadoop_dl.resolver.rules.tensorflow import platform, system_pythons
from hadoop_dl_dev import invented_hosts

Case = tuple[str, str, str, str, dict[str, Any]]
REPOSITORY = Path(__file__).resolve().parents[3]
SYSTEMS = ["rhel-7.4", "rhel-7.9", "rhel-8.6", "rhel-8.10", "rhel-9.0", "rhel-9.2", "rhel-9.4", "debian-12"]
GPUS = {
    "K80": "102d",
    "10de:15f8": "15f8",  # P100 PCIe 16GB
    "V100-PCIE-16GB": "1db4",
    "T4": "1eb8",
    "10de:20b2": "20b2",  # A100 SXM4 80GB
    "A10": "2236",
    "A30": "20b7",
    "L4": "27b8",
    "L40S": "26b9",
    "10de:2330": "2330",  # H100 SXM
    "10de:2335": "2335",  # H200
    "10de:2901": "2901",  # B200
    "GeForce RTX 3090": "2204",
    "none": "",
}
HADOOPS = {
    "": "",
    "cdh-5.16": "2.6.0-cdh5.16.2",
    "cdh-6.3": "3.0.0-cdh6.3.2",
    "cdp-7.1": "3.1.1.7.1.9.0-387",
    "hdp-2.4": "2.7.1.2.4.2.0-258",
    "hdp-2.6": "2.7.3.2.6.5.0-292",
    "hdp-3.1": "3.1.1.3.1.4.0-315",
    "apache-3.3.6": "3.3.6",
}
REQUESTS: list[dict[str, Any]] = [
    {"tensorflow": ">=1"},
    {"tensorflow": "1.4"},
    {"tensorflow": "1.15"},
    {"tensorflow": "1.15", "python": "2.7"},
    {"tensorflow": "1.6", "kafka": "true"},
    {"tensorflow": "2"},
    {"tensorflow": ">=2.4,<2.16", "hdfs": "true"},
    {"tensorflow": "2.11"},
    {"tensorflow": "2.15"},
    {"tensorflow": "2.15", "python": "3.9"},
    {"tensorflow": "2.17"},
    {"tensorflow": "2.21"},
    {"hdfs": "true", "kafka": "true"},
    {"keras": "3"},
    {"tensorflowonspark": "none", "tensorflow": "2"},
    {"tensorflow": "2.12"},
    {"python": "3.11"},
]
DRIVERS = ["", "", "", "410.104", "418.87.00", "430.50", "450.80.02", "470.256.02", "525.60.13", "535.183.06"]
DRIVERS += ["550.127.05", "570.133.20", "580.95.05", "615.71.05"]
# The last branch that drives a card: a host with it and a newer driver does not exist.
LAST = {"K80": 470, "10de:15f8": 580, "V100-PCIE-16GB": 580}


def drawn(count: int, seed: int = 20261123) -> Iterator[Case]:
    chance = random.Random(seed)  # noqa: S311 (no secret)
    for _ in range(count):
        gpu = chance.choice(list(GPUS))
        driver = "" if gpu == "none" else chance.choice(DRIVERS)
        if driver and int(driver.partition(".")[0]) > LAST.get(gpu, 1000):
            driver = ""  # nothing runs there
        yield chance.choice(SYSTEMS), gpu, chance.choice(list(HADOOPS)), driver, chance.choice(REQUESTS)


def named(system: str, gpu: str, hadoop: str, driver: str, request: dict[str, Any]) -> Resolution:
    full_request = {"os": system, "gpu": gpu, **request}
    full_request |= {"hadoop": hadoop} if hadoop else {}
    full_request |= {"driver": driver} if driver else {}
    return resolve(full_request, suggest=False)


def parts(system: str, gpu: str, hadoop: str, driver: str) -> dict[str, Any]:
    """A host as the reader answers: what the vendor of its system ships, this card, this driver, this Hadoop."""
    catalog = shared_tables(load()).catalog
    system_row = find_system(load(), system)
    family, _, release = system.partition("-")
    short = f"el{release[0]}" if family == "rhel" else f"{family}{release}"
    nvidia: dict[str, Any] = {
        "gpus": [{"vendor": "10de", "device": GPUS[gpu], "address": "0000:3b:00.0"}] if GPUS[gpu] else []
    }
    if driver:
        nvidia |= {"driver": driver, "installed": driver, "module": "proprietary"}
    # CDP's parcel is called CDH, as the reader sees it.
    distribution = hadoop.partition("-")[0].replace("cdp", "cdh")
    return {
        "os": {
            "id": family,
            "version": release,
            "short": short,
            "name": system,
            "family": "RedHat" if family == "rhel" else "Debian",
            "major": release.partition(".")[0],
        },
        "architecture": "x86_64",
        "glibc": platform(catalog, system_row)["glibc"],  # type: ignore[arg-type]
        "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2", "fma"]},
        "pythons": {version: f"/usr/bin/python{version}" for version in system_pythons(catalog, system_row)},  # type: ignore[arg-type]
        "java": [{"home": "/usr/lib/jvm/java-8", "major": "8"}],
        "hadoop": {"home": "/opt/hadoop", "version": HADOOPS[hadoop], "distribution": distribution} if hadoop else None,
        "nvidia": nvidia,
    }


def planned(system: str, gpu: str, hadoop: str, driver: str, request: Any, **variables: Any) -> Plan:
    """The plan of one data node that has all that."""
    site = {
        "deeplearning_request": request,
        "mirror_url": "http://mirror1:8900",
        "nvidia_license_accepted": True,
        "hadoop_client_hadoop_home": "/opt/hadoop",
        **variables,
    }
    host = invented_hosts.host("data1", ("data_nodes",), site, parts(system, gpu, hadoop, driver))
    return make_plan([host], REPOSITORY)


def disagreement(case: Case) -> str:
    """What `resolve` and the plan say differently about one case; empty if nothing."""
    answer = named(*case)
    variable_lines = [line for line in answer.next if ": " in line and not line.startswith("deeplearning_request")]
    plan = planned(*case, **{name: value for line in variable_lines for name, value in yaml.safe_load(line).items()})
    part = plan.hosts.get("data1", {})
    stack, python = (part.get("stack") or {}).get("name", ""), part.get("python", "")
    if not (answer.ok and answer.lock):
        said = f"{answer.status} {answer.name} {answer.problems}, but the plan installs {stack} on {python}"
        return "" if plan.problems else said
    if "build_tensorflow.yml" in " ".join(answer.next):
        told = any("build_tensorflow.yml" in problem for problem in plan.problems)
        return "" if told else f"to be built, but {plan.problems}"
    if plan.problems:
        lacks_python = any("Install python" in problem for problem in plan.problems)
        told = lacks_python and any("install Python" in warning.text for warning in answer.warnings)
        return "" if told else f"{answer.name} ok, but the plan: {plan.problems}"
    if (stack, python) != (answer.name, answer.stack["python"]):
        return f"{answer.name} on {answer.stack['python']}, but the plan installs {stack} on {python}"
    return ""
