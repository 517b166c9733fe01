"""Hosts for the plan's GPU layer."""

import copy
from pathlib import Path
from typing import Any

import plan_hosts

from hadoop_dl import plan
from hadoop_dl.plan import gpu_request
from hadoop_dl.plan import model as plan_model
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]
KERNELS = ["3.10.0-1160.114.2.el7.x86_64", "3.10.0-1160.118.1.el7.x86_64"]
STACK = "tf1.15-py27-el7"
WISH: dict[str, Any] = {
    "nvidia_driver_version": "470.82.01",
    "cuda_versions": ["10.0"],
    "cudnn_versions": [{"version": "7.6.5.32", "cuda": "10.0"}],
    "nccl_versions": [{"version": "2.4.8", "cuda": "10.0"}],
    "nvidia_license_accepted": True,
}
NODE: dict[str, Any] = {
    **plan_hosts.NODE,
    "os": {"id": "rhel", "family": "RedHat", "short": "el7", "name": "Red Hat Enterprise Linux 7.9"},
    "kernel": {"running": KERNELS[0], "default_boot": KERNELS[1], "installed": KERNELS, "modules": []},
    "nvidia": {"gpus": [{"vendor": "10de", "device": "15f8"}] * 2, "listed": None, "driver": None, "installed": None},
    "cuda": {"toolkits": {}, "cudnn": [], "nccl": []},
    "managed": {"cuda": [], "cudnn": [], "nccl": []},
}


def changed(**parts: dict[str, Any]) -> dict[str, Any]:
    """The node with some keys of its parts changed."""
    node = copy.deepcopy(NODE)
    for part, values in parts.items():
        node[part].update(values)
    return node


def host(
    node: dict[str, Any] = NODE, name: str = "data1", groups: Any = ("data_nodes",), **variables: Any
) -> plan_model.Host:
    site = {"deeplearning_request": STACK, "mirror_url": "http://mirror1:8900"}
    return invented_hosts.host(name, groups, {**site, **variables}, node)


def made(*hosts: plan_model.Host, **options: Any) -> plan_model.Plan:
    return plan.make_plan(hosts, REPOSITORY, **options)


def gpu_rows(answer: plan_model.Plan) -> dict[str, plan_model.Row]:
    return {row.component: row for row in answer.rows if row.component in gpu_request.ROLES}


NOTHING = dict.fromkeys(("nvidia_driver_version", "cuda_versions", "cudnn_versions", "nccl_versions"), "none")
ACCEPTED = {"nvidia_license_accepted": True}


def el8(**parts: dict[str, Any]) -> dict[str, Any]:
    """A RHEL 8 host with a T4, as TensorFlow 2.4 and 2.11 want it."""
    node = changed(**parts)
    node |= {"os": {"id": "rhel", "family": "RedHat", "short": "el8", "name": "RHEL 8.10"}, "glibc": "2.28"}
    node["pythons"] = {"3.8": "/usr/bin/python3.8", "3.9": "/usr/bin/python3.9"}
    node["nvidia"] = {**node["nvidia"], "gpus": [{"vendor": "10de", "device": "1eb8"}]}
    return node


def layer(driver: str, cuda: str, cudnn: str) -> dict[str, Any]:
    """The inputs of the roles for these versions."""
    libraries = [{"version": cudnn, "cuda": cuda}]
    return {"nvidia_driver_version": driver, "cuda_versions": [cuda], "cudnn_versions": libraries}


def part(answer: plan_model.Plan) -> dict[str, Any]:
    assert answer.problems == []
    gpu = answer.hosts["data1"]["gpu"]
    return {name: gpu[name] for name in map(gpu_request.variable, gpu_request.ROLES) if name in gpu}
