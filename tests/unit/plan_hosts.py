"""Hosts for tests of the plan: a data node of RHEL 7 that lacks only what the playbooks install, and others made from it."""

import copy
from pathlib import Path
from typing import Any

from hadoop_dl import plan
from hadoop_dl.plan import model as plan_model
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]
STACK = "tf1.15-py27-el7"
SITE = {
    "deeplearning_request": STACK,
    "mirror_url": "http://mirror1:8900",
    "mirror_mode": "fetch",
    # The GPU layer has tests of its own: test_gpu_layer.py, test_gpu_request.py.
    **dict.fromkeys(("nvidia_driver_version", "cuda_versions", "cudnn_versions", "nccl_versions"), "none"),
}
NODE: dict[str, Any] = {
    "os": {"short": "el7", "name": "Red Hat Enterprise Linux 7.9"},
    "architecture": "x86_64",
    "glibc": "2.17",
    "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2", "fma"]},
    "pythons": {"2.7": "/usr/bin/python2.7"},
    "java": [{"home": "/usr/lib/jvm/java-11", "version": "11.0.21", "major": "11"}],
    "hadoop": {"distribution": "apache", "home": "/opt/hadoop", "version": "3.3.6", "conf_dir": "/etc/hadoop/conf"},
    "nvidia": {"gpus": [], "listed": ["Tesla P100-PCIE-16GB", "Tesla P100-PCIE-16GB"]},
    "deeplearning": {"current": None, "environments": {}, "receipts": {}},
    "disk_free_mb": {"/opt": 90000},
}


def make_host(
    name: str = "data1", groups: tuple[str, ...] = ("data_nodes",), node: Any = NODE, **variables: Any
) -> plan_model.Host:
    return invented_hosts.host(name, groups, {**SITE, **variables}, node)


def changed_node(**parts: Any) -> dict[str, Any]:
    return {**copy.deepcopy(NODE), **parts}


def el9_node(python: str, **parts: Any) -> dict[str, Any]:
    """A host of RHEL 9 with this Python."""
    system = {
        "os": {"short": "el9", "name": "RHEL 9"},
        "glibc": "2.34",
        "pythons": {python: f"/usr/bin/python{python}"},
    }
    return changed_node(**system, **parts)


def made(*hosts: plan_model.Host, **options: bool) -> plan_model.Plan:
    return plan.make_plan(hosts, REPOSITORY, **options)


def needs(site_plan: plan_model.Plan, name: str = "data1") -> list[str]:
    assert site_plan.problems == []
    return list(site_plan.hosts[name]["needs"])
