"""YARN gives jobs the GPUs of this host (yarn_gpu): what the ResourceManager says of its NodeManager."""

import pytest

pytestmark = [pytest.mark.part("yarn"), pytest.mark.usefixtures("hdfs_asked")]


def node_of(expected, found):
    """This host's node; what fails here is the answer to each question."""
    assert found["error"] is None, f"The ResourceManager should answer at its web address, but: {found['error']}"
    names = ", ".join(expected["yarn"]["names"])
    assert found["nodes"], (
        f"YARN should have a node of this host, but has none with the name {names}. Start its NodeManager; "
        "if YARN has another name for it, set node_maintenance_node."
    )
    return next((node for node in found["nodes"] if node["state"] == "RUNNING"), found["nodes"][0])


def test_its_nodemanager_runs(expected, answers):
    node = node_of(expected, answers["yarn"])
    assert node["state"] == "RUNNING", (
        f"YARN should have the node {node['name']} RUNNING, but has it {node['state']}. {node['health']}"
    )
    assert node["reports"], (
        f"The NodeManager of {node['name']} should report to the ResourceManager, but has not since it registered. YARN gives it no container, and has "
        "it as LOST after 10 minutes. Restart it."
    )


def test_yarn_offers_every_gpu(expected, answers):
    node = node_of(expected, answers["yarn"])
    expected_gpus = int(expected["yarn"]["gpus"])
    assert node["gpus"] == expected_gpus, (
        f"YARN should offer {expected_gpus} GPUs of {node['name']}, but offers {node['gpus']}. Run playbooks/yarn_gpu.yml, "
        "which names what is missing; if nothing is, look into the NodeManager's log for GpuDiscoverer."
    )


def test_its_node_has_the_label_of_its_plan(expected, answers):
    node = node_of(expected, answers["yarn"])
    expected_label, node_labels = expected["yarn"]["label"], " ".join(node["labels"])
    assert not expected_label or node_labels == expected_label, (
        f"The node {node['name']} should have the node label {expected_label}, but has {node_labels or 'none'}. Run: "
        "ansible-playbook playbooks/yarn_gpu.yml -e apply=all -e yarn_gpu_restart_allowed=true"
    )
