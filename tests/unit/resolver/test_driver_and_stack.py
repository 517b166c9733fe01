"""A driver that runs, or that is named, does not change which stack there is; `resolve` and the plan agree on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hadoop_dl.plan import make_plan
from hadoop_dl.plan.model import Plan
from hadoop_dl.resolver import resolve
from hadoop_dl_dev import invented_hosts

REPOSITORY = Path(__file__).resolve().parents[3]
PYTHONS = {"rhel-7.9": ("el7", "2.17", ["2.7", "3.6"]), "rhel-8.10": ("el8", "2.28", ["3.6", "3.9", "3.11"])}
DEVICES = {"K80": "102d", "P100": "15f8", "V100": "1db4", "T4": "1eb8", "A100": "20b2"}


def planned(system: str, gpu: str, request: Any, driver: str | None) -> Plan:
    """The plan of one data node of this system, with this card, on which this driver runs (None: none)."""
    short, glibc, pythons = PYTHONS[system]
    nvidia: dict[str, Any] = {"gpus": [{"vendor": "10de", "device": DEVICES[gpu], "address": "0000:3b:00.0"}]}
    if driver:
        nvidia |= {"driver": driver, "installed": driver, "module": "proprietary"}
    parts = {
        "os": {
            "id": "rhel",
            "version": system.partition("-")[2],
            "short": short,
            "name": system,
            "family": "RedHat",
            "major": short[2:],
        },
        "architecture": "x86_64",
        "glibc": glibc,
        "cpu": {"features": ["sse4_1", "sse4_2", "avx", "avx2", "fma"]},
        "pythons": {python: f"/usr/bin/python{python}" for python in pythons},
        "java": [{"home": "/usr/lib/jvm/java", "major": "8"}],
        "nvidia": nvidia,
    }
    variables = {
        "deeplearning_request": request,
        "mirror_url": "http://mirror1:8900",
        "nvidia_license_accepted": True,
        "hadoop_client_hadoop_home": "/opt/hadoop",
    }
    return make_plan([invented_hosts.host("data1", ("data_nodes",), variables, parts)], REPOSITORY)


NAMED = [
    ("rhel-8.10", "A100", "2.17", driver, "tf2.17-py311")
    for driver in ("525.60.13", "535.183.06", "550.127.05", "615.71.05")
] + [
    ("rhel-7.9", "V100", "1.15", driver, "tf1.15-py36-el7")
    for driver in ("410.104", "418.87.00", "430.50", "440.100")
]  # fmt: skip


@pytest.mark.parametrize(("system", "gpu", "tensorflow", "driver", "stack"), NAMED)
def test_a_driver_that_is_new_enough_is_no_reason_for_another_stack(
    system: str, gpu: str, tensorflow: str, driver: str, stack: str
) -> None:
    answer = resolve({"os": system, "gpu": gpu, "tensorflow": tensorflow, "driver": driver})
    assert (answer.name, answer.status) == (stack, "ok"), answer.problems
    assert answer.lock
    assert answer.stack["driver_branch"] == driver.partition(".")[0]


@pytest.mark.parametrize(("system", "gpu", "tensorflow", "driver", "stack"), NAMED)
def test_the_plan_installs_that_stack_and_leaves_the_driver(
    system: str, gpu: str, tensorflow: str, driver: str, stack: str
) -> None:
    site_plan = planned(system, gpu, {"tensorflow": tensorflow}, driver)
    assert site_plan.hosts["data1"]["stack"]["name"] == stack, site_plan.problems
    assert not any("driver" in problem for problem in site_plan.problems), site_plan.problems
    assert site_plan.hosts["data1"]["gpu"].get("nvidia_driver_version") in (None, "none", "")


def test_a_driver_that_is_too_old_is_still_refused() -> None:
    answer = resolve({"os": "rhel-8.10", "gpu": "A100", "tensorflow": "2.17", "driver": "470.57.02"})
    assert answer.status == "conflict"


@pytest.mark.parametrize("driver", [None, "470.256.02"])
def test_a_kepler_card_gets_the_stack_that_was_made_for_it(driver: str | None) -> None:
    """Branch 580 of that stack's file is for newer cards; the K80 gets the last branch that drives it."""
    driver_request = {"driver": driver} if driver else {}
    answer = resolve({"os": "rhel-8.10", "gpu": "K80", "tensorflow": "2.11", **driver_request})
    assert (answer.name, answer.stack["driver_branch"]) == ("tf2.11-py39", "470")
    for request in ("tf2.11-py39", {"tensorflow": "2.11"}):
        site_plan = planned("rhel-8.10", "K80", request, driver)
        assert not any("driver branch" in problem for problem in site_plan.problems), site_plan.problems
        assert site_plan.hosts["data1"]["stack"]["driver_branch"] == "470"


def test_a_branch_that_was_requested_is_the_one_that_is_installed() -> None:
    request = {"tensorflow": "2.17", "driver_branch": "535"}
    answer = resolve({"os": "rhel-8.10", "gpu": "A100", **request})
    assert (answer.name, answer.stack["driver_branch"]) == ("tf2.17-py311", "535")
    site_plan = planned("rhel-8.10", "A100", request, None)
    assert site_plan.hosts["data1"]["stack"]["driver_branch"] == "535", site_plan.problems


def test_without_a_wish_the_branch_is_that_of_the_stack() -> None:
    answer = resolve({"os": "rhel-8.10", "gpu": "A100", "tensorflow": "2.17"})
    assert answer.stack["driver_branch"] == "580"


@pytest.mark.parametrize(
    ("gpu", "driver", "fits"),
    [
        ("P100", "375.66", True),  # the driver of CUDA 8.0 and later, of 2017
        ("P100", "367.27", False),  # older than CUDA 8.0 needs
        ("P100", "387.26", True),
    ],
)
def test_a_driver_between_two_known_branches_is_compared_and_named(gpu: str, driver: str, fits: bool) -> None:
    answer = resolve({"os": "rhel-7.4", "gpu": gpu, "tensorflow": "1.4", "cuda": "8.0", "driver": driver})
    assert answer.fits is fits, answer.problems
    if fits:
        assert answer.status == "ok", answer.doubts
        assert any(f"Driver {driver} is of branch" in warning.text for warning in answer.warnings)


@pytest.mark.parametrize("text", ["R535", "r535", "nvidia-535", "nvidia-driver-535"])
def test_a_branch_may_be_written_as_nvidia_writes_it(text: str) -> None:
    answer = resolve({"os": "rhel-8.10", "gpu": "A100", "tensorflow": "2.17", "driver_branch": text})
    assert answer.stack.get("driver_branch") == "535", answer.problems
    assert resolve({"gpu": "A100", "driver": text}).fits


def test_java_may_be_written_as_it_prints_itself() -> None:
    assert resolve({"pyspark": "3.0", "java": "1.8"}).as_json() == resolve({"pyspark": "3.0", "java": "8"}).as_json()
