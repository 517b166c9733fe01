"""scripts/stack as somebody types it: what it prints, and how it ends."""

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stack_command import STACK, run

from hadoop_dl.cli.stack import main, read_constraints, resolve_parser
from hadoop_dl.data import stacks
from hadoop_dl.resolver import compose
from hadoop_dl.resolver.request import COMPONENTS

JSON = [
    "status",
    "stack",
    "lock",
    "versions",
    "pins",
    "next",
    "not_checked",
    "newer",
    "warnings",
    "reasons",
    "conflicts",
    "nearest",
    "which",
]
A100 = "resolve --os rhel-7.9 --gpu A100 tensorflow=1.15"


def answer(line: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(run(f"{line} --format json", capsys)[1])
    return content


def test_a_stack_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stacks, "_site", [])
    (tmp_path / "ours.yml").write_text("name: ours\n")
    status, _, errors = run(f"list --stacks {tmp_path}", capsys)
    assert status == 1
    assert errors.startswith(f"stack: {tmp_path}/ours.yml cannot be used: The key description is missing.")


@pytest.mark.parametrize(
    ("line", "status"),
    [("resolve --os rhel-7.9 --gpu P100 tensorflow=1.15", 0), (A100, 2), ("resolve tensorfow=1.15", 1)],
)
def test_the_command_ends_with_what_it_found(line: str, status: int, tmp_path: Path) -> None:
    completed = subprocess.run([STACK, *shlex.split(line)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.returncode == status, completed.stderr
    assert bool(completed.stdout) is (status != 1)
    assert bool(completed.stderr) is (status == 1)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("resolve tensorfow=1.15", "tensorfow is no component of a request. Did you mean tensorflow?"),
        ("resolve --gpus P100", "Did you mean --gpu?"),
        ("resolve --hadop cdh-5.16", "Did you mean --hadoop?"),
        ("resolve --format xml", "choose from"),
        ("resolve --os", "expected one argument"),
        ("resolve tensorflow", "An argument must be COMPONENT=CONSTRAINT, but one is 'tensorflow'."),
        ("resolve kerass", "Did you mean keras?"),
        ("resolve ''", "COMPONENT=CONSTRAINT"),
        ("resolve tensorflow=", "tensorflow needs a value"),
        ("resolve --gpu ''", "gpu needs a value, but has none. Write for example --gpu A100, or leave gpu out."),
        ("resolve keras=", "Write for example keras=none, or leave keras out."),
        ("resolve bazel=", "Write for example bazel=0.26.1, or leave bazel out."),
        ("resolve kafka=maybe", "kafka must be true or false"),
        ("resolve --os rhel-7.9 os=rhel-8.10", "Give it once"),
        ("resolve --os rhel-7.9 --os rhel-8.10", "--os was given twice, as rhel-7.9 and as rhel-8.10. Give it once."),
        ("show tf9", "none is called 'tf9'"),
        ("resolve hdfs=true hdfs=false", "hdfs was given twice"),
        ("resolve =1.15", "COMPONENT=CONSTRAINT"),
        ("resolv", "resolv is no command. Did you mean resolve?"),
        ("list --all", "unrecognized arguments: --all"),
        ("lock --chekc", "--check"),
        ("lock tf1.15-py27-el", "Did you mean tf1.15-py27-el7?"),
    ],
)
def test_misuse_is_told_with_the_nearest_name_and_ends_with_1(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, output, errors = run(line, capsys)
    assert (status, output) == (1, "")
    assert words in errors
    assert "Traceback" not in errors


def test_a_conflict_has_its_facts_and_a_way_out_that_works(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run(A100, capsys)
    assert status == 2
    assert "1. TensorFlow 1.15 needs CUDA 10.0; CUDA 10.0 has no code for A100 (compute capability 8.0)" in output
    commands = [line.strip().removeprefix("scripts/stack ") for line in output.splitlines() if "scripts/stack" in line]
    commands = [re.sub(" +#.*", "", command) for command in commands]
    assert commands[0] == "resolve --os rhel-7.9 --gpu A100 tensorflow=2.4 cuda=11.0"
    assert all(run(line, capsys)[0] == 0 for line in commands)


def test_sources_are_shown_when_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert "https://" not in run(A100, capsys)[1]
    assert "https://" in run(f"{A100} --explain", capsys)[1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "resolve --os rhel-7.9 --gpu B200 tensorflow=2.21 python=2.7",
            "These requirements conflict: RHEL 7.9, Python 2.7, and B200 or TensorFlow 2.21.",
        ),
        (
            "resolve --os rhel-9.4 --gpu A100 tensorflow=1.15 python=3.11",
            "These requirements conflict: A100, TensorFlow 1.15 and Python 3.11.",
        ),
    ],
)
def test_one_line_over_several_conflicts_counts_what_cannot_stay_together(
    line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(line, capsys)[1].splitlines()[1] == words


def test_a_sentence_goes_on_in_small_letters(capsys: pytest.CaptureFixture[str]) -> None:
    output = run("resolve --os rhel-7.9 --gpu B200 tensorflow=2.21 python=2.7", capsys)[1]
    assert "TensorFlow 2.21; the wheels of TensorFlow 2.21.0 need glibc 2.27, but RHEL 7.9 has 2.17." in output


def test_a_newer_tensorflow_without_a_lock_is_named_with_its_pythons(capsys: pytest.CaptureFixture[str]) -> None:
    output = run("resolve --os rhel-7.4 --gpu P100 tensorflow=1.15", capsys)[1]
    assert (
        "Newer, without a lock: TensorFlow 1.15.5 on Python 3.6 or 3.7 of your own (docs/operate/stacks.md, scripts/stack lock)."
        in output
    )
    assert "Newer" not in run("resolve --os rhel-7.4 --gpu P100 tensorflow=1.15.0", capsys)[1]


def test_an_answer_begins_with_the_stack_and_ends_with_the_next_step(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run("resolve --os rhel-7.4 --gpu P100 tensorflow=1.15", capsys)
    lines = output.splitlines()
    assert (status, lines[0].split(":")[0]) == (0, "tf1.15-py27-el7")
    assert lines[-2].split("  ")[1] == "deeplearning_request: tf1.15-py27-el7"
    assert lines[-1].strip() == "ansible-playbook -i inventories/SITE playbooks/plan.yml"
    assert (STACK.parents[1] / "playbooks" / "plan.yml").is_file()


def test_the_next_step_installs_the_python_that_was_requested(capsys: pytest.CaptureFixture[str]) -> None:
    line = "resolve --os rhel-9.4 --gpu A100 tensorflow=2.15"
    assert answer(f"{line} python=3.11", capsys)["next"][0] == "deeplearning_request: tf2.15-py3-el9"
    second = answer(f"{line} python=3.9", capsys)
    assert (second["versions"]["python"], second["lock"]) == ("3.9", "stacks/locks/tf2.15-py3-el9-py3.9.txt")
    assert second["next"][0] == 'deeplearning_request: {tensorflow: "2.15.1", python: "3.9"}'


def test_the_reasons_are_those_of_the_versions_that_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    body = answer("resolve --os rhel-9.4 --gpu A100 tensorflow=2.15", capsys)
    assert body["versions"]["glibc_min"] == "2.28"
    texts = dict(reason["text"].partition(":")[0].split(" ", 1) for reason in body["reasons"] if ":" in reason["text"])
    versions = {key: value for key, value in body["versions"].items() if isinstance(value, str)}
    assert {key: texts[key] for key in versions} == versions


def test_an_answer_without_a_lock_says_so_and_how_to_make_one(capsys: pytest.CaptureFixture[str]) -> None:
    output = run("resolve --os rhel-7.9 --gpu P100 tensorflow=1.12", capsys)[1]
    assert output.startswith("No named stack meets this request.")
    assert "lock: none" in output
    assert output.splitlines()[-1].strip() == (
        "scripts/stack new tf1.12-py36-el7 --stacks inventories/SITE/stacks --os rhel-7.9 --gpu P100 tensorflow=1.12"
    )


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("resolve tensorflow=1.15", ["give --os", "give --gpu"]),
        ("resolve --os rhel-7.9 tensorflow=1.15", ["give --gpu"]),
        ("resolve --os rhel-7.9 --gpu none tensorflow=1.15", []),
    ],
)
def test_what_was_not_looked_at_is_named(line: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    sentences = [text for text in run(line, capsys)[1].splitlines() if text.startswith("Not checked")]
    assert [word in text for word, text in zip(words, sentences, strict=True)] == [True] * len(words)


def test_a_doubt_has_its_own_word_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run("resolve --os rhel-9.4 tensorflow=2.11", capsys)
    assert (status, output.split(":")[0]) == (3, "Unsure")
    assert answer("resolve --os rhel-9.4 tensorflow=2.11", capsys)["status"] == "unsure"


def test_the_json_of_an_answer_has_these_keys(capsys: pytest.CaptureFixture[str]) -> None:
    content = answer("resolve --os rhel-7.9 --gpu P100 tensorflow=1.15 python=2.7 kafka=true hdfs=true", capsys)
    assert list(content) == JSON
    assert (content["status"], content["conflicts"], content["nearest"]) == ("ok", [], [])
    assert content["stack"] == "tf1.15-py27-el7"
    assert (STACK.parents[1] / content["lock"]).is_file()
    assert content["pins"] == {"protobuf": "<3.21", "h5py": "<3", "numpy": "<1.19"}
    built = answer("resolve --os rhel-7.9 --gpu P100 tensorflow=1.6 python=2.7 kafka=true hdfs=true cuda=8.0", capsys)
    assert built["pins"] == {}  # a build states its own
    assert any(warning["text"].startswith("TensorFlow 1.6 was tested with CUDA 9.0") for warning in built["warnings"])
    assert all(set(warning) == {"text", "sources", "doubt"} for warning in content["warnings"])
    assert all(set(reason) == {"text", "sources"} for reason in content["reasons"])


def test_the_json_of_a_conflict_has_these_keys(capsys: pytest.CaptureFixture[str]) -> None:
    content = answer(A100, capsys)
    assert list(content) == JSON
    assert (content["status"], content["stack"], content["versions"], content["reasons"]) == ("conflict", None, {}, [])
    (conflict,) = content["conflicts"]
    assert list(conflict) == ["components", "message", "sources"]
    assert conflict["components"] == ["gpu", "tensorflow"]
    assert content["nearest"] == [{"os": "rhel-7.9", "gpu": "A100", "tensorflow": "2.4", "cuda": "11.0"}]


def test_misuse_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run("resolve tensorfow=1.15 --format json", capsys)
    assert status == 1
    assert json.loads(output)["status"] == "misuse"
    assert "Did you mean tensorflow?" in json.loads(output)["message"]


def test_explain_gives_each_choice_its_reason_and_its_source(capsys: pytest.CaptureFixture[str]) -> None:
    line = "resolve --os rhel-8.10 --gpu T4 tensorflow=2.11"
    plain_output, explanation = run(line, capsys)[1], run(f"{line} --explain", capsys)[1]
    assert "Why:" not in plain_output
    for key in ("tensorflow", "python", "cuda", "cudnn", "driver_branch", "keras", "tensorflow_io", "pyspark", "java"):
        place = explanation.index(f"\n  {key} ")
        assert "https://" in explanation[place:].splitlines()[2], key


def test_every_component_is_explained_with_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["resolve", "--help"])
    output = capsys.readouterr().out
    for name in COMPONENTS:
        assert re.search(rf"^  {name} +\S", output, re.MULTILINE), name
    assert run("--help", capsys)[0] == 0


def test_a_stack_can_be_shown(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run("show tf2.15-py3-el9", capsys)
    assert status == 0
    assert "lock for Python 3.9: tf2.15-py3-el9-py3.9.txt" in output
    content = json.loads(run("show tf2.15-py3-el9 --format json", capsys)[1])
    assert content["locks"] == {"3.11": "tf2.15-py3-el9-py3.11.txt", "3.9": "tf2.15-py3-el9-py3.9.txt"}
    assert "Did you mean tf2.15-py3-el9?" in run("show tf2.15-py3-el", capsys)[2]


def test_the_list_can_be_asked_for_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    entries = json.loads(run("list --os rhel-7.9 --gpu P100 --format json", capsys)[1])
    assert {stack["name"] for stack in entries} >= {"tf1.15-py27-el7"}
    assert all("el7" in stack["os"] and "cuda" in stack for stack in entries)
    best = json.loads(run("list --os rhel-9.4 --gpu none --format json", capsys)[1])[0]
    assert "cuda" not in best
    status, output, errors = run("list --os rhel-7.9 --gpu B200", capsys)
    assert (status, output) == (2, "")
    assert "No named stack fits" in errors


@pytest.mark.parametrize(
    "gpus",
    ["--gpu P100 --gpu V100", "--gpu V100 --gpu P100", "gpu=P100,V100", "--gpu v100 gpu=15f8", "--gpu 'Tesla V100-SXM2-16GB' --gpu 10de:15f8"],
)  # fmt: skip
def test_several_gpus_in_any_order_and_by_any_name_are_the_same_request(
    gpus: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = answer("resolve --os rhel-7.9 --gpu P100 --gpu V100", capsys)
    assert answer(f"resolve --os rhel-7.9 {gpus}", capsys) == expected
    assert expected["versions"]["driver_module"] == "proprietary"


@pytest.mark.parametrize(
    ("constraint", "version"),
    [
        ("tensorflow=1.1", "1.1.0"),
        ("tensorflow=1.15", "1.15.5"),
        ("tensorflow==1.15.0", "1.15.0"),
        ("tensorflow=1.15.*", "1.15.5"),
        ("'tensorflow>=1.13,<1.15'", "1.14.0"),
        ("'tensorflow>=1.13' 'tensorflow<1.15'", "1.14.0"),
        ("'tensorflow=<1.15, !=1.14.0'", "1.13.2"),
        ("'tensorflow~=2.4.0'", "2.4.4"),
        ("tensorflow=2.15 tensorflow=2.15.0", "2.15.0"),
    ],
)
def test_a_constraint_is_a_prefix_or_a_range(constraint: str, version: str) -> None:
    request = read_constraints(resolve_parser().parse_intermixed_args(shlex.split(constraint)))
    assert compose(request).stack["tensorflow"] == version


def test_the_list_names_every_stack_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = run("list", capsys)
    assert status == 0
    assert "tf1.15-py27-el7      " in output
    assert all(len(line.split()) > 4 for line in output.splitlines())


def test_an_answer_needs_no_more_than_yaml_and_packaging(tmp_path: Path) -> None:
    """A fresh clone answers before the development environment is made."""
    repository = STACK.parents[1]
    clone = tmp_path / "clone"
    for name in ("lib", "compat", "plugins", "stacks", "scripts"):
        shutil.copytree(repository / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    packages = tmp_path / "packages"
    for module in ("yaml", "_yaml", "packaging"):
        place = importlib.util.find_spec(module)
        assert place is not None
        assert place.origin is not None
        shutil.copytree(Path(place.origin).parent, packages / module)
    start = "import runpy, sys; sys.path[:0] = sys.argv[1:3]; del sys.argv[1:3]; runpy.run_module('hadoop_dl.cli.stack', run_name='__main__', alter_sys=True)"
    # -S: no site-packages, so any other package that an answer imports is missing.
    command = [sys.executable, "-S", "-c", start, str(clone / "lib"), str(packages)]
    question = shlex.split("resolve --os rhel-7.4 --gpu P100")
    completed = subprocess.run([*command, *question], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith("tf1.15-py27-el7: ")
