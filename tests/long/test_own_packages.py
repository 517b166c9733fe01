"""The commands of examples/horovod, parquet and benchmark on YARN with Kerberos: packages that a user compiles and installs. A cluster of its own, removed at the end.

The packages are those that pip chose from PyPI with the stack's constraints (own_packages.sha256, as sha256sum prints them); nodes reach no index.
"""

import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import hadoop_clusters
import pytest
from waiting import until

from hadoop_dl_dev.demo import artifacts, build_site, images, kerberos, nodes
from hadoop_dl_dev.demo.cluster import Cluster
from hadoop_dl_dev.demo.shell import output

CLUSTER = Cluster("tf2.15-cpu-py3-el9", name="own-packages", kerberos=True, data_nodes=3)
EDGE, HOME = CLUSTER.container("edge1"), "/home/analyst"
EXAMPLES = images.REPOSITORY / "examples"
FAILS = """
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
for step in range(600):
    hvd.allreduce(tf.constant([1.0]))
    if step == 3 and hvd.rank() == 1:
        open("/nonexistent/data")
"""


@pytest.fixture(scope="module", autouse=True)
def _cluster_with_compiler_and_packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with hadoop_clusters.of_its_own(CLUSTER):
        build_site.install_compiler(EDGE, CLUSTER.image, ("g++", "cmake", "make"))
        artifacts.fetch_packages(Path(__file__).with_name("own_packages.sha256"), images.CACHE / "own-packages")
        script = tmp_path_factory.mktemp("scripts") / "fails.py"
        script.write_text(FAILS, encoding="utf-8")
        for path in (images.CACHE / "own-packages", *(EXAMPLES / name for name in ("horovod", "parquet", "benchmark"))):
            output("docker", "cp", str(path), f"{EDGE}:{HOME}")
        for path in (EXAMPLES / "images/images.py", script):
            output("docker", "cp", str(path), f"{EDGE}:{HOME}/horovod")
        nodes.execute(EDGE, "chown", "-R", "analyst:", HOME)
        home = "/opt/hadoop/etc/hadoop"  # HADOOP_HOME has it in every distribution; the image has only /etc/hadoop/conf
        for host in CLUSTER.data_hosts:
            link = f"mkdir -p {home} && ln -s /etc/hadoop/conf/*.xml {home}"
            nodes.execute(CLUSTER.container(host), "sh", "-c", link)
        kerberos.log_in(CLUSTER)
        yield


def analyst(script: str) -> str:
    """What the user sees of commands in a shell, each of which must succeed."""
    pip = f"PIP_NO_INDEX=1 PIP_FIND_LINKS={HOME}/own-packages"
    return nodes.execute(EDGE, "su", "-", "analyst", "-c", f"exec 2>&1; set -e; export {pip}\n{script}")


def commands(example: str) -> list[str]:
    """The page's blocks of commands, for this cluster."""
    page = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .*\n)+", page.replace("namenode:8020/user/me", "master1:8020/user/analyst"), re.M)
    return [f"cd ~/{example}\n{textwrap.dedent(block)}" for block in blocks]


def results(said: str) -> list[str]:
    """The lines RESULT in the logs of the job, whose output this is."""
    application = re.findall(r"application_\d+_\d+", said)[-1]
    return sorted(re.findall(r"RESULT (.*)", analyst(f"tfos-submit logs {application}")))


def test_horovod_is_compiled_and_trains_here_and_on_yarn():
    install, train = commands("horovod")
    analyst(install)
    text = analyst(train)
    for lines in (sorted(re.findall(r"RESULT (.*)", text)), results(text)):
        accuracies = re.findall(r"process [01] of 2 accuracy (\S+)", "\n".join(lines))
        assert len(accuracies) == 2, text
        assert accuracies[0] == accuracies[1], "both have the same weights, from different images"
        assert float(accuracies[0]) > 0.3, text
    analyst("hdfs dfs -test -e hvd/model/saved_model.pb")


def test_the_error_of_one_process_is_the_jobs():
    submit = "tfos-submit --executors 2 --venv ~/hvd --files fails.py launch.py fails.py || echo status $?"
    text = analyst(f"cd horovod; {submit}")
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/nonexistent/data'" in text.split("first error")[1]
    assert text.endswith("status 1\n")


def test_executors_read_parquet_themselves():
    analyst("cd digits && sh run.sh parquet")
    read_results = [results(analyst(block)) for block in commands("parquet")]
    rows = [int(re.findall(r"rows (\d+)", line)[0]) for line in read_results[0]]
    assert sum(rows) == 1437, "every row of the training, once"
    assert min(rows) > 0
    assert read_results[0] == read_results[1], "Petastorm reads the same"


def test_resnet50_is_measured_on_two_executors_and_the_columns_add_up():
    options = "--image-size 32 --batch 2 --rounds 2"
    text = analyst(f"cd benchmark && tfos-submit --executors 2 --gpus 0 --memory 2g resnet50.py {options}")
    titles, row = re.findall(r"^ *(?:workers|2) .*$", text, re.M)
    cells = dict(zip(titles.split(), row.split(), strict=True))
    assert cells["hosts"] == "2"
    parts = [float(cells[name]) for name in ("input", "compute", "all-reduce", "remainder")]
    assert sum(parts) == pytest.approx(float(cells["step"]), abs=0.003)  # each is rounded
    assert float(cells["images/s"]) == pytest.approx(4 / float(cells["step"]), rel=0.05)
    assert "none, so this says nothing about GPUs" in text


def test_horovod_goes_on_from_the_last_epoch_after_a_lost_host(tmp_path: Path) -> None:
    log, output_directory = tmp_path / "log", "hdfs://master1:8020/user/analyst/lost"
    submit = "tfos-submit --attempts 3 --executors 2 --per-node 1 --wait 200 --timeout 1800 --venv ~/hvd"
    train = f"--files train.py --py-files images.py launch.py train.py --epochs 60 --output {output_directory}"
    with log.open("w", encoding="utf-8") as sink:
        job = f"exec 2>&1; cd horovod; {submit} {train}"
        process = subprocess.Popen(["docker", "exec", EDGE, "su", "-", "analyst", "-c", job], stdout=sink)
        saved = "hdfs dfs -cat lost/checkpoints/checkpoint || true"
        first = until(lambda: re.search(r'path: "epoch-(\d+)"', analyst(saved)), 900, "a checkpoint must be written")
        hadoop_clusters.lose_an_executor(CLUSTER)
        assert process.wait(2400) == 0, log.read_text()
    text = log.read_text(encoding="utf-8")
    assert "attempt 1 of 3 was lost, so the job is submitted again: " in text
    assert len(results(text)) == 2, text
    application = re.findall(r"application_\d+_\d+", text)[-1]
    begin = re.findall(r"begins after epoch (\d+)", analyst(f"tfos-submit logs {application}"))
    assert len(begin) == 2, "both processes"
    assert begin[0] == begin[1]
    assert int(begin[0]) >= int(first[1])
