"""What an answer offers, and the names that it understands: each case was a wrong answer once."""

from pathlib import Path

import pytest

from hadoop_dl.cli.stack import main
from hadoop_dl.data import stacks
from hadoop_dl.data.compat import load
from hadoop_dl.resolver import Resolution, resolve
from hadoop_dl.resolver.hosts import Hadoop, find_hadoop

COPIED = "tf2.15-cpu-py3-el9"


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main(["resolve", *arguments])
    return "".join(capsys.readouterr())


def texts(answer: Resolution) -> str:
    return " ".join([*answer.problems, *(finding.text for finding in answer.warnings)])


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("cdh-7.1.7", "CDP 7.1.7"),
        ("CDH-7.1.9-1.cdh7.1.9.p0.44702451", "CDP 7.1.9"),
        ("cdp-7.1.9-sp1", "CDP 7.1.9"),
        ("cdp-7.1.7.p1000", "CDP 7.1.7"),
        ("cdp-7.1.7-SP2", "CDP 7.1.7"),
        ("cdh-6.3.2", "CDH 6.3.2"),
    ],
)
def test_a_parcel_and_a_service_pack_are_known_by_their_release(name: str, label: str) -> None:
    hadoop = find_hadoop(load(), name)
    assert isinstance(hadoop, Hadoop), hadoop
    assert (hadoop.label, hadoop.hadoop) == (label, "3.0.0" if label.startswith("CDH") else "3.1.1")


@pytest.mark.parametrize(
    ("asked", "offered"),
    [("2.15.2", "2.15"), ("1.15.1", "1.15"), ("2.17.9", "2.17")],
)
def test_a_release_that_does_not_exist_gets_its_own_line_first(asked: str, offered: str) -> None:
    answer = resolve({"tensorflow": asked, "os": "rhel-9.4" if asked > "2" else "rhel-7.9"})
    assert [request["tensorflow"] for request in answer.nearest][0] == offered


@pytest.mark.parametrize("text", ["tf2.15", "TensorFlow-2.15", "v2.15"])
def test_a_tensorflow_may_be_written_with_its_name(text: str) -> None:
    assert resolve({"tensorflow": text, "os": "rhel-9.4"}).name == "tf2.15-py3-el9"


def test_an_offer_says_whether_it_has_a_lock_and_those_with_one_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    answer = printed(capsys, "--os", "rhel-9.4", "--gpu", "none", "tensorflow=2.15", "python=3.12")
    offers = [line for line in answer.splitlines() if line.startswith("  scripts/stack resolve")]
    assert [("# tf" in offer, "# no stack yet" in offer) for offer in offers] == [(True, False), (False, True)], answer


def test_an_offer_invents_no_capability_and_no_hadoop(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, form in ((["--gpu", "Foo 99"], "cc=X.Y"), (["--hadoop", "emr-6.1"], "apache-X.Y.Z")):
        assert f"{arguments[0]} {form}" in printed(capsys, *arguments)
        assert main(["resolve", arguments[0], form]) != 0


@pytest.mark.parametrize("bazel", ["0.19.0", "0.24.1", "0.26.1"])
@pytest.mark.parametrize("line", ["1.9", "1.10", "1.11", "1.12"])
def test_a_bazel_that_no_longer_reads_tools_bazel_rc_builds_no_tensorflow_before_1_13(line: str, bazel: str) -> None:
    """github.com/tensorflow/tensorflow/issues/23398: config value cuda is not defined."""
    assert not resolve({"tensorflow": line, "bazel": bazel}, suggest=False).fits
    assert resolve({"tensorflow": line, "bazel": "0.18.1"}, suggest=False).fits


@pytest.mark.parametrize(
    ("release", "sure"), [("1.10", True), ("1.10.5", True), ("true", True), ("1.12", False), ("99", False)]
)
def test_a_release_of_cdsw_that_nobody_knows_is_named(release: str, sure: bool) -> None:
    answer = resolve({"cdsw": release, "os": "rhel-7.9"}, suggest=False)
    assert answer.ok is sure
    assert ("the last one is 1.10" in texts(answer)) is not sure


def test_the_cuda_of_an_answer_is_the_one_that_its_lock_has(capsys: pytest.CaptureFixture[str]) -> None:
    answer = printed(capsys, "--os", "rhel-9.4", "--gpu", "B200", "tensorflow=2.21")
    assert answer.startswith("tf2.21-cuda12.9-tfos-py311: TensorFlow 2.21.0")
    assert "CUDA 12.9," in answer
    assert "CUDA 12.5" not in answer


@pytest.mark.parametrize("constraint", ["cudnn=9.3", "pyspark=3.3"])
def test_versions_without_a_lock_are_no_sure_answer_for_a_gpu_beyond_their_cuda(constraint: str) -> None:
    """No stack for Blackwell has these. CUDA 12.5 and cuDNN 9.3 of TensorFlow 2.21 end at capability 9.0."""
    name, _, value = constraint.partition("=")
    answer = resolve({"os": "rhel-9.4", "gpu": "B200", "tensorflow": "2.21", name: value}, suggest=False)
    assert answer.status == "unsure"
    assert "CUDA 12.5 ends at capability 9.0, but B200 has 10.0: lock the wheels of CUDA 12.8 or later" in texts(answer)


@pytest.mark.parametrize("java", ["17", "11"])
def test_spark_3_5_runs_on_python_3_12(java: str) -> None:
    answer = resolve({"os": "rhel-10.0", "hadoop": "cdp-7.3.3", "pyspark": "3.5", "java": java}, suggest=False)
    assert answer.fits, answer.problems
    assert answer.stack["python"] == "3.12"
    assert "distutils" in texts(answer)


@pytest.mark.parametrize(("spark", "last", "next_python"), [("3.0", "3.10", "3.11"), ("3.1", "3.10", "3.11"), ("3.2", "3.10", "3.11"), ("3.3", "3.10", "3.11"), ("3.4", "3.12", "3.13")])  # fmt: skip
def test_the_last_python_of_a_spark_is_the_last_that_was_seen_to_run(spark: str, last: str, next_python: str) -> None:
    assert resolve({"pyspark": spark, "python": last}, suggest=False).fits
    assert not resolve({"pyspark": spark, "python": next_python}, suggest=False).fits


def test_a_gpu_newer_than_the_last_driver_of_a_branch_is_no_contradiction() -> None:
    (problem,) = resolve({"os": "rhel-7.9", "gpu": "H200"}, suggest=False).problems
    assert "branches 384 to 550 (up to 550." in problem
    assert "H200 (Hopper) is driven by branches 550 (from 550." in problem


def test_two_systems_are_hosts_of_an_inventory(capsys: pytest.CaptureFixture[str]) -> None:
    assert "For several hosts: --host or --inventory" in printed(capsys, "--os", "rhel-7.9", "--os", "rhel-8.8")


@pytest.mark.parametrize(("text", "words"), [("cml=true", "engine"), ("kerberos=true", "hadoop_login")])
def test_what_is_no_component_but_a_setting_is_explained(
    capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    answer = printed(capsys, text)
    assert words in answer
    assert "Did you mean" not in answer


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site's stacks: `ours` is the project's of RHEL 9, on Debian 12 as well."""
    monkeypatch.setattr(stacks, "_site", [])
    directory = tmp_path / "stacks"
    (directory / "locks").mkdir(parents=True)
    for path, name in ((stacks.DIRECTORY / f"{COPIED}.yml", "ours.yml"), *locks_of_ours()):
        text = path.read_text(encoding="utf-8").replace(COPIED, "ours").replace("os: [el9]", "os: [debian12]")
        (directory / name).write_text(text, encoding="utf-8")
    return directory


def locks_of_ours() -> list[tuple[Path, str]]:
    paths = sorted((stacks.DIRECTORY / "locks").glob(f"{COPIED}*.txt"))
    return [(path, f"locks/{path.name.replace(COPIED, 'ours')}") for path in paths]


def test_the_lock_of_a_sites_stack_is_named_by_its_real_path(capsys: pytest.CaptureFixture[str], site: Path) -> None:
    answer = printed(capsys, "--stacks", str(site), "--os", "debian-12", "--gpu", "none", "tensorflow=2.15", "java=17")
    assert answer.startswith("ours: ")
    assert f"lock: {site}/locks/ours-py3.11.txt" in answer


def test_a_sites_stack_that_contradicts_itself_is_named_with_the_reason(
    capsys: pytest.CaptureFixture[str], site: Path
) -> None:
    path = site / "ours.yml"
    path.write_text(path.read_text(encoding="utf-8").replace('keras: "', 'keras: "3.9.0"  # "'), encoding="utf-8")
    answer = printed(capsys, "--stacks", str(site), "--os", "debian-12", "--gpu", "none", "tensorflow=2.15")
    assert "Your stack ours is passed over:" in answer
    assert "Keras 3.9.0" in answer
