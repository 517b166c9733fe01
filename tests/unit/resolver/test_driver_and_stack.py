"""A driver that runs, or that is named, does not change which stack there is; `resolve` and the plan agree on it."""

import pytest
from agreement import planned

from hadoop_dl.resolver import resolve

A100 = "10de:20b2"
NEW_ENOUGH = [
    ("rhel-8.10", A100, "2.17", "tf2.17-py311", ("525.60.13", "535.183.06", "550.127.05", "615.71.05")),
    ("rhel-7.9", "V100-PCIE-16GB", "1.15", "tf1.15-py36-el7", ("410.104", "418.87.00", "430.50", "440.100")),
]


@pytest.mark.parametrize(
    ("system", "gpu", "tensorflow", "stack", "driver"),
    [(*asked, driver) for *asked, drivers in NEW_ENOUGH for driver in drivers],
)
def test_a_driver_that_is_new_enough_stays_and_is_no_reason_for_another_stack(
    system: str, gpu: str, tensorflow: str, stack: str, driver: str
) -> None:
    answer = resolve({"os": system, "gpu": gpu, "tensorflow": tensorflow, "driver": driver})
    assert (answer.name, answer.status) == (stack, "ok"), answer.problems
    assert answer.lock
    assert answer.stack["driver_branch"] == driver.partition(".")[0]
    site_plan = planned(system, gpu, "", driver, {"tensorflow": tensorflow})
    assert site_plan.hosts["data1"]["stack"]["name"] == stack, site_plan.problems
    assert not any("driver" in problem for problem in site_plan.problems), site_plan.problems
    assert site_plan.hosts["data1"]["gpu"].get("nvidia_driver_version") in (None, "none", "")


@pytest.mark.parametrize("driver", ["", "470.256.02"])
def test_a_kepler_card_gets_the_stack_that_was_made_for_it(driver: str) -> None:
    """Branch 580 of that stack's file is for newer cards; the K80 gets the last branch that drives it."""
    driver_request = {"driver": driver} if driver else {}
    answer = resolve({"os": "rhel-8.10", "gpu": "K80", "tensorflow": "2.11", **driver_request})
    assert (answer.name, answer.stack["driver_branch"]) == ("tf2.11-py39", "470")
    for request in ("tf2.11-py39", {"tensorflow": "2.11"}):
        site_plan = planned("rhel-8.10", "K80", "", driver, request)
        assert not any("driver branch" in problem for problem in site_plan.problems), site_plan.problems
        assert site_plan.hosts["data1"]["stack"]["driver_branch"] == "470"


@pytest.mark.parametrize("text", ["535", "R535", "r535", "nvidia-535", "nvidia-driver-535"])
@pytest.mark.parametrize("name", ["driver_branch", "driver"])
def test_a_branch_that_was_requested_as_nvidia_writes_it_is_the_one_that_is_installed(name: str, text: str) -> None:
    request = {"tensorflow": "2.17", name: text}
    answer = resolve({"os": "rhel-8.10", "gpu": A100, **request})
    assert (answer.name, answer.stack["driver_branch"]) == ("tf2.17-py311", "535")
    site_plan = planned("rhel-8.10", A100, "", "", request)
    assert site_plan.hosts["data1"]["stack"]["driver_branch"] == "535", site_plan.problems


@pytest.mark.parametrize(
    ("driver", "fits"),
    [
        ("375.66", True),  # the driver of CUDA 8.0 and later, of 2017
        ("367.27", False),  # older than CUDA 8.0 needs
        ("387.26", True),
    ],
)
def test_a_driver_between_two_known_branches_is_compared_and_named(driver: str, fits: bool) -> None:
    answer = resolve({"os": "rhel-7.4", "gpu": "P100", "tensorflow": "1.4", "cuda": "8.0", "driver": driver})
    assert answer.fits is fits, answer.problems
    if fits:
        assert answer.status == "ok", answer.doubts
        assert any(f"Driver {driver} is of branch" in warning.text for warning in answer.warnings)


def test_java_may_be_written_as_it_prints_itself() -> None:
    assert resolve({"pyspark": "3.0", "java": "1.8"}).as_json() == resolve({"pyspark": "3.0", "java": "8"}).as_json()
