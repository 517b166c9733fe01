"""Answers that once were yes and must never be again, and refusals that were wrong."""

from __future__ import annotations

import pytest

from hadoop_dl.resolver import compose, resolve

BLACKWELL = ["B200", "B300", "RTX PRO 6000", "GeForce RTX 5090", "cc=12.0"]


@pytest.mark.parametrize("gpu", BLACKWELL)
@pytest.mark.parametrize("line", ["2.16", "2.17", "2.18", "2.19", "2.20"])
def test_wheels_with_kernels_for_sm_90a_are_refused_on_blackwell(line: str, gpu: str) -> None:
    resolution = resolve({"tensorflow": line, "gpu": gpu, "os": "rhel-9.4"})
    assert resolution.status == "conflict", resolution.stack
    assert all(not request.get("tensorflow", "2.21") < "2.21" for request in resolution.nearest)


@pytest.mark.parametrize("gpu", BLACKWELL)
def test_2_21_on_blackwell_warns_about_xla(gpu: str) -> None:
    resolution = compose({"tensorflow": "2.21", "gpu": gpu, "os": "rhel-9.4"})
    assert resolution.ok
    assert any("jit_compile=False" in finding.text for finding in resolution.warnings)


@pytest.mark.parametrize(
    ("hadoop", "status"),
    [
        ("hdp-2.6.5", "conflict"),
        ("mapr-6.2.0", "conflict"),
        ("mapr-7.0", "conflict"),
        ("cdh-5.5", "unsure"),
        ("hdp-3.1", "ok"),
        ("cdp-7.1", "ok"),
    ],
)
def test_gpus_under_yarn_are_ok_only_where_hadoop_schedules_them(hadoop: str, status: str) -> None:
    assert compose({"hadoop": hadoop, "yarn_gpu": "true"}).status == status


@pytest.mark.parametrize("release", ["3.1.0", "2.1.0", "2.1.1", "2.2.0"])
def test_a_pyspark_that_was_never_published_is_not_offered(release: str) -> None:
    assert compose({"pyspark": release}).status == "conflict"
    offered = compose({"pyspark": release}).nearest
    assert all(request.get("pyspark") != release for request in offered)


@pytest.mark.parametrize(
    "request_",
    [
        {"os": "rhel-10"},
        {"os": "rocky-10.1"},
        {"os": "ubuntu-18.04", "tensorflow": "1.15"},
        {"os": "ubuntu-20.04"},
        {"os": "debian-11"},
        {"os": "sles-15.4"},
        {"os": "amzn-2023"},
        {"os": "amazon-linux-2"},
        {"os": "other glibc=2.39 python=3.12"},
        {"os": "rhel-8.10", "tensorflow": "2.2", "cuda": "10.1", "python": "3.8"},
        {"os": "debian-12", "python": "3.9", "tensorflow": "2.15"},
        {"hadoop": "mapr-6.2.0"},
        {"hadoop": "mapr-7.0.0"},
        {"tensorflow": "1.6", "bazel": "0.11.1", "tensorflow_source": "built"},
        *[
            {"tensorflowonspark": release}
            for release in ("1.0.2", "1.0.8", "1.3.1", "1.3.2", "1.3.3", "2.1.1", "2.1.2")
        ],
    ],
)
def test_what_was_refused_because_the_data_was_too_narrow_fits(request_: dict[str, str]) -> None:
    resolution = compose(request_)
    assert resolution.fits, resolution.problems


def test_a_bazel_that_nobody_checked_is_told() -> None:
    resolution = compose({"tensorflow": "1.6", "bazel": "0.11.1", "tensorflow_source": "built"})
    assert any("0.11.1 is not verified" in finding.text for finding in resolution.warnings)
    assert compose({"tensorflow": "1.6", "bazel": "0.26.1"}).status == "conflict"


def test_cuda_10_0_of_tensorflow_1_15_goes_with_the_cudnn_that_it_was_compiled_with() -> None:
    assert compose({"tensorflow": "1.15", "os": "rhel-7.9"}).stack["cudnn"] == "7.6"
    assert compose({"tensorflow": "1.15", "cudnn": "7.4"}).status == "conflict"


@pytest.mark.parametrize(("tensorflow", "pins"), [("2.15.1", {}), ("2.14.0", {"numpy": "<2"}), ("2.10.1", {"numpy": "<2"}), ("2.4.4", {"protobuf": "<3.21"})])  # fmt: skip
def test_only_limits_that_the_wheel_does_not_state_itself_are_given(tensorflow: str, pins: dict[str, str]) -> None:
    assert compose({"tensorflow": tensorflow}).pins == pins
