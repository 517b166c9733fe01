"""A second stack beside the active one: a job names it, and it goes when nobody requests it any more.

tests/long/test_additional_stack.py has more of it, on RHEL 9.
"""

import json
import re
import shlex

import pytest

from hadoop_dl_dev.demo import images, tour
from hadoop_dl_dev.demo.shell import run

BESIDE = "tf1.4-cpu-py27-el7"
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
def beside(cluster):
    assert {"edge1", *cluster.data_hosts} <= site(cluster, deeplearning_additional_stacks=[BESIDE])
    yield
    assert {"edge1", *cluster.data_hosts} <= site(cluster), "it is not requested any more"


@pytest.mark.usefixtures("beside")
def test_a_job_runs_in_an_additional_stack_and_the_active_one_stays(shell, cluster):
    def analyst(text: str) -> list[str]:
        code, said = shell("edge1", f"su - analyst -c {shlex.quote(text)}")
        assert code == 0, said
        return said.splitlines()

    listed = [line.split() for line in analyst("deeplearning list")]
    assert ["*", cluster.stack] in [row[:2] for row in listed]
    assert BESIDE in [row[0] for row in listed]
    analyst(f"printf %s {shlex.quote(JOB)} > version.py")
    assert "ON 1.4.1 1.4.1" in analyst("tfos-submit --stack tf1.4 --timeout 300 version.py")
