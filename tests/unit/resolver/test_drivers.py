"""The driver: as new as CUDA and every device need, never older than the card, and one that is newer than the data is no error."""

from typing import Any

import pytest

from hadoop_dl.data import compat
from hadoop_dl.data.stacks import load_stack
from hadoop_dl.resolver import HostProfile, compose, resolve
from hadoop_dl.resolver.gpus import driver_limits
from hadoop_dl.resolver.named_stacks import try_stack

DATA = compat.load()


@pytest.mark.parametrize(
    ("gpu", "driver", "first"),
    [
        ("L40S", "535.54.03", "535.104.05"),
        ("10de:2335", "535.104.05", "550.90.07"),  # H200
        ("10de:233b", "550.90.07", "565.57.01"),  # H200 NVL
        ("10de:2330", "525.60.13", "525.85.05"),  # H100 SXM
        ("B300", "575.57.08", "580.82.07"),
        ("10de:2bb5", "570.124.06", "575.57.08"),  # RTX PRO 6000 Server Edition
        ("B200", "570.86.15", "570.133.20"),
        ("L4", "525.85.12", "525.105.17"),
        # Also in old branches. debian/changelog of nvidia-graphics-drivers, "Added support for the following GPUs".
        ("T4", "410.48", "410.78"),
        ("A10", "455.32.00", "460.73.01"),
        ("10de:20b5", "450.80.02", "470.57.02"),  # A100 PCIe 80GB
        ("10de:20b2", "450.80.02", "450.102.04"),  # A100 SXM4 80GB
    ],
)
def test_a_driver_that_is_older_than_the_card_is_refused(gpu: str, driver: str, first: str) -> None:
    resolution = resolve({"gpu": gpu, "driver": driver}, suggest=False)
    assert resolution.status == "conflict", resolution.stack
    assert f"{first} or newer" in " ".join(resolution.problems)


@pytest.mark.parametrize(
    ("gpu", "tensorflow", "least"),
    [
        ("L40S", "2.15", "535.104.05"),
        ("10de:2335", "2.17", "550.90.07"),
        ("H20", "2.17", "535.161.07"),
        ("H100", "2.15", "535.104.05"),  # from PTX, and the driver must be as new as the toolkit
        ("10de:2330", "2.12", "525.85.05"),
        ("T4", "1.12", "410.78"),
        ("B200", "2.21", "570.133.20"),
        ("GeForce RTX 3090", "2.4", "455"),
        ("A100", "2.15", "525.60.13"),
    ],
)
def test_the_oldest_driver_is_what_cuda_and_the_card_need(gpu: str, tensorflow: str, least: str) -> None:
    request = {"gpu": gpu, "tensorflow": tensorflow, "tensorflow_source": "prebuilt"}
    assert compose(request).stack["driver_min"] == least
    assert resolve({**request, "driver": "384.81"}, suggest=False).status == "conflict"


def test_a_driver_newer_than_the_data_is_a_warning() -> None:
    for request in ({"driver": "635.71.05"}, {"driver_branch": "640"}, {"driver": "640"}):
        resolution = compose({"gpu": "A100", "os": "rhel-9.4", **request})
        assert resolution.ok, resolution.problems
        assert any("newer than this data" in finding.text for finding in resolution.warnings)


@pytest.mark.parametrize("driver", ["635.71.05", "640.10.01"])
def test_a_host_that_runs_a_driver_newer_than_the_data_is_answered_with_a_warning(driver: str) -> None:
    host = HostProfile(os="rhel-9.4", gpus=("10de:20b2",), pythons=("3.11",), driver=driver)
    resolution = compose({"tensorflow": "2.15"}, host)
    assert resolution.ok, resolution.problems
    assert any("newer than this data" in warning.text for warning in resolution.warnings)
    candidate = try_stack(DATA, load_stack("tf2.15-py3-el9"), host)
    assert not candidate.conflicts
    assert not candidate.doubtful


@pytest.mark.parametrize("driver", ["615.71.09", "620.70.06"])
def test_a_branch_whose_packages_were_not_seen_is_judged_and_is_no_default(driver: str) -> None:
    """R620 is a long-term branch (docs.nvidia.com/datacenter/tesla/drivers/620), but its packages for RHEL were not seen."""
    branch = driver[:3]
    for request in ({"driver": driver}, {"driver_branch": branch}):
        answer = compose({"gpu": "A100", "os": "rhel-9.4", **request}, suggest=False)
        assert answer.ok, answer.problems
        assert answer.stack["driver_branch"] == branch
        assert any(
            f"branch {branch} has packages for RHEL 9.4 is not checked" in warning.text for warning in answer.warnings
        )
        assert compose({"gpu": "P100", "os": "rhel-9.4", **request}, suggest=False).status == "conflict"
    assert all("620" not in str(nearest) for nearest in resolve({"gpu": "A100", "driver": "none-such"}).nearest)
    for request in ({"os": "rhel-9.4"}, {"os": "ubuntu-24.04"}, {}):
        assert compose({"gpu": "A100", **request}, suggest=False).stack["driver_branch"] == "580"


def test_a_new_driver_does_not_bring_back_what_ended_before_it() -> None:
    assert compose({"gpu": "P100", "driver": "615.71.05"}, suggest=False).status == "conflict"
    assert compose({"os": "rhel-7.9", "driver_branch": "615"}, suggest=False).status == "conflict"


def test_a_driver_without_packages_for_the_system_is_told_where_it_runs() -> None:
    """It came from a .run file, and nothing installs it again."""
    answer = compose({"os": "rhel-7.9", "driver": "615.71.05"}, suggest=False)
    assert answer.ok
    assert any("no packages for RHEL 7" in warning.text for warning in answer.warnings), answer.warnings


def test_a_cudnn_newer_than_the_data_is_a_warning() -> None:
    resolution = compose({"tensorflow": "2.18", "cudnn": "9.40.1"})
    assert (resolution.status, resolution.stack["cudnn"]) == ("ok", "9.40.1")
    assert any("cuDNN 9.40.1 is newer than this data" in finding.text for finding in resolution.warnings)
    assert compose({"tensorflow": "2.15", "cudnn": "9.40.1"}).status == "conflict"


@pytest.mark.parametrize(("gpu", "system", "branch"), [("K80", "rhel-7.9", "470"), ("K80", "rhel-8.9", "470"), ("P100", "rhel-7.4", "535"), ("P100", "rhel-9.4", "580")])  # fmt: skip
def test_the_branch_is_the_long_term_one_that_still_drives_the_card(gpu: str, system: str, branch: str) -> None:
    assert compose({"gpu": gpu, "os": system}).stack["driver_branch"] == branch


def test_the_driver_that_runs_on_a_host_is_kept_if_it_is_new_enough() -> None:
    host: dict[str, Any] = {"os": "rhel-9.4", "gpus": ("10de:20b2",), "pythons": ("3.11",)}
    answer = compose({"tensorflow": "2.15"}, HostProfile(**host, driver="550.90.07"))
    assert answer.stack["driver_branch"] == "550"
    old = try_stack(DATA, load_stack("tf2.15-py3-el9"), HostProfile(**host, driver="470.57.02"))
    words = "Driver 470.57.02 runs on the host, but 525.60.13 or newer is needed"
    assert any(words in warning.text for warning in old.chosen.warnings)


def test_a_named_stack_needs_the_driver_that_the_hosts_gpus_need() -> None:
    host = HostProfile(os="rhel-9.4", gpus=("10de:26b9",), pythons=("3.11",))
    assert try_stack(DATA, load_stack("tf2.15-py3-el9"), host).driver["driver_min"] == "535.104.05"


def test_the_limits_of_several_gpus_are_those_of_all() -> None:
    limits = driver_limits(DATA, ["10de:15f8", "10de:26b9", "10de:ffff"])
    assert (limits.branch_min, limits.branch_max, limits.first_driver, limits.open_supported) == (
        "520",
        "580",
        "535.104.05",
        False,
    )
    assert driver_limits(DATA, []).branch_max == ""
