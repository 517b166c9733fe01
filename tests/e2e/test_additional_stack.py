"""A second stack beside the active one: a job names it, it is repaired, and it goes when nobody requests it any more."""

import json
import re
import shlex

import pytest

from hadoop_dl_dev.demo import images, tour
from hadoop_dl_dev.demo.shell import run

STACK, VERSION = "tf2.21-tfos-cpu-py311", "2.21.0"  # of TensorFlow; active is tf2.15-cpu-py3-el9
JOB = """
from pyspark import SparkContext
def version(_):
    import tensorflow
    return tensorflow.__version__
print("ON " + " ".join(SparkContext().parallelize(range(2), 2).map(version).collect()))
"""


def site(cluster, **variables):
    """The hosts that site.yml changed."""
    options = ("-i", str(cluster.inventory), str(images.REPOSITORY / "site.yml"), "-e", json.dumps(variables))
    said = run(str(tour.BIN / "ansible-playbook"), *options, env=tour.ENVIRONMENT).stdout
    return set(re.findall(r"^(\S+) +: ok=\d+ +changed=[1-9]", said, re.MULTILINE))


@pytest.fixture
def beside(cluster, shell):
    """What site.yml is told."""
    asked = {"deeplearning_additional_stacks": [STACK]}
    everywhere = {"edge1", *cluster.data_hosts}
    assert everywhere <= site(cluster, **asked)
    yield asked
    assert everywhere <= site(cluster), "it is not requested any more"
    for host in everywhere:
        assert STACK not in shell(host, "ls /opt/deeplearning/envs")[1]


def test_a_job_runs_in_an_additional_stack_and_the_active_one_stays(shell, cluster, beside):
    def analyst(text: str) -> list[str]:
        code, said = shell("edge1", f"su - analyst -c {shlex.quote(text)}")
        assert code == 0, said
        return said.splitlines()

    listed = [line.split() for line in analyst("deeplearning list")]
    assert ["*", cluster.stack] in [row[:2] for row in listed]
    assert STACK in [row[0] for row in listed]
    lost = f"/opt/deeplearning/envs/{STACK}-*.1/lib/python*/site-packages/tensorflow/__init__.py"
    assert shell("data1", f"rm {lost}")[0] == 0
    assert site(cluster, **beside) == {"data1"}, "it is repaired there, and nothing else is left to do"
    analyst(f"printf %s {shlex.quote(JOB)} > version.py")
    said = analyst(f"tfos-submit --stack {STACK.partition('-')[0]} --memory 2g --timeout 300 version.py")
    assert f"ON {VERSION} {VERSION}" in said
