"""The node reader and the resolver on recorded hosts: what is read is what decides."""

from __future__ import annotations

from pathlib import Path

import node_reader
import pytest
from trees import TREES, build

from hadoop_dl.resolver import HostFacts, resolve


@pytest.mark.parametrize("name", sorted(TREES))
def test_the_reader_sees_what_the_tree_says(name: str, tmp_path: Path) -> None:
    tree = TREES[name]
    node = node_reader.read(str(build(tmp_path, tree)))
    assert [gpu["device"] for gpu in node["nvidia"]["gpus"]] == list(tree.gpus)
    assert node["nvidia"]["nvswitches"] == tree.nvswitches
    assert len(node["nvidia"]["other_gpus"]) == sum(vendor == "1002" for vendor, _, _ in tree.others)
    assert (node["nvidia"]["driver"], node["nvidia"]["module"]) == (tree.driver, tree.module if tree.driver else None)
    assert ("nouveau" in node["kernel"]["modules"]) is ("nouveau" in tree.modules)
    assert (node["kernel"]["running"] in node["kernel"]["headers"]) is tree.headers
    assert (node["kernel"]["default_boot"] != node["kernel"]["running"]) is tree.pending
    assert node["secure_boot"] is tree.secure_boot
    assert node["cdsw"] is tree.cdsw


@pytest.mark.parametrize(
    ("name", "system", "gpus", "hadoop"),
    [
        ("p100", "rhel-7.9", ("10de:15f8", "10de:15f8"), "cdh-5.16.2"),
        ("h100", "rhel-9.4", ("10de:2330",) * 8, "cdh-5.16.2"),
        ("amd_only", "rhel-9.4", (), "cdh-5.16.2"),
        ("debian", "debian-12", ("10de:1eb8",), "apache-3.3.6"),
    ],
)
def test_the_resolver_takes_its_facts_from_what_was_read(
    name: str, system: str, gpus: tuple[str, ...], hadoop: str, tmp_path: Path
) -> None:
    host = HostFacts.from_node(node_reader.read(str(build(tmp_path, TREES[name]))))
    assert (host.os, host.gpus, host.hadoop) == (system, gpus, hadoop)


@pytest.mark.parametrize(
    ("name", "request_", "words"),
    [
        ("a100_nvswitch", {"tensorflow": "1.15"}, "TensorFlow 1.15.5 runs on Python 3.6 and 3.7, and the host has Python 3.9 and 3.11"),
        ("a100_nvswitch", {"cuda": "10.1"}, "CUDA 10.1 has no code for A100"),
        ("t4", {"python": "2.7"}, "and the host has Python 3.9 and 3.11"),
        ("old_cpu", {"tensorflow": "1.15", "tensorflow_source": "prebuilt"}, "need a CPU with avx"),
        ("p100", {"pyspark": "4.0"}, "Java"),
        ("mixed", {"cdsw": True}, "same make and model of GPU"),
    ],
)  # fmt: skip
def test_a_read_host_refuses_in_its_own_words(
    name: str, request_: dict[str, object], words: str, tmp_path: Path
) -> None:
    host = HostFacts.from_node(node_reader.read(str(build(tmp_path, TREES[name]))))
    resolution = resolve(request_, host)
    assert resolution.status == "conflict"
    assert words in " ".join(resolution.problems)
    assert all(resolve(request, host).ok for request in resolution.nearest)


def test_a_host_with_amd_gpus_only_gets_the_cpu_form(tmp_path: Path) -> None:
    host = HostFacts.from_node(node_reader.read(str(build(tmp_path, TREES["amd_only"]))))
    assert "cuda" not in resolve({}, host).stack
