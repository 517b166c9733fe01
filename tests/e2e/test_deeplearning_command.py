"""The command deeplearning and a user's own packages on the demo cluster, as the user analyst."""

import json
import re
import shlex

import pytest

from hadoop_dl_dev.demo import images
from hadoop_dl_dev.demo.shell import output

HOME = "hdfs://master1:8020/user/analyst"
IMPORT = """
import importlib, tensorflow as tf
try:
    importlib.import_module("tensorflow_io")
except ImportError:
    pass
"""
READS = IMPORT + f"print(sorted(tf.io.gfile.listdir('{HOME}/..')))"
ASK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:6011/data/plugin/scalars/tags').read().decode())"
PAGE = f"""
deeplearning tensorboard --port 6011 hdfs:///user/analyst/runs 2> tensorboard.log & program=$!
for _ in $(seq 90); do
    answer=$(python3 -c "{ASK}" 2> /dev/null) && [ "$answer" != "{{}}" ] && break
    sleep 1
done
kill -TERM $program; wait $program
echo; echo "$answer"
"""
# Six batches as those of CIFAR-10's archive for Python: a pickle of Python 2 with 1024 values of red, then green, then blue, for each image.
CIFAR = """
import os, pickle, sys
sys.path.insert(0, "images")
import images, numpy as np, tensorflow as tf
os.mkdir("cifar")
def write(name, seed):
    pixels, answers = images.made(100, seed)
    planes = (pixels * 255).round().astype("uint8").transpose(0, 3, 1, 2).reshape(-1, 3072)
    with open("cifar/" + name, "wb") as handle:
        pickle.dump({b"data": planes, b"labels": answers.tolist()}, handle, 2)
    return pixels, answers
parts = [write("data_batch_%d" % number, number) for number in (1, 2, 3, 4, 5)] + [write("test_batch", 6)]
train, held_out = images.load(tf, "cifar")
assert abs(train[0] - np.concatenate([part[0] for part in parts[:5]])).max() < 0.003
assert abs(held_out[0] - parts[5][0]).max() < 0.003
assert train[1].tolist() == [answer for part in parts[:5] for answer in part[1]]
print("READ %d %d" % (len(train[0]), len(held_out[1])))
"""
JOB = """
from pyspark import SparkContext
def imported(number):
    import mine
    return mine.value + number
print("SUM %d" % sum(SparkContext().parallelize(range(4), 2).map(imported).collect()))
"""


@pytest.mark.parametrize("host", ["data1", "edge1"])
def test_every_host_lists_its_environment_as_the_default(shell, cluster, host):
    code, text = shell(host, "deeplearning list")
    assert code == 0, text
    assert [line.split()[1] for line in text.splitlines() if line.startswith("*")] == [cluster.stack]


def test_a_script_reads_hdfs(analyst):
    assert "analyst" in analyst(f"deeplearning python --gpus none -c {shlex.quote(READS)} 2>/dev/null")


def test_tensorboard_shows_the_events_of_the_images_example_in_hdfs(cluster, analyst):
    output("docker", "cp", str(images.REPOSITORY / "examples/images"), f"{cluster.container('edge1')}:/home/analyst/")
    text = analyst(f"deeplearning run --gpus none images/plain.py --epochs 2 --output {HOME}/runs")
    assert float(re.findall(r"^RESULT accuracy ([\d.]+)", text, re.MULTILINE)[-1]) >= 0.4, "chance is 0.1"
    text = analyst(PAGE)
    tags = [tag for tags in json.loads(text.strip().splitlines()[-1]).values() for tag in tags]
    assert any("loss" in tag for tag in tags), text


def test_the_images_example_reads_the_format_of_cifar_10(analyst):
    assert "READ 500 100" in analyst(f"deeplearning python --gpus none -c {shlex.quote(CIFAR)} 2>/dev/null")
    text = analyst("deeplearning run --gpus none images/plain.py --data cifar --epochs 1 --output cifar-run")
    assert re.search(r"^RESULT accuracy [\d.]+", text, re.MULTILINE)


def test_executors_import_the_users_own_packages(analyst):
    analyst("rm -rf own && deeplearning venv own && echo 'value = 7' > $(echo own/lib/python*/site-packages)/mine.py")
    analyst(f"printf %s {shlex.quote(JOB)} > job.py")
    text = analyst("tfos-submit --venv own --memory 1g --timeout 180 job.py")
    assert "SUM 34" in text
