"""Requests and their answers: what fits, what does not, and in which words."""

from typing import Any

import pytest
from requests_of import accept, refuse

from hadoop_dl.data import compat
from hadoop_dl.resolver import HostProfile, Misuse, compose, resolve
from hadoop_dl.resolver.hosts import system_name

DATA = compat.load()
LINES = DATA.rows("tensorflow", "lines")


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["line"])
def test_every_tested_configuration_resolves_to_itself(line: Any) -> None:
    system = "rhel-8.10" if line["wheel_min_glibc"] == "2.27" else "rhel-7.9"
    stack = accept(tensorflow=line["tested_version"], os=system)
    assert (stack["tensorflow"], stack["cuda"], stack["cudnn"]) == (line["tested_version"], line["cuda"], line["cudnn"])
    assert stack["tensorflow_source"] == "prebuilt"
    assert stack["python"] in line["python_wheels"]
    assert "bazel" not in stack


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["line"])
def test_a_source_build_takes_the_tested_toolchain(line: Any) -> None:
    system = "rhel-8.10" if line["wheel_min_glibc"] == "2.27" else "rhel-7.9"
    if line["cuda"] == "12.5":  # NVIDIA packages nothing newer than 12.4 for RHEL 7, and a build needs the toolkit
        system = "rhel-8.10"
    stack = accept(tensorflow=line["tested_version"], os=system, tensorflow_source="built")
    assert stack["cuda"] == line["cuda"]
    assert stack["cudnn"] == line["cudnn"]
    assert stack["bazel"] == line["bazel"]["tested"] or stack["bazel"] == line["bazel"]["min"]
    assert stack.get("gcc") == (line["compiler"]["version"] if line["compiler"]["name"] == "gcc" else None)


@pytest.mark.parametrize(
    ("request_", "keys", "words"),
    [
        ({"os": "rhel-7.9", "tensorflow": "1.15", "gpu": "A100"}, {"tensorflow", "gpu"}, "TensorFlow 1.15 needs CUDA 10.0; CUDA 10.0 has no code for A100 (compute capability 8.0)"),
        ({"tensorflow": "1.15", "python": "3.11"}, {"tensorflow", "python"}, "Python 3.11 goes with TensorFlow 2.12 to 2.21"),
        ({"tensorflow": "2.21", "os": "rhel-7.9"}, {"tensorflow", "os"}, "need glibc 2.27, but RHEL 7.9 has 2.17"),
        ({"gpu": "P100", "driver_module": "open"}, {"gpu", "driver_module"}, "by the proprietary kernel modules only"),
        ({"gpu": "B200", "driver_module": "proprietary"}, {"gpu", "driver_module"}, "by the open kernel modules only"),
        ({"driver_branch": "470", "driver_module": "open"}, {"driver_branch", "driver_module"}, "driver branch 515 or newer"),
        ({"tensorflow": "1.15", "driver": "384.81"}, {"tensorflow", "driver"}, "needs CUDA 10.0, which needs driver 410.48 or newer"),
        ({"cuda": "11.2", "driver": "440.33.01"}, {"cuda", "driver"}, "needs driver 450.80.02 or newer"),
        ({"gpu": "V100", "cuda": "8.0"}, {"gpu", "cuda"}, "CUDA 8.0 has no code for V100"),
        ({"gpu": "K80", "driver_branch": "510"}, {"gpu", "driver_branch"}, "driven by branches 384 to 470"),
        ({"gpu": "K80,H100"}, {"gpu"}, "H100 (Hopper) is driven by branches 520 to 620; K80 (Kepler) is driven by branches 384 to 470"),
        ({"os": "rhel-7.9", "gpu": "B200"}, {"os", "gpu"}, "B200 goes with TensorFlow 2.21; the wheels of TensorFlow 2.21.0 need glibc 2.27, but RHEL 7.9 has 2.17"),
        ({"gpu": "B200", "python": "2.7"}, {"gpu", "python"}, "The last TensorFlow for Python 2.7 is 2.1 (CUDA 10.1), but B200 needs CUDA 12.8 or newer"),
        ({"gpu": "A100", "cuda": "none"}, {"gpu", "cuda"}, "cuda=none leaves only CPU builds, and those do not use A100"),
        ({"cuda": "13.0"}, {"cuda"}, "No TensorFlow is built for CUDA 13.0; the newest is CUDA 12.5 (TensorFlow 2.18 to 2.21)"),
        ({"cuda": "13.5"}, {"cuda"}, "No TensorFlow is built for CUDA 13.5; the newest is CUDA 12.5"),
        ({"tensorflow": "2.16", "keras": "2.15.0"}, {"tensorflow", "keras"}, "Keras 2 for it is the package tf-keras ~=2.16.0"),
        ({"driver_branch": ">=640", "driver_module": "proprietary"}, {"driver_branch"}, "Nearest known: 610"),
        ({"driver": "620.10.01", "driver_module": "proprietary"}, {"driver", "driver_module"}, "needs driver branch 615 or older"),
        ({"tensorflow": "2.16", "cudnn": "7.6"}, {"tensorflow", "cudnn"}, "runs with cuDNN 8.9"),
        ({"tensorflow": "2.18", "hdfs": "true"}, {"tensorflow", "hdfs"}, "has no HDFS inside"),
        ({"tensorflow": "1.4", "kafka": "true"}, {"tensorflow", "kafka"}, "has no Kafka inside"),
        ({"tensorflow": "1.6", "kafka": "true", "tensorflow_source": "prebuilt"}, {"tensorflow", "kafka", "tensorflow_source"}, "Kafka"),
        ({"tensorflow": "1.15", "keras": "3"}, {"tensorflow", "keras"}, "goes with Keras"),
        ({"tensorflow": "2.0", "tensorflowonspark": "1.4.4"}, {"tensorflow", "tensorflowonspark"}, "is for TensorFlow older than 2.0"),
        ({"tensorflow_package": "tensorflow-gpu", "tensorflowonspark": "2.2.5"}, {"tensorflow_package", "tensorflowonspark"}, "under the package name tensorflow or tensorflow-cpu only"),
        ({"pyspark": "4.0", "java": "8"}, {"pyspark", "java"}, "Java 17 or 21"),
        ({"python": "2.7", "pyspark": "3.5"}, {"python", "pyspark"}, "Spark 3.5 runs on Python 3.8 - 3.13"),
        ({"tensorflowonspark": "1.1.0", "pyspark": "3.0"}, {"tensorflowonspark", "pyspark"}, "hangs on Spark 3.0"),
        ({"tensorflow": "1.15", "bazel": "2.0.0"}, {"tensorflow", "bazel"}, "builds with bazel 0.24.1 to 0.26.1"),
        ({"tensorflow_source": "prebuilt", "bazel": "0.26.1"}, {"tensorflow_source", "bazel"}, "is not built here"),
        ({"tensorflow": "1.15", "cuda": "10.0", "gcc": "9"}, {"cuda", "gcc"}, "CUDA 10.0 accepts gcc up to 7"),
        ({"hadoop": "cdh-5.16", "yarn_gpu": "true"}, {"hadoop", "yarn_gpu"}, "CDH 5.16 is Hadoop 2.6.0"),
        ({"cdsw": "true", "gpu": "P100,V100"}, {"cdsw", "gpu"}, "the same make and model of GPU"),
        ({"cdsw": "1.10", "os": "rhel-8.4"}, {"cdsw", "os"}, "CDSW's packages are for RHEL 7"),
        ({"gpu": "none", "cuda": "10.0"}, {"gpu", "cuda"}, "a build of TensorFlow for CUDA is for hosts with GPUs"),
        ({"gpu": "P100", "tensorflow_package": "tensorflow-cpu"}, {"gpu", "tensorflow_package"}, "does not use P100"),
        ({"keras": "3.12", "tensorflowonspark": "1.4.4"}, {"keras", "tensorflowonspark"}, "Keras 3.12 goes with TensorFlow 2.16 to 2.21"),
    ],
)  # fmt: skip
def test_each_kind_of_clash_has_its_words_its_components_and_its_sources(
    request_: Any, keys: set[str], words: str
) -> None:
    resolution = refuse(**request_)
    conflicts = [conflict for conflict in resolution.conflicts if words in conflict.message]
    assert conflicts, resolution.problems
    assert set(conflicts[0].components) <= keys
    assert conflicts[0].sources
    assert all(source.startswith("https://") for source in conflicts[0].sources)


def test_every_clash_is_said_and_not_only_the_first() -> None:
    resolution = refuse(
        os="rhel-7.9", gpu="P100", tensorflow="1.15", python="3.11", driver="384.81", driver_module="open", keras="3"
    )
    pairs = {frozenset(conflict.components) for conflict in resolution.conflicts}
    assert {
        frozenset({"tensorflow", "python"}),
        frozenset({"tensorflow", "driver"}),
        frozenset({"tensorflow", "keras"}),
        frozenset({"gpu", "driver_module"}),
        frozenset({"driver", "driver_module"}),
    } <= pairs


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"tensorflow": "1.16"}, "There is no TensorFlow 1.16 in this data. Nearest known: 1.15.5 or 2.0.0."),
        ({"tensorflow": "one"}, "'one' is not a version of TensorFlow"),
        ({"tensorflow": ">=3"}, "Nearest known: 2.21.0"),
        ({"tensorflow": ">=2.4,<2.4"}, "No TensorFlow is >=2.4 and <2.4 at once"),
        ({"tensorflow": "<>1"}, "'<>1' is not a version of TensorFlow"),
        ({"python": "3.14"}, "No TensorFlow has wheels for Python 3.14"),
        ({"cuda": "10.7"}, "Nearest known: 10.1 or 11.0"),
        (
            {"os": "rhel-11"},
            "No operating system called rhel-11 is known here. For any other: --os 'other glibc=2.39 python=3.12'. Nearest known: rhel-10",
        ),
        ({"os": "solaris"}, "No operating system called solaris is known here"),
        ({"os": "rhel-7.12"}, "the last release of that line is 7.9"),
        ({"os": "redhad-7.9"}, "Nearest known: "),
        ({"gpu": "P101"}, "Nearest known: P100"),
        ({"gpu": "1002:740f"}, "is not NVIDIA's"),
        ({"hadoop": "cdh-9.9"}, "Nearest known: cdh-6.3"),
        ({"hadoop": "cdx-5.16"}, "Nearest known: cdh-5.16"),
        ({"driver": "41.1"}, "There is no driver 41.1"),
        ({"driver_module": "opne"}, "driver_module is proprietary or open, not opne. Nearest: open"),
        ({"keras": "9"}, "There is no Keras 9"),
        ({"tensorflow": "==1.15.*,==1.14.*"}, "No TensorFlow is ==1.15.* and ==1.14.* at once"),
        ({"tensorflow": "1.15,1.14"}, "No TensorFlow is 1.14 and 1.15 at once. Nearest known: 1.14.0 or 1.15.5"),
        ({"java": "1"}, "There is no Java 1"),
        ({"java": "8,11"}, "No Java is 11 and 8 at once"),
        (
            {"gpu": "GeForce RTX 9999"},
            "No GPU called GeForce RTX 9999 is in compat/gpu_devices.yml. If you know its compute capability, give it: --gpu cc=8.6",
        ),
        ({"gpu": "A999"}, "No GPU called A999"),  # four hexadecimal digits are a name as well
        ({"gpu": "cc=9.9"}, "The compute capability 9.9 is not in compat/gpus.yml"),
        ({"gpu": "MIG 1g.5gb"}, "names a slice and not its GPU. Nearest known: A100 MIG 1g.5gb"),
        ({"os": "other glibc=2.39"}, "other needs its glibc and its Python"),
        ({"pyspark": "3.1.0"}, "There is no PySpark 3.1.0"),
        ({"gpu": "P 100"}, "Nearest known: P100"),
        ({"gpu": "10de:ffff"}, "Nearest known: "),
        ({"gpu": "AMD Instinct MI250"}, "AMD Instinct MI250 is not NVIDIA's"),
        ({"hadoop": "cdsw"}, "CDSW is requested with cdsw=true"),
    ],
)
def test_what_does_not_exist_is_a_conflict_with_the_nearest_known(request_: Any, words: str) -> None:
    resolution = refuse(**request_)
    assert words in " ".join(resolution.problems)
    assert request_ not in resolution.nearest
    assert resolution.conflicts[0].sources or set(request_) <= {"os", "gpu"}
    assert resolution.nearest or set(request_) <= {"os", "gpu", "hadoop"}  # hardware and systems are never replaced


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"spark": "3.0"}, "Did you mean pyspark?"),
        ({"tensorflow": 1.1}, "YAML reads 1.10 as 1.1"),
        ({"tensorflow": "1." + "9" * 4301}, "tensorflow must have at most 200 characters but has 4303"),
        ({"numpy": "1.26"}, "numpy is decided by pip"),
        ({"mig": "true"}, "A slice of a GPU is named with the GPU"),
    ],
)
def test_misuse_is_no_conflict(request_: Any, words: str) -> None:
    with pytest.raises(Misuse, match=words.replace("?", r"\?")):
        resolve(request_)


def test_a_wheel_is_taken_before_a_newer_release_that_would_have_to_be_built() -> None:
    stack = accept(os="rhel-7.9", gpu="P100", tensorflow="1.15", python="2.7", kafka="true")
    assert (stack["tensorflow"], stack["tensorflow_source"]) == ("1.15.0", "prebuilt")


def test_kafka_on_1_6_means_a_source_build_as_in_the_white_paper() -> None:
    stack = accept(os="rhel-7.9", gpu="P100", tensorflow="1.6", python="2.7", kafka=True, hdfs=True, cuda="8.0")
    assert (stack["tensorflow_source"], stack["cuda"], stack["cudnn"], stack["gcc"]) == ("built", "8.0", "6", "4.8")


def test_a_host_without_gpus_gets_the_cpu_form() -> None:
    stack = accept(os="rhel-9.4", gpu="none")
    assert stack["tensorflow_package"] == "tensorflow-cpu"
    assert not {"cuda", "cudnn", "nccl", "driver_min", "driver_branch", "driver_module"} & set(stack)
    read = compose({}, HostProfile(os="rhel-9.4", gpus=()))
    assert read.stack["tensorflow_package"] == "tensorflow-cpu"


def test_components_can_be_left_out() -> None:
    stack = accept(tensorflowonspark="none", keras="none", tensorflow="2.3")
    assert not {"tensorflowonspark", "pyspark", "java", "keras"} & set(stack)


def test_what_only_ptx_can_run_is_a_warning_and_asks_for_a_newer_driver() -> None:
    resolution = compose({"tensorflow": "2.15", "gpu": "H100", "os": "rhel-9.4"})
    assert any("compiles it from PTX 8.0" in finding.text for finding in resolution.warnings)
    old = refuse(tensorflow="2.15", gpu="H100", driver="525.85.12", tensorflow_source="prebuilt")
    assert "needs driver 535.104.05 or newer" in old.problems[0]


def test_what_only_an_unverified_row_is_against_is_unsure_and_neither_refused_nor_ok() -> None:
    resolution = compose({"os": "rhel-9.4", "tensorflow": "2.5"})
    assert (resolution.status, resolution.ok, resolution.fits) == ("unsure", False, True)
    assert any("NVIDIA packages CUDA 11.7" in finding.text for finding in resolution.doubts)


def test_a_doubt_is_avoided_where_nothing_explicit_asks_for_it() -> None:
    assert compose({"os": "rhel-9.4"}).ok
    assert compose({"os": "rhel-9.4", "tensorflow": "<2.6|2.15"}).stack["tensorflow"].startswith("2.15")


UNSURE = [row["os"] for name in ("systems", "releases") for row in DATA.rows("platforms", name) if not row["verified"]]


@pytest.mark.parametrize("system", sorted(set(UNSURE)))
def test_an_operating_system_whose_row_is_not_verified_is_never_a_silent_yes(system: str) -> None:
    name = system_name(next(row for row in DATA.rows("platforms", "releases") if row["os"] == system))
    assert any("is not verified" in finding.text for finding in compose({"os": name}).warnings)


def test_cuda_packages_that_are_not_verified_are_told() -> None:
    resolution = compose({"os": "rhel-9.4", "tensorflow": "2.12"})
    assert any("CUDA 11.8 for RHEL 9.4 is not verified" in finding.text for finding in resolution.warnings)
    by_pip = compose({"os": "rhel-9.4", "tensorflow": "2.15"})
    assert not any("is not verified" in finding.text for finding in by_pip.warnings)


@pytest.mark.parametrize(
    ("release", "pythons"),
    [("rhel-7.6", "2.7"), ("rhel-7.9", "3.6"), ("rhel-8.0", "3.6"), ("rhel-8.4", "3.9"), ("rhel-8.10", "3.12"), ("rhel-8", "3.12")],
)  # fmt: skip
def test_a_minor_release_has_its_own_pythons(release: str, pythons: str) -> None:
    phrase = f"{release.replace('rhel-', 'RHEL ')} has Python"
    own_python = compose({"os": release, "python": pythons, "gpu": "none"})
    assert not [finding.text for finding in own_python.warnings if phrase in finding.text]
    foreign = compose({"os": release, "python": "3.10", "gpu": "none"})
    assert [finding.text for finding in foreign.warnings if phrase in finding.text]


@pytest.mark.parametrize("python", ["2.7", "3.10", "3.13"])
def test_a_python_that_the_system_does_not_have_is_a_warning_older_or_newer(python: str) -> None:
    resolution = compose({"os": "rhel-9.4", "python": python})
    assert resolution.fits
    assert any(
        f"install Python {python} on the hosts from elsewhere" in finding.text for finding in resolution.warnings
    )


def test_where_a_name_is_not_known_the_sources_are_those_of_the_nearest_ones() -> None:
    assert any("red_hat_python" in source for source in refuse(os="rhel-6.10").conflicts[0].sources)
    assert any("spack" in source or "install/source" in source for source in refuse(bazel="0.1").conflicts[0].sources)
    assert refuse(tensorflow="9.9").conflicts[0].sources == ("https://pypi.org/project/tensorflow/2.21.0/#files",)


@pytest.mark.parametrize(
    "request_",
    [
        {"os": "debian-12", "gpu": "B200", "tensorflow": "1.15"},
        {"os": "rhel-7.9", "gpu": "P100,B200", "tensorflow": "2.15"},
        {"os": "rhel-7.9", "gpu": "B200"},
    ],
)
def test_the_nearest_requests_keep_the_hardware_and_the_operating_system(request_: dict[str, str]) -> None:
    for near in refuse(**request_).nearest:
        assert near["os"] == request_["os"]
        assert set(near["gpu"].split(",")) == set(request_["gpu"].split(","))


def test_nvidias_own_build_of_1_15_is_named_where_the_official_one_has_no_code_for_a_gpu() -> None:
    assert "nvidia-tensorflow 1.15.5" in " ".join(refuse(gpu="A100", tensorflow="1.15").problems)
    for gpu, tensorflow in (("A100", "1.4"), ("B200", "1.15"), ("A100", "<2")):
        assert "nvidia-tensorflow" not in " ".join(refuse(gpu=gpu, tensorflow=tensorflow).problems)


def test_a_host_that_was_read_decides_by_what_it_has() -> None:
    host = HostProfile(
        os="rhel-7.9", pythons=("2.7",), glibc="2.17", cpu_features=("sse4_1",), javas=("8",), gpus=("10de:15f8",)
    )
    resolution = compose({"tensorflow": "1.15", "tensorflow_source": "prebuilt"}, host)
    assert any("need a CPU with avx" in problem for problem in resolution.problems)
    assert all("host" not in request for request in resolution.nearest)
    fine = compose(
        {"tensorflow": "1.15"}, HostProfile(os="rhel-7.9", pythons=("2.7",), javas=("8",), gpus=("10de:15f8",))
    )
    assert (fine.stack["python"], fine.stack["java"]) == ("2.7", ["8"])


@pytest.mark.parametrize(
    ("request_", "host", "told"),
    [
        ({"os": "rhel-8.10", "tensorflow": "1.15"}, None, True),
        ({"os": "rhel-7.9", "tensorflow": "1.15"}, None, False),  # glibc 2.17
        ({"os": "rhel-8.10", "gpu": "none", "tensorflow": "1.15", "kafka": "false"}, None, False),
        ({"os": "rhel-8.10", "gpu": "none", "tensorflow": "1.15", "tensorflow_source": "built"}, None, False),
        ({"os": "rhel-8.10", "tensorflow": "2.11", "kafka": "true"}, None, False),
        ({"tensorflow": "1.15"}, None, False),
        ({"tensorflow": "1.15"}, HostProfile(os="rhel-7.9", glibc="2.31"), True),  # what was read counts
    ],
)
def test_the_kafka_reader_of_1_15_is_told_to_need_deepbind_where_glibc_has_threads_of_its_own(
    request_: Any, host: HostProfile | None, told: bool
) -> None:
    resolution = compose(request_, host) if host else resolve(request_)
    assert resolution.ok, resolution.problems
    warnings = [finding for finding in resolution.warnings if "RTLD_DEEPBIND" in finding.text]
    assert bool(warnings) is told
    assert all("observed" in finding.sources and "kafka_train.py" in finding.text for finding in warnings)
