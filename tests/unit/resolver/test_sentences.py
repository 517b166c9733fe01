"""What an answer of scripts/stack says, and that what it says to type works."""

import shlex
from pathlib import Path

import pytest
import yaml
from stack_command import run

REPOSITORY = Path(__file__).resolve().parents[3]


def test_a_name_of_two_gpus_is_asked_back_with_a_command_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run("resolve --os rhel-9.4 --gpu 'GTX 750 Ti' tensorflow=2.15", capsys)
    assert status == 2
    commands = [shlex.split(line, comments=True) for line in output.partition("Which is it?\n")[2].splitlines()[:2]]
    assert [words[:2] for words in commands] == [["scripts/stack", "resolve"]] * 2
    assert all("may mean" not in run(shlex.join(words[1:]), capsys)[1] for words in commands)


@pytest.mark.parametrize(
    "line",
    [
        "resolve --os rhel-7.4 --gpu P100 tensorflow=1.15",
        "resolve --os rhel-7.3 --gpu P100 tensorflow=1.6 kafka=true",
        "resolve --os rhel-9.4 --gpu A100 tensorflow=2.15 python=3.9",
        "resolve --os rhel-9.4 tensorflow=2.11",
        "resolve --os ubuntu-22.04 --gpu A100",
    ],
)
def test_each_step_runs_as_printed_or_is_a_line_of_the_inventory(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    steps = run(line, capsys)[1].partition("Do next")[2].splitlines()[1:]
    assert steps
    for step in (text.strip() for text in steps):
        words = shlex.split(step, comments=True)
        if words and words[0] == "ansible-playbook":
            assert (REPOSITORY / words[3]).is_file(), words
        elif words and words[0] == "scripts/stack":
            assert words[1] == "new"
            assert words[3:5] == ["--stacks", "inventories/SITE/stacks"]
        else:
            assert isinstance(yaml.safe_load(step), dict)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "resolve --os rhel-8.9 --hadoop cdp-7.1.9 --gpu A100 driver=535.183.06 hdfs=true",
            "driver: 525.60.13 or newer: your 535.183.06 stays",
        ),
        (
            "resolve --os rhel-8.9 --gpu H100 tensorflow=2.17 driver=525.147.05",
            "but not H100 NVL (535.104.05). Which is it? Give --gpu the name that nvidia-smi prints.",
        ),
        (
            "resolve --os ubuntu-22.04 --gpu A100",
            "No stack is made for Ubuntu 22.04, and these playbooks install driver and CUDA on RHEL 7, 8 and 9 only. It takes CUDA "
            "as wheels (tensorflow[and-cuda]) and the driver installed by you.",
        ),
        (
            "resolve --os debian-12 --gpu A100 tensorflow=2.10",
            "It takes driver, CUDA and cuDNN installed by you. Without a lock",
        ),
        ("resolve --os ubuntu-22.04 --gpu none", "No stack is made for Ubuntu 22.04. Without a lock"),
        ("resolve --os rhel-7.9 --gpu P100 tensorflow=1.12", "No named stack meets this request. Without a lock"),
        (
            "resolve --gpu B200 driver=570.124.06",
            "1. B200 needs driver 570.133.20 or newer; driver 570.124.06 was requested.",
        ),
        (
            "resolve --os rhel-8.8 --gpu T4 tensorflow=2.16 driver=470.223.02",
            "needs driver 525.60.13 or newer (cuda-compat-12-3, NVIDIA's forward compatibility, is not used);",
        ),
        (
            "resolve --os 'other glibc=2.42 python=3.14'",
            "  An operating system with glibc 2.42 has Python 3.14: install",
        ),
        (
            "resolve --os sles-17 --gpu A100",
            "scripts/stack resolve --os 'other glibc=2.39 python=3.12' --gpu A100  # with what `ldd --version`",
        ),
        (
            "resolve --os plan9-4 --gpu none",
            "Or name it by what it has:\n  scripts/stack resolve --os 'other glibc=2.39 python=3.12' --gpu none  # with what `ldd",
        ),
        (
            "resolve --os rhel --gpu none",
            "  1. Which release of rhel? Nearest known: rhel-7.9, rhel-8.10, rhel-9 or rhel-10.\n",
        ),
        (
            "resolve --gpu GH200 --os rhel-9.4",
            "  1. GH200 is part of an Arm host, but all data is for x86_64.\n",
        ),
        (
            "resolve --os rhel-8.9 --gpu H100 tensorflow=2.15 driver=525.147.05",
            "on Python 3.11, built from source (bazel 6.1.0), CUDA 12.2",
        ),
        (
            "resolve --hadoop apache-3.5.0 --os rhel-9.4 --gpu none java=8",
            "  Apache Hadoop 3.5.0 runs on Java 17, but Spark 3.5 is to run on Java 8 beside it.\n",
        ),
    ],
)
def test_an_answer_says_what_is_missing_and_what_to_type(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run(line, capsys)[1]
    assert words in output
    assert "Nothing else in the request helps" not in output


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("A6000", "GPU: A6000 was taken for RTX A6000 (10de:2230)."),
        ("K40", "GPU: K40 was taken for Tesla K40m (10de:1023) and Tesla K40c (10de:1024)."),
        ("V100", ""),
        ("10de:2230", ""),
        ("Tesla V100-SXM2-16GB", ""),
    ],
)
def test_an_answer_says_which_card_a_short_name_was_taken_for(
    name: str, taken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = run(f"resolve --os rhel-8.8 --gpu '{name}' tensorflow=2.4|2.17", capsys)[1].splitlines()
    assert [line for line in lines if line.startswith("GPU:")] == [taken] * bool(taken)


def test_gpus_that_no_driver_drives_together_may_be_in_different_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    words = "If these GPUs are in different hosts, --inventory or --host name the stack for all of them."
    assert words in run("resolve --os rhel-8.8 --gpu K80 --gpu H100", capsys)[1]
    assert words not in run("resolve --os rhel-7.9 --gpu H200", capsys)[1]


def test_an_answer_says_until_when_its_driver_branch_is_maintained(capsys: pytest.CaptureFixture[str]) -> None:
    assert "branch 580 (until 2028-06)," in run("resolve --os rhel-9.4 --gpu A100", capsys)[1]
    ended = run("resolve --os rhel-7.9 --gpu P100 tensorflow=1.15", capsys)[1]
    assert "branch 470," in ended
    assert "past its end of life" in ended


def test_cuda_that_nvidia_does_not_package_for_rhel_8_is_a_doubt_and_the_form_for_the_cpu_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Clusters that came from RHEL 7 bring the packages of RHEL 7, or the runfile: nobody saw that fail."""
    status, text, _ = run("resolve --os rhel-8.8 --gpu V100 tensorflow=1.15", capsys)
    assert status == 3
    assert "NVIDIA packages CUDA 10.1 to 13.3 for RHEL 8.8: its packages for an older system" in text
    assert "For hosts without GPUs there is tf1.15-cpu-py36-el8." in text
    newer = run("resolve --os rhel-8.8 --gpu A100 tensorflow=1.15", capsys)[1]
    assert "NVIDIA's own build for newer GPUs is nvidia-tensorflow 1.15.5" in newer
