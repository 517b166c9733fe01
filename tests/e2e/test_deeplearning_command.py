"""The command deeplearning and a user's own packages on the demo cluster, as the user analyst."""

import shlex

import pytest

HOME = "hdfs://master1:8020/user/analyst"
IMPORT = """
import importlib, tensorflow as tf
try:
    importlib.import_module("tensorflow_io")
except ImportError:
    pass
"""
READS = IMPORT + f"print(sorted(tf.io.gfile.listdir('{HOME}/..')))"
JOB = """
from pyspark import SparkContext
def imported(number):
    import mine
    return mine.value + number
print("SUM %d" % sum(SparkContext().parallelize(range(4), 2).map(imported).collect()))
"""


@pytest.fixture
def analyst(shell):
    """Run shell text as analyst on the edge node; its output."""

    def analyst(text: str) -> str:
        code, said = shell("edge1", f"su - analyst -c {shlex.quote(text)}")
        assert code == 0, said
        return said

    return analyst


@pytest.mark.parametrize("host", ["data1", "edge1"])
def test_every_host_lists_its_environment_as_the_default(shell, cluster, host):
    code, said = shell(host, "deeplearning list")
    assert code == 0, said
    assert [line.split()[1] for line in said.splitlines() if line.startswith("*")] == [cluster.stack]


def test_a_script_reads_hdfs(analyst):
    assert "analyst" in analyst(f"deeplearning python --gpus none -c {shlex.quote(READS)} 2>/dev/null")


def test_executors_import_the_users_own_packages(analyst):
    analyst("rm -rf own && deeplearning venv own && echo 'value = 7' > $(echo own/lib/python*/site-packages)/mine.py")
    analyst(f"printf %s {shlex.quote(JOB)} > job.py")
    said = analyst("tfos-submit --venv own --memory 1g --timeout 180 job.py")
    assert "SUM 34" in said
