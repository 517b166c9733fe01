"""Every stack, on hosts as it needs them: the plan gives a host the components that the stack has, and no other."""

from pathlib import Path
from typing import Any

import pytest
from plan_hosts import SITE

from hadoop_dl import plan
from hadoop_dl.data import stacks, tensorflow_build
from hadoop_dl.data.versions import numbers
from hadoop_dl.plan import model as plan_model
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[2]
SYSTEMS = {
    "el7": ("Red Hat Enterprise Linux 7.9", "2.17"),
    "el8": ("Red Hat Enterprise Linux 8.10", "2.28"),
    "el9": ("Red Hat Enterprise Linux 9.4", "2.34"),
    "el10": ("Red Hat Enterprise Linux 10.0", "2.39"),
}
LOCKS = [
    (name, python)
    for name in stacks.stack_names()
    for python in stacks.load_stack(name).pythons
    if not stacks.load_stack(name).is_built
]
BUILT = [name for name in stacks.stack_names() if stacks.load_stack(name).is_built]


def node(name: str, python: str, gpus: bool) -> dict[str, Any]:
    """A host of the stack's system, as the reader answers: P100 for the toolkits that know no newer one, else T4."""
    stack = stacks.load_stack(name).data
    system, glibc = SYSTEMS[stack["os"][0]]
    major = stack.get("java", ["8"])[0]
    device = "15f8" if float(stack.get("cuda", "8.0")) < 11 else "1eb8"
    return {
        "os": {"short": stack["os"][0], "name": system, "family": "RedHat"},
        "architecture": "x86_64",
        "glibc": glibc,
        "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2", "fma"]},
        "pythons": {python: f"/usr/bin/python{python}"},
        "java": [{"home": f"/usr/lib/jvm/java-{major}", "version": f"{major}.0.21", "major": major}],
        "hadoop": {"distribution": "apache", "home": "/opt/hadoop", "version": "3.3.6", "conf_dir": "/etc/hadoop/conf"},
        "nvidia": {"gpus": [{"vendor": "10de", "device": device}] * 2 if gpus else [], "listed": None},
        "disk_free_mb": {"/opt": 90000},
    }


def planned(
    name: str, python: str, gpus: bool, *groups: str, building: bool = False, **variables: Any
) -> plan_model.Plan:
    values = {**SITE, "deeplearning_request": name, **variables}
    host = invented_hosts.host("host1", groups or ("edge_nodes",), values, node(name, python, gpus))
    return plan.make_plan([host], REPOSITORY, building=building)


@pytest.mark.parametrize(("name", "python"), LOCKS)
def test_a_host_gets_the_components_and_parts_that_its_stack_has(name, python):
    stack = stacks.load_stack(name)
    site_plan = planned(name, python, gpus="cuda" in stack.data)
    assert site_plan.problems == []
    expected = [*(["gpu", "gpu_check"] if "cuda" in stack.data else []), "environment", "deeplearning_command"]
    if stack.data.get("hdfs") or "tensorflowonspark" in stack.data:
        expected.append("hadoop_client")
    if "tensorflowonspark" in stack.data:
        expected.append("tensorflowonspark")
    assert site_plan.hosts["host1"]["needs"] == [*expected, "verify"]
    parts = site_plan.hosts["host1"]["parts"]
    lock = stack.lock(python)
    assert [part for part in ("pip", "tensorflow", "keras", "tensorflowonspark") if lock.component(part)] == parts
    assert ("keras" in parts) == ("keras" in stack.data)


def test_a_stack_without_hadoop_needs_no_hadoop_client():
    bare = {**node("tf2.21-cpu-py311", "3.11", gpus=False), "hadoop": None, "java": []}
    variables = {**SITE, "deeplearning_request": "tf2.21-cpu-py311"}
    site_plan = plan.make_plan([invented_hosts.host("host1", ("data_nodes",), variables, bare)], REPOSITORY)
    assert site_plan.problems == []
    assert site_plan.hosts["host1"]["needs"] == ["environment", "deeplearning_command", "verify"]


@pytest.mark.parametrize(("name", "python"), [lock for lock in LOCKS if "cuda" not in stacks.load_stack(lock[0]).data])
def test_a_cpu_stack_that_is_named_runs_on_a_host_with_gpus_with_a_warning(name, python):
    site_plan = planned(name, python, gpus=True)
    assert site_plan.problems == []
    assert site_plan.hosts["host1"]["stack"]["name"] == name
    assert any(f"{name} is for the CPU" in warning and "the host has GPUs" in warning for warning in site_plan.warnings)


@pytest.mark.parametrize("name", BUILT)
def test_a_stack_that_is_built_is_built_first(name):
    stack = stacks.load_stack(name)
    python = stack.pythons[0]
    [problem] = planned(name, python, gpus="cuda" in stack.data).problems
    assert "playbooks/build_tensorflow.yml" in problem
    version = stack.data["bazel"]
    sources: dict[str, Any] = {
        "tensorflow_build_source": {"file": "http://mirror1:8900/files/tensorflow.bundle", "sha256": "0" * 64},
        "bazel_files": {version: {"file": f"http://mirror1:8900/files/bazel-{version}", "sha256": "0" * 64}},
    }
    site_plan = planned(name, python, "cuda" in stack.data, "edge_nodes", "build_hosts", building=True, **sources)
    assert site_plan.problems == []
    assert site_plan.hosts["host1"]["needs"] == ["tensorflow_build"]
    part = site_plan.hosts["host1"]["build"]
    assert part["version"] == stack.data["tensorflow"]
    assert bool(part["capabilities"]) == bool(part["cuda"]) == ("cuda" in stack.data)
    row = tensorflow_build.tested(part["version"])
    assert row is not None
    assert numbers(row["bazel"]["min"]) <= numbers(part["bazel"])
    assert all(
        tensorflow_build.in_tree(part["version"], feature) for feature in tensorflow_build.FEATURES if part[feature]
    )
    assert tensorflow_build.beyond(part["capabilities"], part["cuda"]["version"]) == []
