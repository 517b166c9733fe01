"""GPUs and operating systems by every name that people use."""

from __future__ import annotations

from typing import Any

import pytest

from hadoop_dl.data import compat, host_facts
from hadoop_dl.resolver import Resolution, compose, resolve
from hadoop_dl.resolver.gpus import Gpu, find_gpu

DATA = compat.load()


def refuse(**request: Any) -> Resolution:
    resolution = resolve(request)
    assert resolution.status == "conflict", resolution.stack
    return resolution


@pytest.mark.parametrize(
    "name",
    [
        "P100",
        "p100",
        "Tesla P100-PCIE-16GB",
        "NVIDIA Tesla P100",
        "10de:15f8",
        "15f8",
        "0x15f8",
        "P100-SXM2",
        "NVIDIA Corporation GP100GL [Tesla P100 PCIe 16GB] (rev a1)",  # as lspci prints it
    ],
)
def test_a_gpu_is_known_by_every_name_that_people_use(name: str) -> None:
    assert refuse(gpu=name, driver_module="open").conflicts[0].message.startswith("P100 (Pascal)")


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-40GB", "NVIDIA A100 80GB PCIe", "a100", "A100-SXM-80GB"])
def test_an_a100_is_not_an_a10(name: str) -> None:
    assert "A100 (compute capability 8.0)" in refuse(gpu=name, tensorflow="1.15").problems[0]


def test_a_name_of_several_generations_is_not_taken_for_one_of_them() -> None:
    assert (
        "may mean any of several GPUs. Nearest known: Quadro RTX 6000, Quadro RTX 8000 or RTX 6000 Ada"
        in refuse(gpu="RTX 6000").problems[0]
    )


@pytest.mark.parametrize(
    ("name", "cc"),
    [
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("GeForce GTX 1080", "6.1"),
        ("NVIDIA GeForce RTX 3090", "8.6"),
        ("RTX A6000", "8.6"),
        ("10de:2230", "8.6"),
        ("TITAN V", "7.0"),
        ("10de:2336", "9.0"),
        ("L2", "8.9"),
    ],
)
def test_workstation_and_other_cards_are_known_by_name_and_by_id(name: str, cc: str) -> None:
    found = find_gpu(DATA, name)
    assert isinstance(found, Gpu)
    assert found.cc == cc


def test_a_gpu_of_which_only_the_capability_is_known_is_answered_with_a_warning() -> None:
    resolution = compose({"gpu": "cc=8.6", "os": "rhel-9.4"})
    assert resolution.ok
    assert any("only the compute capability is known" in finding.text for finding in resolution.warnings)
    read = host_facts.Gpu("10de", "ffff", compute_cap="9.0")
    assert compose({}, host_facts.HostProfile(gpus=(read.name,))).ok


@pytest.mark.parametrize("name", ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 MIG 3g.20gb"])
def test_a_slice_has_the_capability_of_its_gpu_and_a_warning_where_it_is_scheduled(name: str) -> None:
    assert "A100 (compute capability 8.0)" in refuse(gpu=name, tensorflow="1.15").problems[0]
    resolution = compose({"gpu": name, "yarn_gpu": "true", "hadoop": "cdp-7.1"})
    assert any("slices (MIG)" in finding.text for finding in resolution.warnings)


@pytest.mark.parametrize(("name", "called"), [("NVIDIA A16", "A16"), ("A2", "A2"), ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000")])  # fmt: skip
def test_a_gpu_is_called_as_it_was_named(name: str, called: str) -> None:
    assert called in refuse(gpu=name, tensorflow="1.4").problems[0]


@pytest.mark.parametrize(
    "name",
    [
        "rhel-7.9",
        "rhel7",
        "RHEL 7.9",
        "el7",
        "centos-7",
        "redhat-7.6",
        "ol7.9",
        "oracle-linux-7.9",
        "Red Hat Enterprise Linux Server 7.9 (Maipo)",
        "CentOS Linux 7 (Core)",
        "rhel-7.9-x86_64",
    ],
)
def test_an_operating_system_is_known_by_its_names(name: str) -> None:
    assert "has 2.17" in refuse(os=name, tensorflow="2.21").problems[0]
