"""Each lock has what its stack promises. A test is one question; a stack is asked only the questions about its own parts."""

import json

import pytest
from packaging.version import Version
from tfos_submit import gpus

from hadoop_dl_dev.demo import images, nodes
from hadoop_dl_dev.demo.shell import run

MODULES = {
    "keras": "keras",
    "tensorflow-io": "tensorflow_io",
    "tensorflowonspark": "tensorflowonspark",
    "kafka-python": "kafka",
}
# Java 17 closes what Spark 3.0 and Hadoop open by reflection; Java 8 does not know the option.
OPENED = "-XX:+IgnoreUnrecognizedVMOptions " + " ".join(
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.lang.invoke", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
)


@pytest.fixture
def ready(lock):
    """The lock, installed; without a Python for it the question is skipped, with the reason."""
    if lock.skipped:
        pytest.skip(lock.skipped)
    assert not lock.failed, "the environment was not installed"
    return lock


@pytest.fixture
def answers(ready):
    """What the environment's Python answers, once for all questions."""
    if not hasattr(ready, "asked"):
        projects = {entry.project: entry.version for entry in ready.stack.lock(ready.python).entries}
        modules = ["tensorflow", *[module for project, module in MODULES.items() if project in projects]]
        projects.pop("virtualenv", None)  # made the environment, and is not in it
        cuda = any(project.startswith("nvidia-") for project in projects)
        text = ready.ask("/srv/stacks/questions.py", json.dumps({"modules": modules, "cuda": cuda}))
        all_answers = [json.loads(line) for line in text.splitlines() if line.startswith('{"name"')]
        ready.asked = {answer["name"]: answer for answer in all_answers}, projects
    return ready.asked


@pytest.mark.question("installed")
def test_the_environment_is_installed_and_sealed(lock):
    if lock.skipped:
        pytest.skip(lock.skipped)
    assert not lock.failed, lock.failed
    seal = json.loads(lock.node.ask(["cat", f"{lock.path}/.deeplearning/sealed.json"]))
    assert seal["stack"] == lock.stack.name


@pytest.mark.question("imports")
def test_every_part_can_be_imported_at_the_locked_version(answers):
    results, projects = answers
    parts = {name: answer["error"] for name, answer in results.items() if name.startswith("import ")}
    assert "import tensorflow" in parts
    problems = [f"{name}: {error}" for name, error in parts.items() if error]
    assert not problems, "; ".join(problems)
    assert results["versions"]["error"] is None, results["versions"]["error"]
    packages = results["versions"]["value"]
    differences = [
        f"{name} is {packages.get(name)}, but the lock has {projects.get(name)}"
        for name in sorted({*packages, *projects})
        if name not in packages or name not in projects or Version(packages[name]) != Version(projects[name])
    ]
    assert not differences, "; ".join(differences)


@pytest.mark.question("computes")
def test_tensorflow_multiplies_two_matrices(answers):
    answer = answers[0].get("product", {"error": "no answer"})
    assert answer["error"] is None, answer["error"]
    assert answer["value"] == 134.0  # 19 + 22 + 43 + 50


@pytest.mark.question("cuda")
def test_tensorflow_finds_cuda_in_the_environment(answers):
    """No variable names a directory of CUDA, and the node has no driver."""
    answer = answers[0].get("cuda", {"error": "no answer"})
    assert answer["error"] is None, answer["error"]
    assert {"libcudart", "libcublas", "libcublasLt", "libcudnn", "libcufft", "libcusparse"} <= set(answer["value"])


@pytest.mark.question("hdfs")
def test_tensorflow_writes_and_reads_hdfs(ready, connected):
    ready.ask("/srv/digits/prepare.py", "hdfs://master1:8020/stacks")
    read = "import storage, digits; tf = storage.tensorflow(); print(len(storage.held_out(tf, 'hdfs://master1:8020/stacks')[1]))"
    assert ready.ask("-c", read, PYTHONPATH="/srv/digits").split()[-1] == "360"  # every fifth of 1797 rows


@pytest.mark.question("kafka")
def test_tensorflow_reads_a_topic(ready, connected):
    topic = f"digits-{ready.path.rpartition('-')[2]}"
    brokers = ["--brokers", "edge1:9092", "--topic", topic]
    ready.ask("/srv/digits/kafka_produce.py", *brokers)
    assert "RESULT" in ready.ask("/srv/digits/kafka_train.py", *brokers, "--minimum-accuracy", "0.95")


@pytest.mark.question("trained")
def test_tensorflowonspark_trains_the_digits(ready, connected, tmp_path):
    """Two executors of Spark on this host; where TensorFlow has no HDFS, the digits are in the node's own files.

    The node has no nvidia-smi but that which tfos-submit sends with a job.
    """
    java = images.java(ready.node.image)
    if java not in ready.stack.data["java"]:
        pytest.skip(
            f"Spark {ready.stack.data['pyspark']} is for Java {' or '.join(ready.stack.data['java'])}, and the image {ready.node.image} has {java}"
        )
    base = "hdfs://master1:8020/stacks" if ready.stack.data.get("hdfs") else "file:///var/tmp/stacks"
    if base.startswith("file:"):
        ready.ask("/srv/digits/prepare.py", base)
    major = ready.stack.data["tensorflow"].partition(".")[0]
    settings = {
        "spark.executor.memory": "1g",
        "spark.executor.instances": "2",
        "spark.driver.extraJavaOptions": OPENED,
        "spark.executor.extraJavaOptions": OPENED,
        "spark.ui.enabled": "false",
    }
    submit = [f"{ready.spark}/bin/spark-submit", "--master", "local-cluster[2,1,1024]"]
    submit += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    submit += [
        "--py-files",
        ",".join(f"/srv/digits/{name}.py" for name in ("digits", "job", "storage")),
        f"/srv/digits/train_tf{major}.py",
    ]
    submit += ["--data", base, "--output", f"{base}-model", "--minimum-accuracy", "0.95"]
    version = ready.stack.data["tensorflowonspark"]
    (tmp_path / f"environment/lib/python/site-packages/tensorflowonspark-{version}").mkdir(parents=True)
    (tmp_path / "sent").mkdir()
    gpus.write_programs(str(tmp_path / "sent"), None, str(tmp_path / "environment"), ready.path)
    sent = f"/var/tmp/{tmp_path.name}"
    run("docker", "cp", str(tmp_path / "sent"), f"{ready.node.name}:{sent}")
    nodes.execute(ready.node.name, "chmod", "-R", "a+rX", sent)
    python = f"{ready.path}/bin/python"
    variables = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python, "SPARK_HOME": ready.spark}
    variables["PATH"] = f"{sent}:/usr/local/bin:/usr/bin:/bin"
    assert "RESULT" in ready.node.ask(submit, variables, timeout=600)
