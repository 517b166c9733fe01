"""The example's data and arithmetic."""

import argparse
import getpass
import importlib
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import python_files
from resource_manager import write_settings

from hadoop_dl.data import stacks
from hadoop_dl.data.locks import canonicalize_name

DIRECTORY = Path(__file__).parents[2] / "examples/digits"
digits = python_files.load(DIRECTORY / "digits.py")


def test_held_out_rows_are_never_trained_on():
    rows = [f"{number}" for number in range(1797)]
    training, held_out = digits.split(rows)
    assert (len(training), len(held_out)) == (1437, 360)
    assert not set(training) & set(held_out)
    assert (training, held_out) == digits.split(rows)


@pytest.mark.parametrize("row", ["1,2,3", ",".join(["0"] * 64 + ["10"])])
def test_a_row_that_is_none_is_refused(row):
    with pytest.raises(ValueError, match="a row of 64 pixels and a digit is required"):
        digits.parse(row)


def test_every_row_is_in_exactly_one_shard():
    parts = digits.shards(list(range(1437)), 4)
    assert sorted(row for part in parts for row in part) == list(range(1437))


@pytest.mark.parametrize(("count", "sizes"), [(150, [64, 64, 22]), (128, [64, 64]), (0, [])])
def test_every_epoch_has_every_row_in_exactly_one_block_and_an_empty_one_ends_them(count, sizes):
    blocks = list(digits.blocks(iter(range(count)), 64, epochs=2))
    assert [len(block) for block in blocks] == [*sizes * 2, 0]
    assert [row for block in blocks for row in block] == list(range(count)) * 2


@pytest.mark.parametrize(
    ("arguments", "expected"), [((1437, 20, 128), 224), ((1437, 20, 128, 0.9), 202), ((1, 1, 128), 1)]
)
def test_the_number_of_steps_follows_rows_epochs_and_batches(arguments, expected):
    assert digits.steps(*arguments) == expected


class Rows(list):  # type: ignore[type-arg]
    """A data set of Spark, in this process."""

    def map(self, function: object) -> "Rows":
        return self

    count = list.__len__
    repartition = mapPartitions = map


def test_the_driver_leaves_the_same_result_beside_the_model_and_on_its_host(storage, tmp_path, monkeypatch):
    """No Hadoop command, a JVM of its own, reads it back from HDFS."""
    events: list[str] = []
    cluster = SimpleNamespace(
        cluster_info=[{"host": "data1"}, {"host": "data2"}],
        train=lambda *given, **named: storage.write(tf, f"{tmp_path}/model/finished", "yes"),
        shutdown=lambda: events.append("shutdown"),
    )
    conf = SimpleNamespace(setAppName=lambda name: None, get=lambda name, default: default)
    context = SimpleNamespace(
        getConf=lambda: conf, textFile=lambda path: Rows("ab"), stop=lambda: events.append("stop")
    )
    pyspark = SimpleNamespace(SparkConf=lambda: conf, SparkContext=lambda conf: context)
    mode = SimpleNamespace(SPARK=1, TENSORFLOW=0)
    library = SimpleNamespace(InputMode=mode, run=lambda *given, **named: cluster)
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    monkeypatch.setitem(sys.modules, "tensorflowonspark", SimpleNamespace(TFCluster=library))
    tf = SimpleNamespace(__version__="1.4.1", gfile=OldGfile)
    monkeypatch.setattr(storage, "tensorflow", lambda: tf)
    job = importlib.import_module("job")
    monkeypatch.setattr(storage, "held_out", lambda tf, data: (["pixels"] * 4, [7, 1, 2, 3]))
    arguments = ["train.py", "--data", f"{tmp_path}/data", "--output", f"{tmp_path}/model"]
    monkeypatch.setattr(sys, "argv", [*arguments, "--result", f"{tmp_path}/result.json"])
    job.run(job.options("Train"), None, lambda tf, model, pixels: [7, 1, 2, 9], {"num_ps": 1})
    assert events == ["shutdown", "stop"]
    text = (tmp_path / "model/result.json").read_text()
    assert (tmp_path / "result.json").read_text() == text
    assert json.loads(text)["accuracy"] == 0.75


@pytest.mark.parametrize(("steps", "seconds"), [(3, 60), (9, 0)])
def test_the_chief_waits_for_the_other_workers_but_not_for_ever(storage, monkeypatch, steps, seconds):
    """With three workers it had its share before the others began, and then waited for the end of the feed, which waited for it."""
    train_tf1 = importlib.import_module("train_tf1")
    monkeypatch.setattr(train_tf1, "PATIENCE", seconds)
    monkeypatch.setattr(train_tf1.time, "sleep", lambda _: None)
    seen: list[str] = []
    session = SimpleNamespace(should_stop=lambda: len(seen) == steps, run=lambda fetch, batch: seen.append(fetch))
    train_tf1.wait_for_the_others(session, "step", {})
    assert seen == ["step"] * (steps if seconds else 0)


@pytest.mark.parametrize(("given", "asked"), [(None, 0), ("1", 1)])
def test_workers_have_the_gpus_of_the_job_and_otherwise_none(storage, monkeypatch, given, asked):
    mode = SimpleNamespace(SPARK=1, TENSORFLOW=0)
    run = lambda context, train, arguments, executors, **named: arguments.num_gpus  # noqa: E731
    library = SimpleNamespace(InputMode=mode, run=run)
    monkeypatch.setitem(sys.modules, "tensorflowonspark", SimpleNamespace(TFCluster=library))
    monkeypatch.setattr(sys, "argv", ["train.py", "--data", "/data", "--output", "/model"])
    job = importlib.import_module("job")
    settings = {"spark.task.resource.gpu.amount": given} if given else {}
    context = SimpleNamespace(getConf=lambda: settings)
    assert job.start(context, job.options("Train"), None, {"num_ps": 1}) == asked


@pytest.mark.parametrize(
    ("variables", "gpus", "place"),
    [
        ({}, "0", f"hdfs:///user/{getpass.getuser()}"),
        ({"GPUS": "0", "DIRECTORY": "hdfs:///tmp/a"}, "0", "hdfs:///tmp/a"),
        ({"GPUS": "1"}, "1", f"hdfs:///user/{getpass.getuser()}"),
        ({"GPUS": "2"}, "2", f"hdfs:///user/{getpass.getuser()}"),
    ],
)
def test_the_example_asks_yarn_for_gpus_and_for_none_unless_it_is_told(tmp_path, variables, gpus, place):
    calls = tmp_path / "calls"
    answer = f'[ "$2" != choose.py ] || echo train_tf1.py; echo "$*" >> {calls}'
    program = python_files.write_script(tmp_path / "bin/tfos-submit", answer)
    environment = {"PATH": f"{program.parent}:/usr/bin:/bin", **variables}
    subprocess.run(["sh", str(DIRECTORY / "run.sh"), "spark"], env=environment, check=True)
    _, prepare, job = calls.read_text().splitlines()
    assert prepare == f"--local prepare.py {place}/digits"
    assert f"--executors 2 --gpus {gpus} " in job
    assert f" --data {place}/digits --output {place}/model-spark " in job
    assert "num-gpus" not in job


@pytest.fixture
def storage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(DIRECTORY))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    write_settings(tmp_path / "core-site.xml", {"fs.defaultFS": "hdfs://master1:8020"})
    return importlib.import_module("storage")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("hdfs:///user/me/", "hdfs://master1:8020/user/me"),
        ("hdfs://other:8020/user/me", "hdfs://other:8020/user/me"),
        ("/tmp/here/", "/tmp/here"),
    ],
)
def test_an_address_without_a_namenode_gets_the_clusters(storage, written, meant):
    assert storage.address(written) == meant


@pytest.mark.parametrize("written", ["hdfs:///user/me/", "maprfs:///user/me"])
def test_an_address_on_mapr_is_where_its_file_system_is_mounted(storage, tmp_path, monkeypatch, written):
    write_settings(tmp_path / "core-site.xml", {"fs.defaultFS": "maprfs:///"})
    (tmp_path / "clusters").write_text("one secure=true n1:7222\ntwo n2:7222\n", "utf-8")
    monkeypatch.setattr(storage, "MAPR_CLUSTERS", str(tmp_path / "clusters"))
    assert storage.address(written) == "/mapr/one/user/me"


def test_without_a_configuration_the_namenode_is_asked_for(storage, tmp_path):
    (tmp_path / "core-site.xml").unlink()
    with pytest.raises(argparse.ArgumentTypeError, match="the NameNode is required"):
        storage.address("hdfs:///user/me")


TFOS_STACKS = [name for name in stacks.stack_names() if "tensorflowonspark" in stacks.load_stack(name).data]


@pytest.mark.parametrize("mode", ["spark", "tensorflow", "kafka"])
@pytest.mark.parametrize("name", TFOS_STACKS)
def test_every_stack_with_tensorflowonspark_has_a_script_or_a_sentence(monkeypatch, name, mode):
    monkeypatch.syspath_prepend(str(DIRECTORY))
    choose = importlib.import_module("choose")
    stack = stacks.load_stack(name).data
    entries = stacks.load_stack(name).lock().entries
    distributions = {canonicalize_name(entry.project): entry.version for entry in entries}
    if stack["tensorflow_source"] == "built":  # its wheel comes from the build host
        distributions[stack["tensorflow_package"]] = stack["tensorflow"]
    requirement = {"tensorflow": "hdfs", "kafka": "kafka"}.get(mode)
    if requirement and not stack[requirement]:
        with pytest.raises(ValueError, match=f"a stack with {requirement}: true"):
            choose.script(mode, distributions)
    else:
        major = stack["tensorflow"].partition(".")[0]
        assert choose.script(mode, distributions) == ("kafka_train.py" if mode == "kafka" else f"train_tf{major}.py")


class OldGfile:
    """tf.gfile as TensorFlow 1.4.1 has it (python/platform/gfile.py), over the local disk."""

    GFile = staticmethod(open)
    Exists = staticmethod(lambda path: Path(path).exists())
    Glob = staticmethod(lambda pattern: [str(path) for path in Path(pattern).parent.glob(Path(pattern).name)])
    MakeDirs = staticmethod(lambda path: Path(path).mkdir(parents=True, exist_ok=True))
    DeleteRecursively = staticmethod(shutil.rmtree)


def test_a_tensorflow_without_tf_io_reads_and_writes_files(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(storage.digits, "arrays", list)  # NumPy is in the environments only
    tf = SimpleNamespace(__version__="1.4.1", gfile=OldGfile)
    storage.fresh(tf, str(tmp_path / "data/csv/held-out"))
    storage.write(tf, str(tmp_path / "data/csv/held-out/part-00000.csv"), "left over")
    storage.fresh(tf, str(tmp_path / "data/csv/held-out"))
    assert not storage.exists(tf, str(tmp_path / "data/csv/held-out/part-00000.csv"))
    with pytest.raises(SystemExit, match="The held-out digits are required"):
        storage.held_out(tf, str(tmp_path / "other"))
    storage.write(tf, str(tmp_path / "data/csv/held-out/part-00000.csv"), digits.lines()[0])
    assert storage.held_out(tf, str(tmp_path / "data")) == digits.lines()[:1]


@pytest.mark.parametrize(
    ("job", "end", "kept"),
    [
        ("a", [], ["checkpoints", "checkpoints/ckpt-100", "events", "events/scalars", "job-a"]),
        ("a", ["finished"], ["checkpoints", "job-a"]),
        # Its first attempt may have been lost before it emptied the directory.
        ("b", [], ["checkpoints", "job-b"]),
        ("", [], ["checkpoints", "job-"]),
    ],
)
def test_a_lost_job_keeps_its_checkpoints_and_another_one_none(storage, tmp_path, job, end, kept):
    tf = SimpleNamespace(__version__="1.4.1", gfile=OldGfile)
    for name in ("checkpoints/ckpt-100", "events/scalars", "model/saved_model.pb", "job-a", *end):
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).write_text(name)
    storage.begin(tf, str(tmp_path / "model"), job)
    assert sorted(str(path.relative_to(tmp_path / "model")) for path in (tmp_path / "model").rglob("*")) == kept


HDFS = """
# hdfs dfs over a directory: hdfs://master1:8020/x is $STORE/x. The options are those of Hadoop's FileSystem shell.
shift
operation=$1; shift
while [ "${1#-}" != "$1" ]; do shift; done
[ -z "${CLASSPATH:-}" ] || exit 9
at() { echo "$STORE/${1#hdfs://master1:8020/}"; }
case $operation in
    -test) [ -e "$(at "$1")" ] ;;
    -rm) rm -rf "$(at "$1")" ;;
    -mkdir) mkdir -p "$(at "$1")" ;;
    -put) cp -r "$1" "$(at "$2")/" ;;
    -get) cp -r "$(at "$1")" "$2" ;;
    *) echo "unknown" >&2; exit 2 ;;
esac
"""


def test_a_stack_whose_tensorflow_does_not_know_hdfs_uses_hadoops_command(storage, tmp_path, monkeypatch):
    """tf2.21-tfos-*: no tensorflow-io, so TensorFlow works on local paths, which Hadoop's command copies."""
    monkeypatch.setattr(storage.digits, "arrays", list)
    python_files.write_script(tmp_path / "home/bin/hdfs", HDFS)
    (tmp_path / "store/user/me").mkdir(parents=True)
    for name, value in (("HADOOP_HDFS_HOME", "home"), ("STORE", "store"), ("CLASSPATH", "libhdfs.jar")):
        monkeypatch.setenv(name, str(tmp_path / value))
    gfile = SimpleNamespace(exists=OldGfile.Exists, glob=OldGfile.Glob, GFile=open, makedirs=OldGfile.MakeDirs)
    tf = SimpleNamespace(__version__="2.21.0", io=SimpleNamespace(gfile=gfile))
    home = "hdfs://master1:8020/user/me"
    storage.fresh(tf, home + "/model")
    with storage.writable(tf, home + "/model/events") as path:
        assert not path.startswith("hdfs://")
        Path(path).mkdir()
        Path(path, "scalars").write_text("1")
    storage.write(tf, home + "/model/finished", "yes")
    assert storage.exists(tf, home + "/model/events/scalars")
    with storage.readable(tf, home + "/model") as path:
        assert sorted(entry.name for entry in Path(path).iterdir()) == ["events", "finished"]
    storage.write(tf, home + "/digits/csv/held-out/part-00000.csv", digits.lines()[0])
    assert storage.held_out(tf, home + "/digits") == digits.lines()[:1]
    storage.remove(tf, home + "/model")
    assert not storage.exists(tf, home + "/model/finished")


def test_a_broker_that_does_not_answer_is_no_empty_topic(storage):
    """TensorFlow's readers tell the two apart in no way."""
    check = importlib.import_module("kafka_train").check_brokers
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        check(f"127.0.0.1:9, {address}")
    with pytest.raises(SystemExit, match=f"no broker of Kafka answers at {address}: .*refused"):
        check(address)
