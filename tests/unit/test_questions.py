"""The suite asks each stack what that stack has, in the words of its TensorFlow."""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ansible_programs
import pytest
import yaml
from ansible_programs import REPOSITORY
from deeplearning_edge import package
from resource_manager import ANSWERS, serving, write_settings

from hadoop_dl.data.locks import canonicalize_name
from hadoop_dl.data.questions import distribution, stack_parts
from hadoop_dl.data.stacks import load_stack, stack_names
from hadoop_dl.hosts import host_script, verify

QUESTIONS = REPOSITORY / "roles/verify/files/environment_questions.py"
STACKS = stack_names()
PARTS = ("keras", "tensorflow_io", "tensorflowonspark")


PAIRS = [(name, python) for name in STACKS for python in load_stack(name).pythons]


def locked(name: str, python: str = "") -> dict[str, str]:
    lock = load_stack(name).lock(*filter(None, [python]))
    return {canonicalize_name(entry.project): entry.version for entry in lock.entries}


def ask_suite(directory: Path, *arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inventory = f"--ansible-inventory={directory / 'hosts.yml'}"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # for ansible-inventory
    options = ("-q", "-p", "no:cacheprovider", inventory)
    return ansible_programs.run("pytest", *arguments, *options, PATH=path, **environment)


@pytest.mark.parametrize(("name", "python"), PAIRS)
def test_a_version_is_looked_up_under_the_name_that_the_lock_installs(name, python):
    stack = load_stack(name).data
    expected = {part: stack[part] for part in ("tensorflow", *PARTS) if part in stack_parts(stack)}
    if stack["tensorflow_source"] == "built":  # its wheel comes from the build host and not from an index
        expected["tensorflow"] = None
        assert distribution(stack, "tensorflow") == stack["tensorflow_package"]
    assert {part: locked(name, python).get(distribution(stack, part)) for part in expected} == expected


@pytest.mark.parametrize("name", STACKS)
def test_parts_that_are_not_in_the_lock_are_not_asked_for(name):
    locked_parts = {part for part in PARTS if distribution({}, part) in locked(name)}
    assert stack_parts(load_stack(name).data) & set(PARTS) == locked_parts
    assert ("kafka" in stack_parts(load_stack(name).data)) == ("kafka-python" in locked(name))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    """The questions that pytest collects: for each stack on a data node, on an edge node, and on a host with GPUs."""
    directory = tmp_path_factory.mktemp("inventory")
    kinds = {"data": "data_nodes", "edge": "edge_nodes", "gpus": "cdsw_hosts"}
    groups = {group: {"hosts": {f"{kind}-{name}": {} for name in STACKS}} for kind, group in kinds.items()}
    (directory / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups}}))
    expectations = {
        f"{kind}-{name}": {"stack": load_stack(name).data, "gpu_count": 2 if kind == "gpus" else 0, "parts": []}
        for kind in kinds
        for name in STACKS
    }
    (directory / "expectations.json").write_text(json.dumps(expectations))
    hosts = ",".join(f"ansible://{host}" for host in expectations)
    arguments = (REPOSITORY / "tests/infra", "--collect-only", f"--hosts={hosts}")
    completed = ask_suite(directory, *arguments, VERIFY_EXPECTATIONS=str(directory / "expectations.json"))
    assert completed.returncode == 0, completed.stdout[-3000:] + completed.stderr[-3000:]
    questions: dict[str, list[str]] = {host: [] for host in expectations}
    for line in completed.stdout.splitlines():
        question, _, parameters = line.rpartition("::")[2].partition("[ansible://")
        for host in sorted(questions, key=len, reverse=True):
            if parameters.startswith(host):
                questions[host].append(question + parameters.removeprefix(host).rstrip("]"))
                break
    return questions


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("kind", ["data", "edge"])
def test_only_what_the_stack_has_is_asked(asked, name, kind):
    stack, questions = load_stack(name).data, asked[f"{kind}-{name}"]
    imported = {text.rpartition("-")[2] for text in questions if text.startswith("test_it_can_be_imported")}
    assert imported == {"tensorflow"} | {part for part in (*PARTS, "kafka") if stack.get(part)}
    assert ("test_tensorflow_lists_the_root_of_hdfs" in questions) == bool(stack.get("hdfs"))
    assert ("test_tfos_submit_answers" in questions) == (kind == "edge" and "tensorflowonspark" in stack)
    assert ("test_java_starts" in questions) == bool(stack.get("hdfs") or stack.get("tensorflowonspark"))
    assert "test_tensorflow_multiplies_matrices" in questions


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_for_the_cpu_is_not_asked_for_the_gpus_of_its_host(asked, name):
    questions = asked[f"gpus-{name}"]
    assert ("test_tensorflow_sees_every_gpu" in questions) == ("cuda" in load_stack(name).data)
    assert ("test_tensorflow_convolves_on_the_first_gpu" in questions) == ("cuda" in load_stack(name).data)
    assert "test_tensorflow_computes_on_the_cpu_where_gpus_are_hidden" in questions
    assert "test_cuda_computes_on_every_gpu" in questions


def test_a_namenode_that_does_not_answer_is_named(tmp_path):
    """What libhdfs and `hdfs dfs` said on an edge node of a cluster whose NameNode was stopped."""
    error = "hdfs dfs -test -f hdfs://m:8020/spark.zip ended with status 1: test: Call From e to m:8020 failed: Connection refused"
    home = "/opt/deeplearning/spark/pyspark-3.0.3"
    spark = {"home": home, "version": {"error": None}, "archived": {"error": error}}
    environment_answers = {"hdfs": {"value": None, "error": "NotFoundError: Could not find directory hdfs://m:8020/"}}
    (tmp_path / "hosts.yml").write_text("all: {children: {edge_nodes: {hosts: {e: {}}}}}")
    answers = verify.answer_file(tmp_path, "e")
    answers.parent.mkdir()
    answer = {"seal": None, "spark": spark, "inside": environment_answers, "unanswered": {}, "hdfs_unasked": ""}
    answers.write_text(json.dumps(answer))
    questions = ["test_hdfs.py", "test_tensorflowonspark.py::test_sparks_jars_are_in_hdfs_where_spark_is_ours"]
    paths = [f"{REPOSITORY}/tests/infra/{question}" for question in questions]
    junit = f"--junitxml={tmp_path / 'junit.xml'}"
    ask_suite(tmp_path, *paths, junit, "--hosts=ansible://e", VERIFY_ANSWERS=str(tmp_path))
    outcomes = {result.test: (result.outcome, result.message) for result in verify.results(tmp_path / "junit.xml")}
    assert outcomes == {
        "test_tensorflow_lists_the_root_of_hdfs": (
            verify.FAILED,
            f"TensorFlow should read HDFS through libhdfs, but says: {environment_answers['hdfs']['error']}",
        ),
        "test_sparks_jars_are_in_hdfs_where_spark_is_ours": (
            verify.FAILED,
            f"{error}. If HDFS answers, run: ansible-playbook site.yml -e apply=all",
        ),
    }


RUNS, OFFERS, LABEL = ABOUT_YARN = (
    *("test_its_nodemanager_runs", "test_yarn_offers_every_gpu", "test_its_node_has_the_label_of_its_plan"),
)
# Hadoop 3.3.6's answers have data1 that leaves, data2 that runs and retired1. Each GPU of data2 is added in the form of test_tfos_gpus.py's.
OF_YARN: dict[str, tuple[str, int, int, str, dict[str, str]]] = {
    "every GPU": ("data2", 2, 2, "", {}),
    "no GPU, and none is promised": ("data2", 0, 0, "", {}),
    "another label": ("data2", 2, 2, "gpu", {LABEL: "data2 should have the node label gpu, but has none. Run"}),
    "fewer": ("data2", 1, 2, "", {OFFERS: "should offer 2 GPUs of data2, but offers 1. Run playbooks/yarn_gpu.yml"}),
    "it leaves": ("data1", 0, 0, "", {RUNS: "should have the node data1 RUNNING, but has it DECOMMISSIONING"}),
    "no node": ("data9", 0, 0, "", dict.fromkeys(ABOUT_YARN, "has none with the name data9")),
}


@pytest.mark.parametrize(("default", "root"), [("hdfs://one", "hdfs://one/"), ("maprfs:///", "/mapr/one/")])
def test_the_root_of_the_file_system_is_listed_where_tensorflow_reads_it(tmp_path, monkeypatch, default, root):
    write_settings(tmp_path / "core-site.xml", {"fs.defaultFS": default})
    (tmp_path / "clusters").write_text("one secure=true n1:7222\n", "utf-8")
    gfile = SimpleNamespace(listdir=lambda path: [path])
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(io=SimpleNamespace(gfile=gfile)))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    questions = runpy.run_path(str(QUESTIONS))
    monkeypatch.setitem(questions["hdfs"].__globals__, "MAPR_CLUSTERS", str(tmp_path / "clusters"))
    assert questions["hdfs"]() == [root]


@pytest.mark.parametrize(("name", "offered", "promised", "label", "failures"), OF_YARN.values(), ids=OF_YARN)
def test_yarn_is_asked_for_the_gpus_of_the_host(tmp_path, name, offered, promised, label, failures):
    answers = {part: json.loads((ANSWERS / f"{part}.json").read_text(encoding="utf-8")) for part in ("nodes", "info")}
    resources = answers["nodes"]["nodes"]["node"][1]["totalResource"]["resourceInformations"]["resourceInformation"]
    resources.append({"name": "yarn.io/gpu", "resourceType": "COUNTABLE", "units": "", "value": offered})

    with serving(lambda path: answers["nodes" if "/nodes" in path else "info"], tmp_path):
        question = {"conf_dir": str(tmp_path), "gpus": promised, "names": [name], "label": label}
        outcomes = suite_about_yarn(tmp_path, question)
    assert {test: outcome for test, (outcome, _) in outcomes.items()} == {
        test: verify.FAILED if test in failures else verify.PASSED for test in ABOUT_YARN
    }
    assert all(words in outcomes[test][1] for test, words in failures.items()), outcomes


def test_a_nodemanager_that_does_not_report_is_named(tmp_path):
    answers = {part: json.loads((ANSWERS / f"{part}.json").read_text(encoding="utf-8")) for part in ("nodes", "info")}
    answers["nodes"]["nodes"]["node"][1]["healthReport"] = "Healthy"  # RMNodeImpl's word for it
    with serving(lambda path: answers["nodes" if "/nodes" in path else "info"], tmp_path):
        outcomes = suite_about_yarn(tmp_path, {"conf_dir": str(tmp_path), "gpus": 0, "names": ["data2"], "label": ""})
    assert outcomes[RUNS][0] == verify.FAILED
    assert "The NodeManager of data2 should report to the ResourceManager, but has not since" in outcomes[RUNS][1]


def test_a_resourcemanager_that_does_not_answer_is_named(tmp_path):
    outcomes = suite_about_yarn(tmp_path, {"conf_dir": str(tmp_path), "gpus": 1, "names": ["d"], "label": ""})
    sentence = "The ResourceManager should answer at its web address, but: yarn-site.xml names none"
    assert outcomes[OFFERS] == (verify.FAILED, sentence)


def suite_about_yarn(directory: Path, wanted: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """What this host answers to the probe, and what the suite says of it."""
    (directory / "hosts.yml").write_text("all: {children: {data_nodes: {hosts: {d: {}}}}}")
    expectation = {"environment": str(directory), "yarn": wanted}
    script, answers = verify.probe_script(expectation), verify.answer_file(directory, "d")
    call = subprocess.run(["sh", "-c", host_script.command()], input=script, capture_output=True, text=True, check=True)
    answers.parent.mkdir()
    answers.write_text(call.stdout)
    (directory / "expectations.json").write_text(json.dumps({"d": expectation}))
    variables = {"VERIFY_ANSWERS": str(directory), "VERIFY_EXPECTATIONS": str(directory / "expectations.json")}
    junit = directory / "junit.xml"
    ask_suite(
        directory, REPOSITORY / "tests/infra/test_yarn.py", f"--junitxml={junit}", "--hosts=ansible://d", **variables
    )
    return {result.test: (result.outcome, result.message) for result in verify.results(junit)}


# The names that the program may use, in stand-ins with the surface of a real release: TensorFlow 1.4.1 has tf.Session and
# tf.gfile but neither tf.io nor tf.compat.v1; TensorFlow 2 has neither tf.Session nor tf.gfile, and hdfs:// from tensorflow_io alone;
# Keras 3 has no keras.wrappers.
GRAPH = """
__version__ = "1.4.1"
class Graph:
    def as_default(self): return self
    def __enter__(self): return self
    def __exit__(self, *what): pass
class Rows(list):
    def tolist(self): return list(self)
class Session(Graph):
    def run(self, value): return value
def constant(value): return value
def matmul(left, right):
    return Rows([[sum(a * b for a, b in zip(row, column)) for column in zip(*right)] for row in left])
class gfile:
    @staticmethod
    def ListDirectory(path): return ["user/", "tmp/"] if path == "hdfs://master1:8020/" else 1 / 0
"""
EAGER = """
import sys
__version__ = "2.21.0"
class Rows(list):
    def numpy(self): return self
    def tolist(self): return list(self)
def constant(value): return value
def matmul(left, right):
    return Rows([[sum(a * b for a, b in zip(row, column)) for column in zip(*right)] for row in left])
class io:
    class gfile:
        @staticmethod
        def listdir(path): return ["user", "tmp"] if (path, "tensorflow_io" in sys.modules) == ("hdfs://master1:8020/", True) else 1 / 0
"""


def answers(tmp_path: Path, tensorflow: str, distributions: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the environment's own Python answers."""
    (tmp_path / "tensorflow.py").write_text(tensorflow)
    write_settings(tmp_path / "core-site.xml", {"fs.defaultFS": "hdfs://master1:8020"})
    for name in distributions:
        package(tmp_path, name, "2.21.0")
    lines: list[str] = []
    for arguments in ([], ["hdfs"]):
        completed = subprocess.run(
            [sys.executable, "-c", QUESTIONS.read_text(encoding="utf-8"), *arguments],
            env={"PYTHONPATH": str(tmp_path), "HADOOP_CONF_DIR": str(tmp_path), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        lines += completed.stdout.splitlines()
    return {answer["name"]: answer for answer in map(json.loads, lines)}


@pytest.mark.parametrize("tensorflow", [GRAPH, EAGER], ids=["1.4", "2.21"])
def test_tensorflow_is_asked_in_the_words_of_its_version(tmp_path, tensorflow):
    (tmp_path / "tensorflow_io.py").touch()
    answer = answers(tmp_path, tensorflow)
    assert answer["product"] == {"name": "product", "value": [[22.0, 28.0], [49.0, 64.0]], "error": None}
    assert [entry.rstrip("/") for entry in answer["hdfs"]["value"]] == ["tmp", "user"]


def test_the_name_of_a_distribution_is_compared_as_the_index_writes_it(tmp_path):
    """tensorflow-cpu 2.21.0 names itself tensorflow_cpu in its metadata, earlier releases tensorflow-cpu."""
    assert answers(tmp_path, EAGER, ("tensorflow_cpu",))["versions"]["value"]["tensorflow-cpu"] == "2.21.0"
