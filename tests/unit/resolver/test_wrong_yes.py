"""Answers that once were yes and must never be again, and refusals that were wrong."""

import pytest

from hadoop_dl.cli.stack_text import answer_text
from hadoop_dl.data.compat import load
from hadoop_dl.data.stacks import load_stack
from hadoop_dl.resolver import HostProfile, compose, resolve
from hadoop_dl.resolver.named_stacks import try_stack

BLACKWELL = ["B200", "B300", "RTX PRO 6000", "GeForce RTX 5090", "cc=12.0"]


@pytest.mark.parametrize("gpu", BLACKWELL)
@pytest.mark.parametrize("line", ["2.16", "2.17", "2.18", "2.19", "2.20"])
def test_wheels_with_kernels_for_sm_90a_are_refused_on_blackwell(line: str, gpu: str) -> None:
    resolution = resolve({"tensorflow": line, "gpu": gpu, "os": "rhel-9.4"})
    assert resolution.status == "conflict", resolution.stack
    assert all(not request.get("tensorflow", "2.21") < "2.21" for request in resolution.nearest)


@pytest.mark.parametrize(
    ("hadoop", "status"),
    [
        ("hdp-2.6.5", "conflict"),
        ("mapr-6.2.0", "conflict"),
        ("mapr-7.0", "conflict"),
        ("mapr-7.5", "conflict"),
        ("cdh-5.5", "conflict"),  # older than a release whose Hadoop is known to be too old
        ("hdp-2.4.2", "conflict"),
        ("hdp-2.7", "unsure"),
        ("cdp-7.3.3", "ok"),
        ("hdp-3.1", "ok"),
        ("cdp-7.1", "ok"),
    ],
)
def test_gpus_under_yarn_are_ok_only_where_hadoop_schedules_them(hadoop: str, status: str) -> None:
    assert compose({"hadoop": hadoop, "yarn_gpu": "true"}).status == status


def test_a_yes_to_gpus_under_yarn_says_what_is_configured_and_that_nothing_is_isolated() -> None:
    answer = resolve({"hadoop": "cdp-7.1", "yarn_gpu": "true"}, suggest=False)
    assert any("YARN gets yarn.io/gpu in resource-types.xml" in finding.text for finding in answer.warnings)
    assert any("containers are not isolated" in finding.text for finding in answer.warnings)
    without = resolve({"hadoop": "cdp-7.1"}, suggest=False)
    assert not any("configures YARN" in finding.text for finding in without.warnings)


@pytest.mark.parametrize("hadoop", ["mapr", "mapr-4.1", "mapr-6.1", "mapr-7.0"])
def test_mapr_is_no_yes_to_hdfs_and_the_answer_says_what_it_needs(hadoop: str) -> None:
    """TensorFlow registers hdfs and viewfs; MapR's own file system is maprfs."""
    refusal = resolve({"hadoop": hadoop, "hdfs": "true"}, suggest=False)
    assert refusal.status == "conflict"
    assert "maprfs://" in refusal.problems[0]
    for request in ({"hadoop": hadoop}, {"hadoop": hadoop, "hdfs": "false"}):
        answer = resolve(request, suggest=False)
        assert answer.ok
        assert any("maprfs://" in finding.text for finding in answer.warnings)
        assert any("mounted at /mapr/CLUSTER" in finding.text for finding in answer.warnings)
        assert "reads HDFS" not in answer_text(answer, explain=False)
    assert not any("maprfs" in finding.text for finding in resolve({"hadoop": "cdp-7.1"}, suggest=False).warnings)


def test_mapr_does_not_exclude_hdfs_twice() -> None:
    """Another feature of tensorflow-io is not refused with it."""
    assert resolve({"hadoop": "mapr-6.1", "kafka": "true"}, suggest=False).ok


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


def test_keras_is_left_out_where_what_it_requires_has_no_wheel() -> None:
    """PyYAML for Python 3.4 and 3.5: pypi.org/project/PyYAML/5.3.1/#files has wheels for Windows alone."""
    request = {"tensorflow": "1.15", "python": "3.5", "os": "ubuntu-16.04"}
    answer = resolve(request, suggest=False)
    assert (answer.status, answer.stack.get("keras")) == ("ok", None)
    with_keras = resolve({**request, "keras": "2.3.1"}, suggest=False)
    assert with_keras.status == "unsure"
    assert "PyYAML" in with_keras.doubts[0].text


OLD_PROTOBUF = {"protobuf": "<3.21"}
OLD = {**OLD_PROTOBUF, "h5py": "<3", "numpy": "<1.19"}  # with h5py 3 load_model fails, with numpy 1.20 LSTM


@pytest.mark.parametrize(
    ("tensorflow", "pins"),
    [
        *((release, OLD) for release in ("1.14.0", "1.15.0", "2.0.0", "2.1.0")),
        ("1.15.5", OLD_PROTOBUF),  # it states the others in METADATA, as 2.0.4 and 2.1.4 do
        ("2.2.0", {**OLD_PROTOBUF, "numpy": "<1.19"}),  # cannot be imported with a newer one
        ("2.4.4", OLD_PROTOBUF),
        ("2.10.1", {"numpy": "<2"}),
        ("2.14.0", {"numpy": "<2"}),
        ("2.15.1", {}),
    ],
)
def test_only_limits_that_the_wheel_does_not_state_itself_are_given(tensorflow: str, pins: dict[str, str]) -> None:
    assert compose({"tensorflow": tensorflow}).pins == pins


# --- a second audit: each answer was yes; the truth and its source are beside it --------------------------------------


@pytest.mark.parametrize("gpu", ["GH200 480GB", "GB200", "GB300"])
def test_a_card_that_sits_on_an_arm_host_gets_no_wheel_for_x86_64(gpu: str) -> None:
    """A GH200, GB200 or GB300 is on a Grace CPU: docs.nvidia.com/dgx/dgx-gb200-user-guide/hardware.html."""
    answer = resolve({"gpu": gpu, "os": "rhel-9.4"}, suggest=False)
    assert answer.status == "conflict"
    assert "Arm" in " ".join(answer.problems)


@pytest.mark.parametrize(("tensorflow", "python"), [("2.15.0", "3.11"), ("2.14.1", "3.11"), ("2.14.0", "3.11")])
def test_cuda_from_pip_is_not_promised_where_tensorrt_cannot_be_had(tensorflow: str, python: str) -> None:
    """and-cuda of 2.14 requires tensorrt 8.5.3.1, which has no cp311; that of 2.15.0 tensorrt-libs 8.6.1, which PyPI lacks."""
    answer = compose({"tensorflow": tensorflow, "python": python, "os": "debian-12", "gpu": "A100"})
    assert not any("tensorflow[and-cuda]" in warning.text for warning in answer.warnings)


@pytest.mark.parametrize(("gpu", "cudnn", "fits"), [("P100", "9.17.1.4", False), ("V100", "9.28.0.42", False), ("V100", "9.16.0.29", True), ("T4", "9.17.1.4", True)])  # fmt: skip
def test_cudnn_9_17_ended_support_for_cards_before_turing(gpu: str, cudnn: str, fits: bool) -> None:
    """docs.nvidia.com/deeplearning/cudnn, support matrix of 9.17.0."""
    answer = compose({"tensorflow": "2.18", "gpu": gpu, "cudnn": cudnn})
    assert answer.fits is fits, answer.problems


@pytest.mark.parametrize(("pyspark", "python", "fits"), [("2.3.0", "3.7", False), ("2.3.1", "3.7", False), ("2.3.2", "3.7", True), ("2.2.3", "3.6", True), ("2.3.0", "3.6", True)])  # fmt: skip
def test_spark_2_3_runs_on_python_3_7_from_2_3_2_on(pyspark: str, python: str, fits: bool) -> None:
    """SPARK-24739; and PySpark 2.2.3 imports on 3.6 (SPARK-19019)."""
    assert compose({"pyspark": pyspark, "python": python, "tensorflow": "1.15"}).fits is fits


@pytest.mark.parametrize("gpu", BLACKWELL)
def test_a_lock_whose_libraries_have_no_code_for_the_card_is_not_the_answer_and_xla_is_warned_of(gpu: str) -> None:
    """The locks of 2.21 pin CUDA 12.5, whose libraries end at capability 9.0; PTX of the wheel alone does not help them."""
    answer = resolve({"gpu": gpu, "os": "rhel-9.4", "tensorflow": "2.21"})
    assert (answer.name, answer.status) == ("tf2.21-cuda12.9-tfos-py311", "ok"), answer.problems
    assert any("jit_compile=False" in finding.text for finding in answer.warnings)
    host = HostProfile(os="rhel-9.4", gpus=(gpu,), pythons=("3.11",))
    (conflict,) = try_stack(load(), load_stack("tf2.21-py311"), host).conflicts
    assert "its lock has CUDA 12.5" in conflict.message


@pytest.mark.parametrize(
    "hadoop", ["hdp-2.2.9", "hdp-2.4.2", "hdp-2.5.3", "mapr-5.2", "mapr-4.1", "apache-3.5.0", "hdp-2.1"]
)
def test_a_hadoop_of_the_time_of_the_k80_is_answered(hadoop: str) -> None:
    """A release that the data does not have, between or before others, is told and not refused."""
    answer = resolve({"os": "rhel-7.4", "gpu": "K80", "hadoop": hadoop, "tensorflow": "1.15"}, suggest=False)
    assert answer.ok, (answer.problems, answer.doubts)
    words = ("The data on", "is not in this data")
    assert hadoop.startswith("apache") or any(word in warning.text for warning in answer.warnings for word in words)


@pytest.mark.parametrize("hadoop", ["hdp-2.4.2", "hdp-2.1"])
def test_an_old_hadoop_still_schedules_no_gpus(hadoop: str) -> None:
    answer = resolve({"os": "rhel-7.4", "gpu": "K80", "hadoop": hadoop, "yarn_gpu": "true"}, suggest=False)
    assert "is older than HDP 2.6 (Hadoop 2.7.3), and YARN schedules GPUs from Hadoop 3.1.0 on" in answer.problems[0]


@pytest.mark.parametrize("name", ["ubuntu-14.04", "sles-17", "debian-9", "rhel-11"])
def test_another_operating_system_is_never_offered(name: str) -> None:
    answer = resolve({"os": name, "gpu": "V100"})
    assert not answer.nearest
    assert "For any other: --os 'other glibc=" in answer.problems[0]


def test_another_distribution_is_never_offered() -> None:
    answer = resolve({"hadoop": "emr-6.1"})
    assert not answer.nearest
    assert "name the Apache release: --hadoop apache-X.Y.Z" in answer.problems[0]


@pytest.mark.parametrize(("named", "said"), [({"tensorflow": "1.15"}, "TensorFlow 1.15 needs CUDA 10.0"), ({}, "TensorFlow 1.4 needs CUDA 8.0")])  # fmt: skip
def test_a_driver_that_is_too_old_is_compared_with_what_was_asked(named: dict[str, str], said: str) -> None:
    answer = resolve({"os": "rhel-7.4", "gpu": "P100", "driver": "361.93", **named})
    assert answer.problems[0].startswith(said), answer.problems


@pytest.mark.parametrize(
    "request_",
    [{"hadoop": "cdh-9.9"}, {"hadoop": "cdh-9.9", "tensorflow": "1.15"}, {"hadoop": "hdp-2.6", "yarn_gpu": "true"}],
)
def test_another_hadoop_is_never_offered(request_: dict[str, str]) -> None:
    """Nobody changes the cluster's distribution for a TensorFlow."""
    for nearest_request in resolve(request_).nearest:
        assert nearest_request.get("hadoop", request_["hadoop"]) == request_["hadoop"], nearest_request


def test_what_is_offered_is_sure() -> None:
    answer = resolve({"os": "rhel-9.4", "gpu": "A100", "tensorflow": "1.15"})
    assert answer.status == "conflict"
    assert all(resolve(nearest_request, suggest=False).ok for nearest_request in answer.nearest), answer.nearest


def test_a_glibc_that_the_vendor_prints_refuses() -> None:
    """Amazon's page of the toolchain says 2.26, so this is known to fail: docs.amazonaws.cn, al2023, glibc-gcc-and-binutils."""
    answer = resolve({"os": "amzn-2", "tensorflow": "2.21"}, suggest=False)
    assert answer.status == "conflict"
    assert "need glibc 2.27, but Amazon Linux 2 has 2.26" in answer.problems[0]


@pytest.mark.parametrize(
    ("tfos", "package", "fits"),
    [("1.4.2", "tensorflow-gpu", False), ("1.4.3", "tensorflow-gpu", True), ("1.4.2", "tensorflow", True)],
)
def test_a_tensorflowonspark_that_requires_tensorflow_by_name_does_not_bring_a_second_one(tfos, package, fits):
    """METADATA of its wheels on PyPI: beside tensorflow-gpu, pip would install tensorflow as well, into the same files."""
    answer = resolve(
        {"tensorflow": "1.8", "tensorflow_package": package, "tensorflowonspark": tfos, "os": "rhel-7.9"}, suggest=False
    )
    assert answer.ok is fits
    assert fits or "takes TensorFlow under the package name tensorflow only, but this is tensorflow-gpu" in " ".join(
        answer.problems
    )
